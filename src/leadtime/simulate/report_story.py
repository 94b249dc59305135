"""Ticks and runs → what a reader wants told: decisions in spans, decisions that did harm, forecasts that missed.

Additive to the stable contract, under ``story``; report.html is drawn from it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from leadtime.scorecard import forecasts, harm, misses
from leadtime.scorecard.digest import DecisionDigest, TickDigest
from leadtime.scorecard.run import WorldRun
from leadtime.simulate.report_fields import plain, with_reasons
from leadtime.simulate.report_instants import instant

MAX_SPANS = 60
MAX_HARMS = 20
MAX_MISSES = 12
SAME_SPAN_S = 600


def build(runs: Mapping[str, WorldRun], ticks: Sequence[TickDigest], workloads: Sequence[str]) -> dict[str, Any]:
    """The story of leadtime's world; empty lists where there is none."""
    spans = _spans(ticks)
    harms, missed = [], []
    for workload in workloads:
        if "leadtime" not in runs:
            continue
        ours = runs["leadtime"].workloads[workload]
        if "hpa" in runs:
            harms += [_harm(found) for found in harm.find_harm(ticks, ours, runs["hpa"].workloads[workload])]
        points = forecasts.points_from(ticks, workload)
        missed += [
            _miss(workload, found)
            for found in misses.worst_misses(points, forecasts.actual_series(ours), at_most=MAX_MISSES)
        ]
    story: dict[str, Any] = plain(
        {
            "decisions_total": sum(len(tick.decisions) for tick in ticks),
            "decision_spans_total": len(spans),
            "decision_spans": spans[:MAX_SPANS],
            "harms_total": len(harms),
            "harms": harms[:MAX_HARMS],
            "missed_forecasts": missed,
        }
    )
    return story


def _spans(ticks: Sequence[TickDigest]) -> list[dict[str, Any]]:
    """Decisions with an action; those of one scope, action and reason at most 10 min apart are told as one."""
    spans: list[dict[str, Any]] = []
    open_spans: dict[tuple[str, str, str], tuple[int, dict[str, Any]]] = {}
    for tick in ticks:
        for decision in tick.decisions:
            if decision.action is None:
                continue
            key = (decision.scope, decision.action, decision.reason)
            last_s, span = open_spans.get(key, (None, None))
            if span is None or last_s is None or tick.as_of_s - last_s > SAME_SPAN_S:
                span = _new_span(tick, decision)
                spans.append(span)
            _extend(span, tick.as_of_s, decision)
            open_spans[key] = (tick.as_of_s, span)
    return spans


def _new_span(tick: TickDigest, decision: DecisionDigest) -> dict[str, Any]:
    return {
        "first_at": instant(tick.as_of_s), "last_at": instant(tick.as_of_s), "decisions": 0, "scope": decision.scope,
        "workloads": [state.workload for state in tick.workloads if decision.scope in tick.own_scopes(state.workload)],
        "agent": decision.agent, "action": decision.action, "asks_first": decision.asks, "asks_last": decision.asks,
        "reason": decision.reason, "sentence": decision.sentence, "lost": [],
    }  # fmt: skip


def _extend(span: dict[str, Any], at_s: int, decision: DecisionDigest) -> None:
    span["last_at"] = instant(at_s)
    span["decisions"] += 1
    span["asks_last"] = decision.asks
    told = {(lost["agent"], lost["reason"]) for lost in span["lost"]}
    for lost in decision.lost:
        if (lost.agent, lost.reason) not in told:
            told.add((lost.agent, lost.reason))
            span["lost"].append({"agent": lost.agent, "reason": lost.reason, "sentence": lost.sentence})


def _harm(found: harm.Harm) -> dict[str, Any]:
    return {
        "first_at": instant(found.first_at_s), "last_at": instant(found.last_at_s), "decisions": found.decisions,
        "scope": found.scope, "reason": found.reason, "asks": found.asks, "kinds": [kind.value for kind in found.kinds],
        "extra_unserved_requests": found.extra_unserved_requests,
        "extra_pending_pod_minutes": found.extra_pending_pod_minutes, "extra_pod_hours": found.extra_pod_hours,
    }  # fmt: skip


def _miss(workload: str, found: misses.Miss) -> dict[str, Any]:
    written = {
        "workload": workload, "issued_at": instant(found.issued_at_s), "about": instant(found.about_s),
        "expected": found.expected, "lower": found.lower, "upper": found.upper, "actual": found.actual,
        "error_ratio": found.error_ratio, "misses": found.misses,
    }  # fmt: skip
    return with_reasons(written, {"error_ratio": "the actual value was 0"})
