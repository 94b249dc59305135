"""A measure and the collections of its rows → how far the measure would have moved with other collections.

Rows of one collection share their fate, so rows are no independent draws: whole (cell, collection_id) are drawn with
replacement. A draw is a number of times for each collection, never a copy of rows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from leadtime.risk.measures import Array, Whole

DRAWS = 200
LOW, HIGH = 0.025, 0.975


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The middle 95 % of the draws, and their standard deviation. NaN where no draw gave a number."""

    low: float
    high: float
    se: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Which collection each row belongs to: ``code`` [rows], 0 … count - 1."""

    code: Whole
    count: int


def groups_of(frame: pl.DataFrame) -> Groups:
    """Number the (cell, collection_id) of ``frame``'s rows; an id that two cells use is two collections (T12)."""
    cells, cell = np.unique(frame["cell"].cast(pl.String).to_numpy(), return_inverse=True)
    _, collection = np.unique(frame["collection_id"].to_numpy(), return_inverse=True)
    known, code = np.unique(collection.astype(np.int64) * max(len(cells), 1) + cell, return_inverse=True)
    return Groups(code=code.astype(np.int64), count=len(known))


def draws(count: int, *, n: int, seed: int) -> Iterator[Array]:
    """``n`` draws of ``count`` collections out of ``count``, with replacement: times each was drawn [count]."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, count]))
    for _ in range(n):
        yield np.bincount(generator.integers(0, max(count, 1), size=count), minlength=count).astype(np.float64)


def by_group(metric: Callable[[Array], float], count: int, *, n: int = DRAWS, seed: int) -> Interval:
    """The interval of ``metric(times)``, ``times`` [count] being how often each collection was drawn."""
    return interval([metric(times) for times in draws(count, n=n, seed=seed)])


def by_collection(metric: Callable[[Array], float], frame: pl.DataFrame, *, n: int = DRAWS, seed: int) -> Interval:
    """The interval of ``metric(weight)``, ``weight`` [rows] being how often each row's collection was drawn.

    ``frame``: columns cell and collection_id, rows as the metric's arrays. A metric of two scores on the same rows
    gives the paired interval of their difference. Equal seeds give equal draws.
    """
    groups = groups_of(frame)
    return by_group(lambda times: metric(times[groups.code]), groups.count, n=n, seed=seed)


def interval(values: list[float]) -> Interval:
    """Draws of a measure → its interval; draws without a value (no positive was drawn) are left out."""
    known = np.asarray([value for value in values if np.isfinite(value)])
    if len(known) < 2:
        return Interval(low=float("nan"), high=float("nan"), se=float("nan"))
    low, high = np.quantile(known, [LOW, HIGH])
    return Interval(low=float(low), high=float(high), se=float(known.std(ddof=1)))
