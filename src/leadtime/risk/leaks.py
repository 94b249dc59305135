"""Does anything after p reach the feature row of p? The future is made up anew, and the rows up to p must not move."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US
from leadtime.risk.features import Feature, Profile, context_from, feature_frame, features_of

KEYS = ("collection_id", "instance_index", "start_time_us", "end_time_us")
HASH_DIGITS = 16


class Probe(StrEnum):
    """The checks of the battery."""

    FUTURE = "future"  # the future made up anew: rows up to p must keep their hash
    DECLARED = "declared"  # columns and declarations must be the same set
    REPRODUCED = "reproduced"  # the stored rows must equal rows made again from the windows
    SINGLE = "single"  # one feature alone must not beat all others together
    SHUFFLE = "shuffle"  # labels shuffled within collections must not be predictable beyond their collection's rate
    PLACEBO = "placebo"  # a random column must find no more than the base rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong. ``feature``: None where it is not about one."""

    probe: Probe
    feature: str | None
    sentence: str

    def __str__(self) -> str:
        named = self.probe.value if self.feature is None else f"{self.probe.value}: {self.feature}"
        return f"{named}: {self.sentence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """One closed world: windows, their collections' events, and the cell's own tables."""

    windows: pl.DataFrame
    events: pl.DataFrame
    collections: pl.DataFrame
    machines: pl.DataFrame


def features_at(tables: Tables, *, profile: Profile, features: Sequence[Feature] | None = None) -> pl.DataFrame:
    """Feature rows of all windows, with a context made from these tables alone."""
    windows, events = tables.windows.lazy(), tables.events.lazy()
    context = context_from(windows, events, collections=tables.collections, machines=tables.machines)
    return feature_frame(windows, events, context, profile=profile, features=features).collect()


def hashes_upto(rows: pl.DataFrame, at_us: int, names: Sequence[str]) -> dict[str, str]:
    """Feature → SHA-256 over its values in rows with end ≤ ``at_us``, in the order of their keys."""
    known = rows.filter(pl.col("end_time_us") <= at_us).sort(KEYS)
    return {name: hashlib.sha256(_bytes(known[name])).hexdigest()[:HASH_DIGITS] for name in names}


def moved_by_the_future(
    tables: Tables,
    instants_us: Sequence[int],
    *,
    profile: Profile,
    seed: int,
    features: Sequence[Feature] | None = None,
) -> dict[str, tuple[int, ...]]:
    """Feature → the instants at which its rows changed when everything later was made up anew; empty where none."""
    declared = features_of(profile) if features is None else features
    names = [feature.name for feature in declared]
    as_is = features_at(tables, profile=profile, features=declared)
    moved: dict[str, list[int]] = {}
    for number, at in enumerate(instants_us):
        other = features_at(another_future(tables, at, seed=seed + number), profile=profile, features=declared)
        before, after = hashes_upto(as_is, at, names), hashes_upto(other, at, names)
        for name in names:
            if before[name] != after[name]:
                moved.setdefault(name, []).append(at)
    return {name: tuple(instants) for name, instants in moved.items()}


def another_future(tables: Tables, at_us: int, *, seed: int) -> Tables:
    """The same up to ``at_us``; afterwards half of everything is gone and the rest is changed, outcomes included."""
    rng = np.random.default_rng(seed)
    return Tables(
        windows=_windows(tables.windows, at_us, rng),
        events=_events(tables.events, at_us, rng, types=11),
        collections=_events(tables.collections, at_us, rng, types=11),
        machines=_events(tables.machines, at_us, rng, types=4),
    )


def _bytes(values: pl.Series) -> bytes:
    return values.cast(pl.Float32).fill_null(float("nan")).to_numpy().tobytes()


def _split(frame: pl.DataFrame, column: str, at_us: int, rng: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    later = frame.filter(pl.col(column) > at_us)
    return frame.filter(pl.col(column) <= at_us), later.filter(pl.Series(rng.random(later.height) < 0.5))


def _windows(windows: pl.DataFrame, at_us: int, rng: np.random.Generator) -> pl.DataFrame:
    """Later windows thinned out with other usage and state; every outcome made up, it lies after p in every row."""
    known, later = _split(windows, "end_time_us", at_us, rng)
    factor = pl.Series("factor", rng.random(later.height).astype(np.float32) * 3)
    real = [name for name, dtype in later.schema.items() if dtype == pl.Float32]
    later = later.with_columns(
        *(pl.col(name) * factor for name in real),
        pl.Series("is_running", rng.random(later.height) < 0.5),
        pl.Series("run_number", rng.integers(0, 9, later.height), dtype=pl.Int32),
        pl.Series("machine_id", rng.integers(1, 4, later.height), dtype=pl.Int64),
    )
    whole = pl.concat([known, later])
    order = ("collection_id", "instance_index", "end_time_us", "start_time_us")
    return whole.with_columns(
        pl.lit(5, pl.Int8).alias("next_terminal_type"), (pl.col("end_time_us") + 1).alias("next_terminal_time_us")
    ).sort(order, maintain_order=True)


def _events(events: pl.DataFrame, at_us: int, rng: np.random.Generator, *, types: int) -> pl.DataFrame:
    """Later events thinned out, at other times still after ``at_us``, of other types; their order kept by time."""
    known, later = _split(events, "time_us", at_us, rng)
    span = 4 * 3_600_000_000
    moved = later.with_columns(
        pl.Series(
            "time_us", np.minimum(at_us + 1 + rng.integers(0, span, later.height), AFTER_TRACE_US), dtype=pl.Int64
        ),
        pl.Series("type", rng.integers(0, types, later.height), dtype=pl.Int8),
    )
    return pl.concat([known, moved])
