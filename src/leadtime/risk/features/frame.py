"""Windows and events of whole collections → feature rows; in bulk, or the newest row of each task."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from leadtime.risk.features import change, history, run, siblings, surroundings, window
from leadtime.risk.features.block import Block
from leadtime.risk.features.context import Context, empty_context
from leadtime.risk.features.declare import BESIDE, KEY, OUTCOME, Feature, Profile

FEATURES: tuple[Feature, ...] = (
    *window.FEATURES, *run.FEATURES, *history.FEATURES, *siblings.FEATURES, *change.FEATURES,
    *surroundings.FEATURES,
)  # fmt: skip
ORDER = ("collection_id", "instance_index", "end_time_us", "start_time_us")
FRESH_US = 900_000_000  # a live row is promised to equal the bulk where its window ended in the last 15 min
HISTORY_US = 27 * 3_600_000_000 + FRESH_US  # the longest in time: 3 h of rises, each beside the 24 h before it
HISTORY_WINDOWS = 128 + 16  # the longest in windows of a run: exponential averages, and what ends in FRESH_US
FORGET_EVERY = 16  # features, which share arrays with their neighbours only


def features_of(profile: Profile) -> tuple[Feature, ...]:
    """The declarations of one profile, in the order of its columns."""
    return tuple(feature for feature in FEATURES if profile in feature.profiles)


def feature_frame(
    windows: pl.LazyFrame,
    events: pl.LazyFrame,
    context: Context | None = None,
    *,
    profile: Profile,
    features: Sequence[Feature] | None = None,
) -> pl.LazyFrame:
    """One cell's windows and events of whole collections → key, BESIDE and a Float32 column a feature (null: missing).

    Key: KEY, ``cell`` where the windows carry it.
    Rows keep the order (collection, instance, end, start) and their number, running or not. p is a row's end; the
    window is [start, end). What comes after p (``OUTCOME``, later events and windows) is not seen. ``features``: these
    declarations instead of the profile's. ``context`` may be left out for the baseline profile.
    """
    declared = features_of(profile) if features is None else features
    rows = _in_order(windows.drop(*OUTCOME, strict=False).collect())
    block = Block(rows, events.drop("cause", strict=False).collect(), context or empty_context())
    columns = []
    for number, feature in enumerate(declared, start=1):
        columns.append(pl.Series(feature.name, feature.build(block).astype(np.float32), nan_to_null=True))
        if number % FORGET_EVERY == 0:
            block.forget()
    carried = {name: dtype for name, dtype in {**KEY, **BESIDE}.items() if name in rows.columns}
    beside = rows.select(pl.col(name).cast(getattr(pl, dtype)) for name, dtype in carried.items())
    return beside.hstack(columns).lazy()


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Sorted by ORDER; a part is sorted already, and looking costs less than sorting again."""
    ties = np.ones(max(rows.height - 1, 0), dtype=bool)
    for name in ORDER:
        column = rows[name].to_numpy()
        if bool((ties & (column[1:] < column[:-1])).any()):
            return rows.sort(ORDER, maintain_order=True)
        ties &= column[1:] == column[:-1]
    return rows


def live_rows(
    windows: pl.DataFrame, events: pl.DataFrame, context: Context | None = None, *, profile: Profile, at_us: int
) -> pl.DataFrame:
    """The newest row of each task as of ``at_us``; what is later is left out here.

    Rows whose window ended in (at − FRESH_US, at] equal, bit for bit, the rows of the same key made in bulk, where the
    frames hold: of every task of the collections concerned, the windows that ended in (at − HISTORY_US, at] and the
    last HISTORY_WINDOWS windows of its present run; of these collections, all instance events up to ``at_us``; and
    ``context`` the cell's tables of the same source. With less history the features that look further back see less.
    A task may have ended after its window: whether it runs at ``at_us`` is for the caller to say.
    """
    known = windows.lazy().filter(pl.col("end_time_us") <= at_us)
    happened = events.lazy().filter(pl.col("time_us") <= at_us)
    rows = feature_frame(known, happened, context, profile=profile).collect()
    return rows.unique(["collection_id", "instance_index"], keep="last", maintain_order=True)
