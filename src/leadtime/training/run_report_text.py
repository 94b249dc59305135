"""metrics.json → a text a terminal can show. An average precision never stands without base rate and lift beside it."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

NOTHING = "–"
WIDTH = 100
Fields = Mapping[str, Any]


def metrics_text(metrics: Fields) -> str:
    """The whole text, one line a fact, at most about 100 columns wide."""
    lines = [*_head(metrics), "", *_horizons(metrics), "", *_alerts(metrics)]
    for title, key in (("floors", "floors"), ("by view", "views"), ("by cell", "by_cell"), ("by tier", "by_tier")):
        if metrics.get(key):
            lines += ["", *_parts(title, metrics[key])]
    if metrics.get("by_cause"):
        lines += ["", *_causes(metrics["by_cause"])]
    return "\n".join([*lines, "", *_gates(metrics), "", *_exclusions(metrics)]) + "\n"


def share(value: float | None) -> str:
    """A ratio in percent, small ones with the digits they need."""
    if value is None:
        return NOTHING
    if value == 0:
        return "0 %"
    return f"{100 * value:.3g} %" if abs(value) < 0.1 else f"{100 * value:.1f} %"


def four(value: float | None) -> str:
    """A measure with four digits."""
    return NOTHING if value is None else f"{value:.4f}"


def times(value: float | None) -> str:
    """A lift."""
    return NOTHING if value is None else f"{value:.1f}×"


def spread(fields: Fields, name: str, key: str | None = None) -> Fields:
    """The interval of a measure; empty where there is none."""
    found = (fields.get("intervals") or {}).get(name) or {}
    return (found.get(key) or {}) if key is not None else found


def between(interval: Fields, form: str = "{:.4f}") -> str:
    """``0.1200–0.1400``, or a dash."""
    low, high = interval.get("low"), interval.get("high")
    return NOTHING if low is None or high is None else f"{form.format(low)}–{form.format(high)}"


def _head(metrics: Fields) -> Iterator[str]:
    yield f"{metrics['name']} ({metrics['kind']}), data {str(metrics['data_hash'])[:16] or 'without a hash'}"
    if not metrics["usable"]:
        yield "UNUSABLE: a gate failed; the numbers below are not to be believed until it is explained"
    if metrics.get("sentence"):
        yield str(metrics["sentence"])


def _horizons(metrics: Fields) -> Iterator[str]:
    optimum = any("bayes_average_precision" in fields for fields in metrics["horizons"].values())
    yield f"{'horizon':>8} {'AP':>7} {'95 %':>15} {'base rate':>10} {'lift':>7} {'ECE':>8} {'mean p / base':>14}" + (
        f" {'best AP':>8}" if optimum else ""
    )
    for minutes, fields in metrics["horizons"].items():
        line = (
            f"{minutes + ' min':>8} {four(fields['average_precision']):>7} "
            f"{between(spread(fields, 'average_precision')):>15} {share(fields['base_rate']):>10} "
            f"{times(fields['lift']):>7} {_small(fields['ece']):>8} {four(fields['calibration_in_the_large']):>14}"
        )
        yield line + (f" {four(fields.get('bayes_average_precision')):>8}" if optimum else "")
    yield "95 %: over collections drawn anew. Base rate: the AP of a score that knows nothing. Lift: AP / base rate."


def _small(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2g}"


def _alerts(metrics: Fields) -> Iterator[str]:
    primary = str(metrics["primary_min"])
    fields = metrics["horizons"][primary]
    if not fields.get("precision_at_k"):
        yield "alerts: nothing can be said, the negatives were sampled"
        return
    yield f"alerts, one a run, failure within {primary} min (base rate {share(fields['base_rate'])} of rows)"
    yield f"{'a day':>8} {'alerts':>8} {'precision':>10} {'95 %':>15} {'recall':>8} {'95 %':>15}"
    for k, precision in fields["precision_at_k"].items():
        yield (
            f"{k:>8} {fields['alerts_at_k'][k]:>8,} {share(precision):>10} "
            f"{between(spread(fields, 'precision_at_k', k), '{:.3f}'):>15} {share(fields['recall_at_k'][k]):>8} "
            f"{between(spread(fields, 'recall_at_k', k), '{:.3f}'):>15}"
        )
    if recall_falls(fields):
        yield "  recall falls: more alerts a day are raised sooner, once a run, some too soon to be right"
    lead = fields.get("lead_time_s") or {}
    if lead.get("quantiles"):
        said = ", ".join(f"{name} {value:,.0f} s" for name, value in lead["quantiles"].items())
        ahead = ", ".join(f"{share(part)} at least {need} s" for need, part in lead["share_at_least"].items())
        yield f"lead time of {lead['true_alerts']:,} true alerts at {lead['alerts_per_day']} a day: {said}"
        yield f"  {ahead}"
    late = fields.get("delayed")
    if late:
        yield (
            f"scores that arrive {late['delay_s']} s late: AP {four(late['average_precision'])}, "
            f"base rate {share(late['base_rate'])}"
        )


def recall_falls(fields: Fields) -> bool:
    """True where more alerts a day find fewer failing runs: alerts are one a run, at its first crossing."""
    known = [value for value in (fields.get("recall_at_k") or {}).values() if value is not None]
    return any(later < earlier for earlier, later in pairwise(known))


def _parts(title: str, parts: Mapping[str, Fields]) -> Iterator[str]:
    yield f"{title:<43} {'rows':>12} {'AP':>7} {'95 %':>15} {'base rate':>10} {'lift':>7}"
    for name, fields in parts.items():
        yield (
            f"{name[:43]:<43} {fields['rows']:>12,} {four(fields['average_precision']):>7} "
            f"{between(spread(fields, 'average_precision')):>15} {share(fields['base_rate']):>10} "
            f"{times(fields['lift']):>7}"
        )


def _causes(causes: Mapping[str, Fields]) -> Iterator[str]:
    yield f"{'how runs ended within the horizon':<43} {'runs':>12} {'alerted':>8} {'recall':>8} {'of all alerts':>14}"
    for name, fields in causes.items():
        label = f"{name} (foretold)" if fields["foretold"] else name
        yield (
            f"{label:<43} {fields['ended_runs']:>12,} {fields['alerted']:>8,} {share(fields['recall_at_k']):>8} "
            f"{share(fields['share_of_alerts']):>14}"
        )


def _gates(metrics: Fields) -> Iterator[str]:
    told = [gate for gate in metrics["gates"] if gate.get("standing") in {"failed", "allowed"}]
    passed = sum(gate.get("standing") == "passed" for gate in metrics["gates"])
    open_ = sum(gate.get("standing") == "not_examined" for gate in metrics["gates"])
    yield f"gates: {passed} passed, {len(told)} failed or allowed, {open_} not examined"
    for gate in told:
        where = f" ({gate['where']})" if gate.get("where") else ""
        yield f"  {gate['standing']}: {gate['name']}{where}: {gate['sentence']}"
        yield f"    measured {gate.get('measured')}, limit {gate.get('limit')}; {gate.get('cure') or 'allowed by name'}"


def _exclusions(metrics: Fields) -> Iterator[str]:
    exclusions = metrics.get("exclusions") or {}
    if not exclusions:
        yield "exclusions: the data set counts none"
        return
    yield "rows without a label, by reason"
    for name, counted in exclusions.items():
        said = (
            ", ".join(f"{why} {n:,}" for why, n in counted.items()) if isinstance(counted, Mapping) else f"{counted:,}"
        )
        yield f"  {name}: {said or 'none'}"
