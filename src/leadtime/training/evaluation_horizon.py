"""Rows scored for one horizon → its measures with intervals, as they stand in metrics.json.

Intervals come from drawing whole collections. Measures that add up over rows are added up by collection first, so that
a draw costs as much as there are collections, not rows.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import MINUTE_US, Cause
from leadtime.risk import alerts, bootstrap, measures
from leadtime.risk.measures import Array, Whole

DELAY_S = 60  # metrics reach a live system late; the same scores judged by what was still ahead of them then
EXTRA = ("bayes", "memoryless")  # columns of the truth: the best score there is, and the best of the last window alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What an evaluation was asked for."""

    alerts_per_day: tuple[int, ...]
    draws: int
    seed: int
    failure_is_self: bool = True  # failure types are FAIL alone, so that cause "self" tells a failure


def number(value: float | None) -> float | None:
    """A number as JSON has it: NaN and None are null."""
    return None if value is None or not math.isfinite(value) else float(value)


def written(interval: bootstrap.Interval) -> dict[str, float | None]:
    """An interval as JSON has it."""
    return {name: number(value) for name, value in asdict(interval).items()}


def horizon(rows: pl.DataFrame, minutes: int, asked: Asked) -> dict[str, Any]:
    """Measure ``rows``: key, run, day, tie, y (0/1), p, weight, next_terminal_*; optional bayes, memoryless."""
    groups = bootstrap.groups_of(rows)
    y, weight = column(rows, "y"), column(rows, "weight")
    scores = {"p": column(rows, "p")} | {
        name: column(rows, name) for name in EXTRA if name in rows.columns and not rows[name].null_count()
    }
    measure = _measure(y, weight, scores, groups)
    sampled = list(bootstrap.draws(groups.count, n=asked.draws, seed=asked.seed))
    values = measure(np.ones(groups.count))
    drawn = [measure(times) for times in sampled]
    found = _alerts(rows, groups, sampled, asked) if bool((weight == 1).all()) else {}
    return {
        "rows": rows.height,
        "positives": int(y.sum()),
        "failing_runs": rows.filter(pl.col("y") == 1)["run"].n_unique(),
        "collections": groups.count,
        **{name: number(value) for name, value in values.items()},
        **{name: value for name, value in found.items() if name != "intervals"},
        "delayed": _delayed(rows, minutes) if asked.failure_is_self else None,
        "intervals": {name: written(bootstrap.interval([draw[name] for draw in drawn])) for name in values}
        | found.get("intervals", {}),
        "charts": _charts(y, weight, scores, rows),
    }


def _charts(y: Array, weight: Array, scores: Mapping[str, Array], rows: pl.DataFrame) -> dict[str, Any]:
    """What a page draws: precision against recall, and what happened against what was foretold, bin by bin."""
    curves = {
        name: asdict(measures.precision_recall_curve(y, scores[name], weight))
        for name in ("p", "bayes")
        if name in scores
    }
    bins = measures.equal_mass_bins(y, scores["p"], weight)
    held = bins.weight > 0
    return {
        "precision_recall": curves,
        "calibration": {
            "foretold": (bins.foretold[held] / bins.weight[held]).tolist(),
            "happened": (bins.happened[held] / bins.weight[held]).tolist(),
        },
        "failures_by_day": {
            str(day): count
            for day, count in rows.filter(pl.col("y") == 1).group_by("day").len().sort("day").iter_rows()
        },
    }


def column(rows: pl.DataFrame, name: str) -> Array:
    """One column as floats."""
    return np.asarray(rows[name].cast(pl.Float64).to_numpy(), dtype=np.float64)


def _measure(
    y: Array, weight: Array, scores: Mapping[str, Array], groups: bootstrap.Groups
) -> Callable[[Array], dict[str, float]]:
    """A function of how often each collection was drawn → every measure, by name. ``scores["p"]`` is the model's."""
    mass, positive = _by_group(weight, groups), _by_group(weight * y, groups)
    ranks = {name: measures.ranked(y, score, weight, groups.code) for name, score in scores.items()}
    judged = {name: score for name, score in scores.items() if name != "memoryless"}
    foretold = {name: _by_group(weight * score, groups) for name, score in judged.items()}
    squared = {name: _by_group(weight * (score - y) ** 2, groups) for name, score in judged.items()}
    ece = {name: _ece(y, score, weight, groups, mass) for name, score in judged.items()}

    def at(times: Array) -> dict[str, float]:
        precision = {name: rank.average_precision(times) for name, rank in ranks.items()}
        rows, failures = float(times @ mass), float(times @ positive)
        base = _divided(failures, rows)
        found = {"average_precision": precision["p"], "base_rate": base, "lift": _divided(precision["p"], base)}
        found["mean_probability"] = _divided(float(times @ foretold["p"]), rows)
        found["calibration_in_the_large"] = _divided(float(times @ foretold["p"]), failures)
        found |= {_suffixed("brier", name): _divided(float(times @ sums), rows) for name, sums in squared.items()}
        found |= {_suffixed("ece", name): error(times) for name, error in ece.items()}
        found |= {f"{name}_average_precision": precision[name] for name in EXTRA if name in precision}
        if "bayes" in precision:
            found["share_of_bayes"] = _divided(precision["p"], precision["bayes"])
        return found

    return at


def _suffixed(measure: str, score: str) -> str:
    return measure if score == "p" else f"{measure}_{score}"


def _by_group(values: Array, groups: bootstrap.Groups) -> Array:
    return measures.sums(groups.code, values, groups.count)


def _ratio(above: Array, below: Array) -> Callable[[Array], float]:
    return lambda times: _divided(float(times @ above), float(times @ below))


def _divided(above: float, below: float) -> float:
    return above / below if below > 0 else float("nan")


def _ece(y: Array, p: Array, weight: Array, groups: bootstrap.Groups, mass: Array) -> Callable[[Array], float]:
    """Error by bin, its cuts held fixed: collections drawn anew move what happened in a bin, not where it begins."""
    bins = measures.ECE_BINS
    place: Whole = groups.code * bins + measures.bin_of(p, weight, bins=bins)
    gap = np.bincount(place, weights=weight * (p - y), minlength=groups.count * bins).reshape(groups.count, bins)
    return lambda times: _divided(float(np.abs(times @ gap).sum()), float(times @ mass))


def _alerts(rows: pl.DataFrame, groups: bootstrap.Groups, sampled: list[Array], asked: Asked) -> dict[str, Any]:
    """Precision and recall by budget, and lead times at the reference budget; the draws hold the thresholds fixed."""
    rows = rows.with_columns(pl.Series("code", groups.code))
    per_run = rows.filter(pl.col("y") == 1).unique("run")["code"].to_numpy()
    failing = np.bincount(per_run, minlength=groups.count).astype(np.float64)
    found: dict[str, Any] = {"precision_at_k": {}, "recall_at_k": {}, "alerts_at_k": {}, "intervals": {}}
    spread = found["intervals"]
    spread["precision_at_k"], spread["recall_at_k"] = {}, {}
    for per_day, chosen in alerts.choose_each(rows, per_day=asked.alerts_per_day, score="p").items():
        code, true = chosen["code"].to_numpy(), chosen["y"].to_numpy().astype(np.float64)
        raised = np.bincount(code, minlength=groups.count).astype(np.float64)
        hits = np.bincount(code, weights=true, minlength=groups.count).astype(np.float64)
        every = np.ones(groups.count)
        found["alerts_at_k"][str(per_day)] = chosen.height
        for name, measure in (("precision_at_k", _ratio(hits, raised)), ("recall_at_k", _ratio(hits, failing))):
            found[name][str(per_day)] = number(measure(every))
            spread[name][str(per_day)] = written(bootstrap.interval([measure(times) for times in sampled]))
        if per_day == reference(asked.alerts_per_day):
            found["lead_time_s"] = lead_times(chosen.filter(pl.col("y") == 1), per_day)
            spread["lead_time_s"] = _lead_spread(chosen.filter(pl.col("y") == 1), sampled)
    return found


def reference(alerts_per_day: tuple[int, ...]) -> int:
    """The budget that lead times and tables are told at: 100 a day where it was asked for, else the smallest."""
    asked = alerts_per_day
    return alerts.REFERENCE_PER_DAY if alerts.REFERENCE_PER_DAY in asked else min(asked)


def lead_times(true_alerts: pl.DataFrame, per_day: int) -> dict[str, Any]:
    """Lead times of true alerts as JSON has them."""
    lead = alerts.lead_time_quantiles(true_alerts)
    return {
        "alerts_per_day": per_day,
        "true_alerts": lead.alerts,
        "quantiles": {f"p{round(100 * q)}": number(value) for q, value in lead.quantiles_s.items()},
        "share_at_least": {str(need): number(share) for need, share in lead.share_at_least.items()},
        "minutes": _by_minute(true_alerts),
    }


def _by_minute(true_alerts: pl.DataFrame) -> dict[str, int]:
    """Whole minutes of lead time → true alerts with it."""
    minutes = true_alerts.select(m=(pl.col("next_terminal_time_us") - pl.col("end_time_us")) // MINUTE_US)
    return {str(m): n for m, n in minutes.drop_nulls().group_by("m").len().sort("m").iter_rows()}


def _lead_spread(true_alerts: pl.DataFrame, sampled: list[Array]) -> dict[str, float | None]:
    """Interval of the median lead time: true alerts of the drawn collections, each as often as drawn."""
    known = true_alerts.filter(pl.col("next_terminal_time_us").is_not_null())
    lead_s = ((known["next_terminal_time_us"] - known["end_time_us"]) / 1e6).to_numpy()
    order = np.argsort(lead_s, kind="stable")
    code, lead_s = known["code"].to_numpy()[order], lead_s[order]
    medians = []
    for times in sampled:
        mass = np.cumsum(times[code])
        medians.append(float(lead_s[np.searchsorted(mass, mass[-1] / 2)]) if len(mass) and mass[-1] else float("nan"))
    return written(bootstrap.interval(medians))


def _delayed(rows: pl.DataFrame, minutes: int) -> dict[str, Any]:
    """The same scores when they arrive DELAY_S late: label interval (p + d, p + d + H], runs over by p + d left out."""
    from_us = pl.col("end_time_us") + DELAY_S * 1_000_000
    until_us = from_us + minutes * MINUTE_US
    known_until = int(rows["end_time_us"].to_numpy().max()) + minutes * MINUTE_US
    over, ahead = pl.col("next_terminal_time_us"), pl.col("next_terminal_cause").cast(pl.String)
    seen = rows.filter((until_us <= known_until) & (over.is_null() | (over > from_us))).with_columns(
        late=(over.is_not_null() & (over <= until_us) & (ahead == Cause.SELF.value)).fill_null(value=False),
        unknown=((over <= until_us) & (ahead == Cause.UNKNOWN.value)).fill_null(value=False),
    )
    seen = seen.filter(~pl.col("unknown"))
    late, weight = seen["late"].to_numpy(), seen["weight"].to_numpy()
    return {
        "delay_s": DELAY_S,
        "rows": seen.height,
        "average_precision": number(measures.average_precision(late, seen["p"].to_numpy(), weight)),
        "base_rate": number(measures.base_rate(late, weight)),
    }
