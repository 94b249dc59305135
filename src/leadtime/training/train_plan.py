"""A data set → which of its rows fit, stop, calibrate and test a model. Written down, so that a run can be repeated.

In time: fit | watch (early stopping) | calibrate | test, each purged by the longest horizon (``risk.splits``). Held-out
collections and the held-out cell are seen by none of the first three blocks. The test block is opened once, after the
model is final.
"""

from dataclasses import dataclass
from typing import Any

import polars as pl

from leadtime.domain.errors import BadTrace
from leadtime.risk import splits
from leadtime.training.sampling import FeatureSet

TRAIN, TUNE, WATCHED = (
    0.6,
    0.2,
    0.15,
)  # shares of the rows: before the first cut, calibrating, and of the first early stop
UNSEEN_COLLECTIONS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Filters over the key columns, for any partition read alone."""

    outer: splits.TimeSplit
    inner: splits.TimeSplit  # its cut lies inside ``outer.train``
    unseen_share: float
    unseen_cell: str | None
    seed: int

    @property
    def seen(self) -> pl.Expr:
        """Collections and cells that may be learnt from."""
        known = ~splits.by_collection(self.unseen_share, seed=self.seed)
        return known if self.unseen_cell is None else known & ~splits.by_cell(self.unseen_cell)

    @property
    def fit(self) -> pl.Expr:
        """Rows the trees are grown on."""
        return self.inner.train & self.seen

    @property
    def watch(self) -> pl.Expr:
        """Rows that tell when to stop."""
        return self.inner.test & self.outer.train & self.seen

    @property
    def learnt(self) -> pl.Expr:
        """Fit and watch and what lies between: all before calibration. Tuning stays inside."""
        return self.outer.train & self.seen

    @property
    def calibrate(self) -> pl.Expr:
        """Rows that turn scores into probabilities."""
        return self.outer.tune & self.seen

    @property
    def test(self) -> pl.Expr:
        """The last block, whole."""
        return self.outer.test

    @property
    def view(self) -> pl.Expr:
        """The view a test row belongs to: ``cell`` before ``collection`` before ``time``."""
        collection = pl.when(splits.by_collection(self.unseen_share, seed=self.seed)).then(pl.lit("collection"))
        view = collection.otherwise(pl.lit("time"))
        if self.unseen_cell is not None:
            view = pl.when(splits.by_cell(self.unseen_cell)).then(pl.lit("cell")).otherwise(view)
        return view.alias("view")

    def as_json(self) -> dict[str, Any]:
        """As it stands in the card and in the run's settings."""
        return {
            "watch_from_us": self.inner.test_from_us, "calibrate_from_us": self.outer.tune_from_us,
            "test_from_us": self.outer.test_from_us, "purge_us": self.outer.horizon_us,
            "unseen_collections_ratio": self.unseen_share, "unseen_cell": self.unseen_cell, "seed": self.seed,
        }  # fmt: skip


def plan_for(
    data: FeatureSet, *, seed: int, unseen_share: float = UNSEEN_COLLECTIONS, unseen_cell: str | None = None
) -> Plan:
    """Cut ``data`` in time by its rows. ``unseen_cell``: kept out of training; must be one of several.

    Raises BadTrace when the data are too short for four blocks, or the cell is not there or the only one.
    """
    if unseen_cell is not None and (unseen_cell not in data.cells or len(data.cells) < 2):
        raise BadTrace(
            "unseen-cell", f"splitting {data.folder}", f"cell {unseen_cell!r} cannot be held out of cells "
            f"{', '.join(data.cells)}", "name one of several cells",
        )  # fmt: skip
    horizon_us = data.reach_us
    ends = pl.concat([data.scan(path).select("end_time_us") for path in data.partitions])
    try:
        outer = splits.by_time(ends, train=TRAIN, tune=TUNE, horizon_us=horizon_us)
        inner = splits.by_time(ends.filter(outer.train), train=1 - WATCHED, tune=0.0, horizon_us=horizon_us)
    except ValueError as error:
        raise BadTrace("too-short-to-split", f"splitting {data.folder}", str(error), "bring more hours") from None
    return Plan(outer=outer, inner=inner, unseen_share=unseen_share, unseen_cell=unseen_cell, seed=seed)
