"""Rows of a forecaster data set → what one feature, shuffled labels and a random column can find. Quick models only.

Half of the collections teach, the other half judges. The models are small: they need not be good, only good enough
that a column which knows the future stands out against everything else together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import xgboost

from leadtime.risk.bootstrap import by_group, groups_of
from leadtime.risk.leaks import Finding, Probe
from leadtime.risk.measures import average_precision, ranked
from leadtime.risk.splits import by_collection
from leadtime.training.sampling import Array, matrix_of

SAMPLE_ROWS = 200_000
FEWEST_POSITIVES = 50  # in either half; below it an average precision says nothing
SUSPECTS = 3  # strongest single features that are held against all others
BEST_ALONE = 1.3  # a feature that finds more than 1.3 times what all others together find knows something they cannot
HALVED = 0.5  # borg-trace §2.3: "a feature whose removal halves AP"
ABOVE_BASE = 3.0  # a model below three times the base rate has nothing to halve
SURE_SE = 3.0
BINS = 32
ROUNDS = 40
PLACEBOS = 5
DRAWS = 25
PARAMETERS = {
    "objective": "binary:logistic", "tree_method": "hist", "max_depth": 4, "eta": 0.2, "min_child_weight": 5.0,
    "subsample": 0.8, "colsample_bytree": 0.5, "verbosity": 0, "nthread": 2,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Half:
    """One half's rows: features [n, f] with NaN for missing, labels 0 or 1, collection codes from 0."""

    x: Array
    y: Array
    collection: Array
    collections: int

    @property
    def base(self) -> float:
        """Share of failures."""
        return float(self.y.mean()) if len(self.y) else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """An average precision with its standard error over collections."""

    ap: float
    se: float

    def to_json(self) -> dict[str, float | None]:
        """Null where there is none."""
        return {"ap": _plain(self.ap), "se": _plain(self.se)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What the learning probes saw. ``enough``: both halves hold FEWEST_POSITIVES; without it there are no findings."""

    enough: bool
    rows: int
    base: float
    everything: Measured
    single: Mapping[str, float]
    without: Mapping[str, float]
    shuffled: Measured
    shuffled_most: float  # what the collections' own rates would find
    placebo: Measured
    findings: tuple[Finding, ...]

    def to_json(self) -> dict[str, object]:
        """As the report has it; single features by falling average precision."""
        return {
            "examined": self.enough, "rows": self.rows, "base_rate": _plain(self.base),
            "all_features": self.everything.to_json(),
            "single_feature_ap": {name: _plain(ap) for name, ap in self.single.items()},
            "ap_without": {name: _plain(ap) for name, ap in self.without.items()},
            "label_shuffle": {**self.shuffled.to_json(), "most": _plain(self.shuffled_most)},
            "placebo": self.placebo.to_json(),
        }  # fmt: skip


def learn(parts: Sequence[Path], names: Sequence[str], *, horizon_min: int, seed: int) -> Learned:
    """Read whole collections of ``parts`` up to SAMPLE_ROWS rows and run the three probes. ``names``: the columns."""
    rows = _rows(parts, names, horizon_min)
    teach, judge = (_half(rows.filter(where), names, horizon_min) for where in (~_judging(seed), _judging(seed)))
    none = Measured(ap=float("nan"), se=float("nan"))
    if min(teach.y.sum(), judge.y.sum()) < FEWEST_POSITIVES:
        return Learned(
            enough=False, rows=rows.height, base=judge.base, everything=none, single={}, without={}, shuffled=none,
            shuffled_most=float("nan"), placebo=none, findings=(),
        )  # fmt: skip
    everything = _measured(judge, _scores(teach, judge, range(len(names)), seed))
    single = {name: _alone(teach, judge, at) for at, name in enumerate(names)}
    single = dict(sorted(single.items(), key=lambda entry: -entry[1]))
    without, findings = _suspects(teach, judge, names, single, everything, seed=seed)
    shuffled, most, wrong = _shuffle(teach, judge, seed)
    placebo, also = _placebo(judge, seed)
    return Learned(
        enough=True, rows=rows.height, base=judge.base, everything=everything, single=single, without=without,
        shuffled=shuffled, shuffled_most=most, placebo=placebo, findings=(*findings, *wrong, *also),
    )  # fmt: skip


def _rows(parts: Sequence[Path], names: Sequence[str], horizon_min: int) -> pl.DataFrame:
    """Labelled rows of the first whole parts, cut at SAMPLE_ROWS to whole collections."""
    frames: list[pl.DataFrame] = []
    room = SAMPLE_ROWS
    for part in parts:
        frame = (
            pl.scan_parquet(part).filter(pl.col(f"y_{horizon_min}").is_not_null())
            .select("cell", "collection_id", f"y_{horizon_min}", *names).head(room + 1).collect()
        )  # fmt: skip
        if frame.height > room:
            last = frame["collection_id"][-1]
            frame = frame.filter(pl.col("collection_id") != last)
        frames.append(frame)
        room -= frame.height
        if room <= 0 or len(frame) == 0:
            break
    return pl.concat(frames)


def _judging(seed: int) -> pl.Expr:
    return by_collection(0.5, seed=seed)


def _half(rows: pl.DataFrame, names: Sequence[str], horizon_min: int) -> Half:
    groups = groups_of(rows)
    return Half(
        x=matrix_of(rows, names), y=rows[f"y_{horizon_min}"].to_numpy().astype(np.float64),
        collection=groups.code, collections=groups.count,
    )  # fmt: skip


def _scores(teach: Half, judge: Half, columns: Sequence[int], seed: int, labels: Array | None = None) -> Array:
    """A small model of these columns, taught on one half, on the rows of the other."""
    kept = list(columns)
    y = teach.y if labels is None else labels
    model = xgboost.train({**PARAMETERS, "seed": seed}, xgboost.DMatrix(teach.x[:, kept], y), ROUNDS)
    scores: Array = model.predict(xgboost.DMatrix(judge.x[:, kept]))
    return scores


def _measured(judge: Half, score: Array, labels: Array | None = None) -> Measured:
    order = ranked(judge.y if labels is None else labels, score, group=judge.collection)
    error = by_group(order.average_precision, judge.collections, n=DRAWS, seed=1).se
    return Measured(ap=order.average_precision(), se=error)


def _alone(teach: Half, judge: Half, at: int) -> float:
    """AP of one column by the failure rate of its value's bin in the teaching half; missing is a bin of its own."""
    return average_precision(judge.y, _bin_rates(teach, judge, at))


def _bin_rates(teach: Half, judge: Half, at: int) -> Array:
    values = teach.x[:, at]
    known = values[~np.isnan(values)]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1])) if len(known) else np.empty(0)

    def bins(column: Array) -> Array:
        place: Array = np.searchsorted(edges, column, side="right")
        return np.where(np.isnan(column), len(edges) + 1, place)

    where = bins(values)
    seen = np.bincount(where, minlength=len(edges) + 2) + 1.0
    rate = (np.bincount(where, weights=teach.y, minlength=len(edges) + 2) + teach.base) / seen
    rates: Array = rate[bins(judge.x[:, at])]
    return rates


def _suspects(
    teach: Half, judge: Half, names: Sequence[str], single: Mapping[str, float], everything: Measured, *, seed: int
) -> tuple[dict[str, float], list[Finding]]:
    """The strongest single features against all others together."""
    without: dict[str, float] = {}
    findings = []
    for name in list(single)[:SUSPECTS]:
        at = names.index(name)
        others = [column for column in range(len(names)) if column != at]
        left = average_precision(judge.y, _scores(teach, judge, others, seed)) if others else judge.base
        without[name] = left
        alone = _measured(judge, _bin_rates(teach, judge, at))
        if alone.ap - SURE_SE * alone.se > BEST_ALONE * left:
            findings.append(
                Finding(
                    probe=Probe.SINGLE, feature=name,
                    sentence=f"alone it has AP {alone.ap:.4f}, all other features together {left:.4f}; it knows more "
                    f"than they can (limit {BEST_ALONE:g} times), leave it out or show where it comes from",
                )
            )  # fmt: skip
        elif everything.ap > ABOVE_BASE * judge.base and left + SURE_SE * everything.se < HALVED * everything.ap:
            findings.append(
                Finding(
                    probe=Probe.SINGLE, feature=name,
                    sentence=f"without it AP falls from {everything.ap:.4f} to {left:.4f}, to less than half; leave it "
                    "out or show where it comes from",
                )
            )  # fmt: skip
    return without, findings


def _shuffle(teach: Half, judge: Half, seed: int) -> tuple[Measured, float, list[Finding]]:
    """Labels shuffled within each collection: all that may be left is what tells collections apart."""
    rng = np.random.default_rng(seed)
    taught, judged = (_within(half, rng) for half in (teach, judge))
    shuffled = _measured(judge, _scores(teach, judge, range(teach.x.shape[1]), seed, taught), judged)
    rate = np.bincount(judge.collection, weights=judge.y, minlength=judge.collections) / np.maximum(
        np.bincount(judge.collection, minlength=judge.collections), 1
    )
    most = average_precision(judged, rate[judge.collection])
    if shuffled.ap - SURE_SE * shuffled.se <= most:
        return shuffled, most, []
    sentence = (
        f"with labels shuffled within collections AP is {shuffled.ap:.4f}; collections' own rates explain {most:.4f}: "
        "rows of both halves share something"
    )
    return shuffled, most, [Finding(probe=Probe.SHUFFLE, feature=None, sentence=sentence)]


def _within(half: Half, rng: np.random.Generator) -> Array:
    """The labels in another order within each collection."""
    by_code = np.argsort(half.collection, kind="stable")
    drawn = np.lexsort((rng.random(len(half.y)), half.collection))
    out = np.empty_like(half.y)
    out[by_code] = half.y[drawn]
    return out


def _placebo(judge: Half, seed: int) -> tuple[Measured, list[Finding]]:
    """Columns of random numbers: the best of them may not beat the base rate beyond chance."""
    rng = np.random.default_rng(seed)
    found = [_measured(judge, rng.random(len(judge.y))) for _ in range(PLACEBOS)]
    middle = sorted(found, key=lambda one: one.ap)[PLACEBOS // 2]
    if middle.ap - SURE_SE * middle.se <= judge.base:
        return middle, []
    sentence = f"a random column has AP {middle.ap:.4f} at a base rate of {judge.base:.4f}: the measure is wrong"
    return middle, [Finding(probe=Probe.PLACEBO, feature=None, sentence=sentence)]


def _plain(value: float) -> float | None:
    return None if not np.isfinite(value) else round(float(value), 6)
