"""Rows of features → which of them train, tune and test: by time with a purge, by collection, by cell.

A split is a set of boolean expressions over the key columns, so that it holds for any partition read alone. A split of
random rows isn't offered: rows of one run lie on both sides of it, and what is measured is memory (trap T10).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from leadtime.domain.borg import MINUTE_US

MIX = 0x9E3779B97F4A7C15  # an odd constant near 2^64 / golden ratio (Knuth's multiplicative hashing)
P = pl.col("end_time_us")


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """Rows of each side, and rows left out because their label looks across a cut."""

    train: int
    tune: int
    test: int
    purged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSplit:
    """Two cuts in time. A label at p sees (p, p + horizon], so it must be over by the cut: p + horizon ≤ cut.

    train: p + horizon ≤ ``tune_from_us``; tune: ``tune_from_us`` ≤ p and p + horizon ≤ ``test_from_us``; test: p ≥
    ``test_from_us``; between them purged. With equal cuts there is no tuning block.
    """

    tune_from_us: int
    test_from_us: int
    horizon_us: int

    @property
    def train(self) -> pl.Expr:
        """Rows to learn from."""
        return P + self.horizon_us <= self.tune_from_us

    @property
    def tune(self) -> pl.Expr:
        """Rows to calibrate and choose on."""
        return (self.tune_from_us <= P) & (P + self.horizon_us <= self.test_from_us)

    @property
    def test(self) -> pl.Expr:
        """Rows to measure on, opened once."""
        return self.test_from_us <= P

    @property
    def purged(self) -> pl.Expr:
        """Rows whose label looks across a cut."""
        return ~(self.train | self.tune | self.test)

    def count(self, frame: pl.LazyFrame | pl.DataFrame) -> Purged:
        """Rows of ``frame`` (column end_time_us) on each side."""
        sides = ("train", "tune", "test", "purged")
        counted = (
            frame.lazy().select(getattr(self, side).sum().alias(side) for side in sides).collect(engine="streaming")
        )
        return Purged(**{side: int(counted[side].item() or 0) for side in sides})


def by_time(
    frame: pl.LazyFrame | pl.DataFrame, *, train: float = 0.6, tune: float = 0.2, horizon_us: int = 60 * MINUTE_US
) -> TimeSplit:
    """Cut so that ``train`` and ``tune`` of the rows (0–1, before the purge) lie before the cuts; the rest tests.

    frame: column end_time_us (p). A cut stands on a p that occurs; rows at exactly the cut belong to the later side.
    Raises ValueError when the shares leave nothing to test on, or the frame is empty.
    """
    if not (0 < train < 1 and 0 <= tune < 1 and train + tune < 1):
        raise ValueError(f"shares train {train:g} and tune {tune:g} must be above 0 and leave something below 1")
    ends = frame.lazy().group_by("end_time_us").len().sort("end_time_us").collect(engine="streaming")
    if ends.is_empty():
        raise ValueError("there are no rows to split")
    return _cut(ends, train, tune, horizon_us)


def _cut(ends: pl.DataFrame, train: float, tune: float, horizon_us: int) -> TimeSplit:
    before = ends["len"].cum_sum() - ends["len"]
    share = before / ends["len"].sum()

    def at(wanted: float) -> int:
        return int(ends["end_time_us"][min(int((share < wanted).sum()), ends.height - 1)])

    tune_from = at(train)
    return TimeSplit(
        tune_from_us=tune_from, test_from_us=at(train + tune) if tune > 0 else tune_from, horizon_us=horizon_us
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """A rolling origin: learn from all before ``valid_from_us``, check on [valid_from_us, valid_until_us]."""

    valid_from_us: int
    valid_until_us: int
    horizon_us: int

    @property
    def train(self) -> pl.Expr:
        """Rows whose label is over by the fold's origin."""
        return P + self.horizon_us <= self.valid_from_us

    @property
    def valid(self) -> pl.Expr:
        """Rows to check on; their labels are over by the fold's end."""
        return (self.valid_from_us <= P) & (P + self.horizon_us <= self.valid_until_us)


def rolling_folds(
    frame: pl.LazyFrame | pl.DataFrame, split: TimeSplit, *, n: int = 3, first: float = 0.4
) -> tuple[Fold, ...]:
    """``n`` ≥ 3 folds inside the training block: origins after ``first`` of its rows, then evenly to its end.

    No fold reads past ``split.tune_from_us``. Raises ValueError when the block has too few distinct instants.
    """
    if n < 3:
        raise ValueError(f"{n} folds cannot tell luck from gain: at least 3")
    ends = (
        frame.lazy().filter(split.train).group_by("end_time_us").len().sort("end_time_us").collect(engine="streaming")
    )
    if ends.height < 2 * n:
        raise ValueError(f"the training block has {ends.height} instants, {n} folds need {2 * n}")
    share = (ends["len"].cum_sum() - ends["len"]) / ends["len"].sum()
    at = [int(ends["end_time_us"][int((share < first + (1 - first) * k / n).sum())]) for k in range(n)]
    until = [*at[1:], split.tune_from_us]
    return tuple(
        Fold(valid_from_us=start, valid_until_us=end, horizon_us=split.horizon_us)
        for start, end in zip(at, until, strict=True)
    )


def unit_hash(*, seed: int = 0, columns: Sequence[str] = ("cell", "collection_id")) -> pl.Expr:
    """A number in [0, 1) that depends on ``columns`` and ``seed`` alone: the same in every version and partition.

    Columns are text (the first 7 bytes count) or whole numbers.
    """
    mixed = pl.lit(seed, dtype=pl.UInt64) * MIX + 1
    for name in columns:
        mixed = mixed * MIX + _whole(name)  # mixed once, at the end: an expression used twice is written out twice
    return (_mix(mixed) // 2**11).cast(pl.Float64) / 2**53


def _whole(name: str) -> pl.Expr:
    if name == "cell":
        text = pl.col(name).cast(pl.String).str.encode("hex").str.slice(0, 14)
        return text.str.to_integer(base=16, dtype=pl.Int64).cast(pl.UInt64)
    return pl.col(name).cast(pl.Int64).reinterpret(signed=False)


def _mix(value: pl.Expr) -> pl.Expr:
    """Two rounds of shift, xor and multiplication (the finisher of splitmix64, with one constant); wraps at 2^64."""
    once = (value ^ (value // 2**30)) * 0xBF58476D1CE4E5B9
    twice = (once ^ (once // 2**27)) * 0x94D049BB133111EB
    return twice ^ (twice // 2**31)


def by_collection(share: float, *, seed: int = 0) -> pl.Expr:
    """True for the rows of about ``share`` (0–1) of the collections: held out of training, whole."""
    return unit_hash(seed=seed) < share


def by_cell(held_out: str) -> pl.Expr:
    """True for the rows of the cell held out of training."""
    return pl.col("cell").cast(pl.String) == held_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """What both sides of a split know: collections, and the test rows (share 0–1) that belong to them."""

    collections: int
    test_collections: int
    test_rows_ratio: float

    @property
    def clean(self) -> bool:
        """No collection of the test side was learnt from."""
        return self.collections == 0


def overlap(train: pl.LazyFrame | pl.DataFrame, test: pl.LazyFrame | pl.DataFrame) -> Overlap:
    """Collections that lie on both sides (T10). A split by time alone has them; it must be said, not hidden."""
    keys = ["cell", "collection_id"]
    learnt = train.lazy().select(keys).unique()
    tested = test.lazy().group_by(keys).len()
    both = tested.join(learnt.with_columns(learnt=True), on=keys, how="left")
    both = both.with_columns(pl.col("learnt").fill_null(value=False))
    counted = both.select(
        pl.col("learnt").sum().alias("collections"), pl.len().alias("test_collections"),
        pl.col("len").filter("learnt").sum().alias("shared"), pl.col("len").sum().alias("rows"),
    ).collect(engine="streaming")  # fmt: skip
    row = counted.row(0, named=True)
    return Overlap(
        collections=int(row["collections"] or 0),
        test_collections=int(row["test_collections"]),
        test_rows_ratio=float(row["shared"] / row["rows"]) if row["rows"] else 0.0,
    )
