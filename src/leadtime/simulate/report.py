"""Runs of all worlds and leadtime's ticks → the report of one replay, schema ``leadtime.report/1``.

A plain dict in a fixed order, ready for JSON: instants are RFC 3339 in UTC, floats are rounded, a field that has no
value is null with ``<field>_reason`` beside it. Equal inputs give equal bytes. docs/report.md describes every field.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from leadtime.domain.tick import Tick
from leadtime.scorecard import forecasts, surge_episodes, tallies
from leadtime.scorecard.compare import Comparison, compare
from leadtime.scorecard.digest import TickDigest, digest
from leadtime.scorecard.measures import WorkloadScore, score
from leadtime.scorecard.run import WorldRun
from leadtime.scorecard.timeline import Timeline, timeline
from leadtime.simulate import report_fields, report_minutes, report_story
from leadtime.simulate.report_instants import instant_or_none

SCHEMA = "leadtime.report/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Whether leadtime should act on this demand, in one sentence."""

    act: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPods:
    """What a sudden surge would have needed; a None has its reason in ``why_none``."""

    pods_needed: int | None
    gpu_hours_per_day: float | None
    why_none: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInputs:
    """All a report is made of.

    run_class: simulated | replayed | off-policy. runs: by world name, in the order they are shown. ticks: leadtime's;
    give ``digests`` instead where the ticks were not kept. learned_lead_p90_s: by workload key, as learned before the
    scored span. surge_start_s: when the one surge of a demo begins (epoch s). warm: only in *sudden*.
    absent: worlds that could not be played → why; they stand in the report with every field null. extra: further
    top-level fields, plain JSON values (a missing-data count, the drawn variation).
    """

    run_class: str
    scenario: str
    seed: int
    policy_hash: str
    verdict: Conclusion
    runs: Mapping[str, WorldRun]
    ticks: Sequence[Tick] = ()
    digests: Sequence[TickDigest] | None = None
    learned_lead_p90_s: Mapping[str, float | None] = field(default_factory=dict)
    surge_start_s: int | None = None
    scored_from_s: int | None = None
    tick_s: int = 60
    warm: WarmPods | None = None
    absent: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def digested(self) -> Sequence[TickDigest]:
        """What reports need of the ticks."""
        return self.digests if self.digests is not None else [digest(tick) for tick in self.ticks]


def build_report(inputs: ReportInputs) -> dict[str, Any]:
    """Measure every world and put the report together. Raises ValueError when worlds do not have the same workloads."""
    ticks = inputs.digested()
    workloads = _workloads(inputs.runs)
    scores = {workload: score_worlds(inputs, ticks, workload) for workload in workloads}
    compared = {
        workload: compare(
            inputs.runs, scores[workload], workload, learned_lead_p90_s=inputs.learned_lead_p90_s.get(workload)
        )
        for workload in workloads
    }
    report: dict[str, Any] = {
        "schema": SCHEMA,
        "class": inputs.run_class,
        "scenario": inputs.scenario,
        "seed": inputs.seed,
        "policy_hash": inputs.policy_hash,
        "verdict": {"act": inputs.verdict.act, "sentence": inputs.verdict.sentence},
        "worlds": {
            world: {
                workload: _world_fields(inputs, world, scores[workload][world], compared[workload])
                for workload in workloads
            }
            for world in inputs.runs
        },
        "comparison": {workload: report_fields.of_comparison(compared[workload]) for workload in workloads},
        "timeline": {
            world: {workload: _timeline_fields(inputs, world, workload) for workload in workloads}
            for world in inputs.runs
        },
    }
    _add_absent(report, inputs.absent, workloads)
    if inputs.warm is not None:
        report |= report_fields.with_reasons(
            {"warm_pods_needed": inputs.warm.pods_needed, "warm_gpu_hours_per_day": inputs.warm.gpu_hours_per_day},
            dict.fromkeys(("warm_pods_needed", "warm_gpu_hours_per_day"), inputs.warm.why_none),
        )
    report["story"] = report_story.build(inputs.runs, ticks, workloads)
    reasons = {name: str(inputs.extra.get(f"{name}_reason", "")) for name in inputs.extra}
    return report | report_fields.with_reasons(inputs.extra, reasons)


def _add_absent(report: dict[str, Any], absent: Mapping[str, str], workloads: Sequence[str]) -> None:
    """Worlds that could not be played stand in the report too, every field null with the reason."""
    for world, why in absent.items():
        for part in ("worlds", "timeline"):
            shown = next(iter(report[part].values()))
            report[part][world] = {workload: report_fields.all_null(shown[workload], why) for workload in workloads}


def encode_report(report: Mapping[str, Any]) -> str:
    """The bytes of report.json: compact, in the report's own order. Raises ValueError for NaN or ±Inf."""
    return json.dumps(report, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"


def score_worlds(inputs: ReportInputs, ticks: Sequence[TickDigest], workload: str) -> dict[str, WorkloadScore]:
    """The score of one workload in every world; forecasts and decisions belong to leadtime's world only."""
    scored: dict[str, WorkloadScore] = {}
    for world, run in inputs.runs.items():
        if world != "leadtime":
            scored[world] = score(run, workload, scored_from_s=inputs.scored_from_s)
            continue
        scored[world] = score(
            run,
            workload,
            scored_from_s=inputs.scored_from_s,
            forecasts=_forecast_score(inputs, run, ticks, workload),
            tally=tallies.tally(ticks, workload),
        )
    return scored


def _forecast_score(
    inputs: ReportInputs, run: WorldRun, ticks: Sequence[TickDigest], workload: str
) -> forecasts.ForecastScore:
    actual = forecasts.actual_series(run.workloads[workload])
    warned = surge_episodes.score(
        surge_episodes.raised_s(surge_episodes.warnings_from(ticks, workload), inputs.tick_s),
        surge_episodes.episodes_of(actual.values, actual.start_s),
        span_s=60.0 * len(actual.values),
        tick_s=inputs.tick_s,
    )
    return forecasts.score_forecasts(forecasts.points_from(ticks, workload), actual, warned)


def _world_fields(inputs: ReportInputs, world: str, scored: WorkloadScore, compared: Comparison) -> dict[str, Any]:
    run = inputs.runs[world]
    thinned = report_minutes.minutes(run, scored.workload)
    return {
        **report_fields.of_score(scored),
        **report_fields.of_own_comparison(compared, world),
        "capacity_per_pod_rps": report_fields.rounded(run.workloads[scored.workload].capacity_per_pod_rps),
        "minutes_step_s": thinned.step_s,
        "minutes": [report_minutes.as_json(row) for row in thinned.rows],
    }


def _timeline_fields(inputs: ReportInputs, world: str, workload: str) -> dict[str, Any]:
    found: Timeline = timeline(
        inputs.runs[world], workload, surge_start_s=inputs.surge_start_s, scored_from_s=inputs.scored_from_s
    )
    return report_fields.with_reasons(
        {
            "threshold_crossed_at": instant_or_none(found.threshold_crossed_at_s),
            "first_pod_placed_at": instant_or_none(found.first_pod_placed_at_s),
            "pending_at_15min": found.pending_at_15min,
            "first_new_node_ready_at": instant_or_none(found.first_new_node_ready_at_s),
        },
        found.reasons,
    )


def _workloads(runs: Mapping[str, WorldRun]) -> list[str]:
    names = {world: sorted(run.workloads) for world, run in runs.items()}
    first = next(iter(names.values()), [])
    for world, found in names.items():
        if found != first:
            raise ValueError(f"building a report: world {world} has workloads {found}, the first world has {first}")
    return first
