"""Minutes of history → rows as a model will see them, each with the demand that came: what trees are grown on.

The history is walked with the memory that serves, so that training and serving cannot differ. Origins are thinned
evenly to a bounded number; each is asked about the product's horizon and some drawn ones: one model learns all.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, isnan

import numpy as np
import numpy.typing as npt

from leadtime.forecast import lag_features, lag_memory, lag_rows
from leadtime.forecast.lag_features import Matrix, Relative
from leadtime.forecast.model import MINUTE_S, FloatColumn
from leadtime.forecast.recent import KEPT_MINUTES

IntColumn = npt.NDArray[np.int64]
HORIZONS_MIN = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 60, 90, 120, 180)
ALWAYS_MIN = 10  # the horizon of the product's claims
DRAWN = 2  # further horizons an origin, drawn from HORIZONS_MIN
CHUNK = 1024
NOTE_EVERY = 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """``x`` (n, features); ``y`` (n,) logarithm of demand ÷ level; ``at_s`` (n,) when the demand came (epoch s)."""

    x: Matrix
    y: FloatColumn
    at_s: IntColumn

    @classmethod
    def together(cls, parts: "Sequence[Samples]") -> "Samples":
        """All rows of ``parts`` (at least one), in their order."""
        return cls(
            x=np.concatenate([p.x for p in parts]),
            y=np.concatenate([p.y for p in parts]),
            at_s=np.concatenate([p.at_s for p in parts]),
        )


def bucket_minutes(values: FloatColumn) -> int:
    """How many minutes each measured bucket was held over: the greatest common divisor of where values change.

    1 to 60. A forecast is only asked for at a bucket's end: in the middle of one the minutes that follow are known.
    """
    before, after = values[:-1], values[1:]
    changed = np.flatnonzero((before != after) & ~(np.isnan(before) & np.isnan(after))) + 1
    return gcd(*changed.tolist(), KEPT_MINUTES)


def samples(
    start_s: int, values: FloatColumn, *, zone: str, most_origins: int, seed: int,
    note: Callable[[float], None] = lambda _share: None,
) -> Samples:  # fmt: skip
    """Rows of the history [start_s, start_s + 60·len(values)), NaN a gap, from at most ``most_origins`` origins.

    ``note`` hears the share done; it may raise to stop. Equal input, equal rows.
    """
    numbers, found = walked(start_s, values, origins(values, most_origins), zone=zone, note=note)
    return asked(start_s, values, numbers, found, seed=seed)


def origins(values: FloatColumn, most: int) -> IntColumn:
    """Minute numbers after which to ask: ends of measured buckets, an hour after the first, thinned evenly to
    ``most``."""
    bucket = bucket_minutes(values)
    ends = np.arange(bucket - 1, len(values), bucket)
    ends = ends[ends >= KEPT_MINUTES]
    if len(ends) > most:
        ends = ends[np.linspace(0, len(ends) - 1, most).astype(np.intp)]
    return ends


def asked(start_s: int, values: FloatColumn, numbers: IntColumn, found: Relative, *, seed: int) -> Samples:
    """Each row of ``found``, taken after minute number ``numbers``, asked about horizons within ``values``."""
    generator = np.random.default_rng(seed)
    drawn = np.argsort(generator.random((len(numbers), len(HORIZONS_MIN))), axis=1)[:, :DRAWN]
    parts = []
    for j, ahead in enumerate(HORIZONS_MIN):
        which = np.flatnonzero((drawn == j).any(axis=1) | (ahead == ALWAYS_MIN))
        which = which[numbers[which] + ahead < len(values)]
        actual = values[numbers[which] + ahead]
        which, actual = which[~np.isnan(actual)], actual[~np.isnan(actual)]
        rows = found.take(which)
        at_s = start_s + (numbers[which] + ahead) * MINUTE_S
        x = lag_features.features(rows, (ahead,))[:, 0]
        parts.append(Samples(x=x, y=lag_features.target(rows, actual), at_s=at_s))
    return Samples.together(parts)


def walked(
    start_s: int, values: FloatColumn, ends: IntColumn, *, zone: str, note: Callable[[float], None]
) -> tuple[IntColumn, Relative]:
    """Minute numbers after which there is a row, among ``ends``, and the rows themselves."""
    wanted = set(ends.tolist())
    state = lag_memory.empty()
    numbers: list[int] = []
    waiting: list[FloatColumn] = []
    parts: list[Relative] = [lag_features.relative(np.empty((0, lag_rows.COLUMNS)))]
    for minute, value in enumerate(values.tolist()):
        state = lag_memory.add(state, start_s + minute * MINUTE_S, None if isnan(value) else value)
        if minute in wanted and (made := lag_rows.row(state, zone)) is not None:
            numbers.append(minute)
            waiting.append(made)
        if len(waiting) >= CHUNK:
            parts.append(lag_features.relative(np.stack(waiting)))
            waiting.clear()
        if minute % NOTE_EVERY == 0:
            note(minute / len(values))
    if waiting:
        parts.append(lag_features.relative(np.stack(waiting)))
    return np.array(numbers, dtype=np.int64), Relative.together(parts)
