"""One replay → report.json, report.html and ticks.sqlite in a folder, and the report for whoever asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leadtime.domain.tick import Tick
from leadtime.ledger.records import LedgerMeta
from leadtime.ledger.sqlite import SqliteLedger
from leadtime.scorecard.digest import TickDigest, digest
from leadtime.scorecard.measures import score
from leadtime.simulate.report import Conclusion, ReportInputs, WarmPods, build_report, encode_report
from leadtime.simulate.report_fields import rounded
from leadtime.simulate.report_html import build_html
from leadtime.simulate.report_minutes import minutes
from leadtime.simulate.risk_study import as_json, study
from leadtime.simulate.verdict import conclude, in_shadow, with_kill, with_warm_pods, writes
from leadtime.simulate.warm_pods import warm_pods_needed
from leadtime.simulate.worlds import Played, Prepared, Progress, Replay, play

WORLDS = ("hpa", "hpa_equal_cost", "cron", "cron_ahead", "leadtime", "oracle")


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What a report says beside the numbers.

    ``kind``: demo | replay. ``surge_start_s``: the one surge of a demo (epoch s). ``size_warm_until_s``: ask for the
    warm pods a sudden surge would have needed, judged until then; None: not asked. ``extra``: more top-level fields.
    """

    kind: str
    title: str
    surge_start_s: int | None = None
    size_warm_until_s: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class LedgerAndDigests:
    """A sink that stores each tick and keeps the little the report needs of it."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger
        self.digests: list[TickDigest] = []

    def append(self, tick: Tick) -> None:
        """One commit, one digest."""
        self._ledger.append(tick)
        self.digests.append(digest(tick))


def publish(replay: Replay, telling: Telling, folder: Path, progress: Progress) -> dict[str, Any]:
    """Play ``replay`` and write its three files into ``folder``, which exists. Returns the report."""
    meta = LedgerMeta(
        kind=telling.kind,
        scenario=telling.title,
        seed=replay.seed,
        policy_hash=replay.policy.hash,
        workloads=tuple(work.key for work in replay.scenario.workloads),
        worlds=WORLDS,
        tick_s=replay.policy.loop.tick_s,
        extra={} if replay.risk is None else {"risk_model": replay.risk.name},
    )
    with SqliteLedger.create(folder / "ticks.sqlite", meta) as ledger:
        sink = LedgerAndDigests(ledger)
        prepared, played = play(replay, sink, progress)
        risk = _risk(prepared, progress)
        progress("report", 0.0)
        warm = _warm(prepared, telling, progress)
        telling = replace(telling, extra={**telling.extra, **risk})
        report = build_report(_inputs(prepared, played, sink.digests, telling, warm))
        for world, run in played.runs.items():
            for key in run.workloads:
                ledger.put_world_minutes(world, key, minutes(run, key).rows)
        text = encode_report(report)
        ledger.put_document("report", text)
    (folder / "report.html").write_text(build_html(report), encoding="utf-8")
    (folder / "report.json").write_text(text, encoding="utf-8")
    return report


def _inputs(
    prepared: Prepared, played: Played, digests: list[TickDigest], telling: Telling, warm: WarmPods | None
) -> ReportInputs:
    replay = prepared.replay
    return ReportInputs(
        run_class="simulated",
        scenario=telling.title,
        seed=replay.seed,
        policy_hash=replay.policy.hash,
        verdict=with_warm_pods(_verdict(replay, played, digests), warm),
        runs=played.runs,
        digests=digests,
        learned_lead_p90_s={key: lead.total_p90_s for key, lead in prepared.leads.items()},
        surge_start_s=telling.surge_start_s,
        scored_from_s=replay.scored_from_s,
        tick_s=replay.policy.loop.tick_s,
        warm=warm,
        absent=played.absent,
        extra={**telling.extra, **_rivals(played), "lead_learned_from": _learned_from(prepared)},
    )


def _verdict(replay: Replay, played: Played, digests: list[TickDigest]) -> Conclusion:
    """The first workload's verdict; scenarios with several are told one by one on the page."""
    key = replay.scenario.workloads[0].key
    of = {world: score(played.runs[world], key) for world in ("hpa", "leadtime", "hpa_equal_cost")}
    said = conclude(digests, of["hpa"], of["leadtime"], of["hpa_equal_cost"])
    told = said if writes(replay.policy) else in_shadow(said)
    return with_kill(told, replay.kill_at_s, replay.scored_from_s)


def _rivals(played: Played) -> dict[str, Any]:
    """How the rivals were set, and how well their cost matches."""
    fields: dict[str, Any] = {
        "oracle_pod_hours_at_full_utilisation": played.oracle_pod_hours_at_full_utilisation,
    }
    for name, found in played.equal_cost.items():
        fields[f"{name}_setting"] = found.setting
        fields[f"{name}_cost_ratio_to_leadtime"] = found.cost_ratio
        fields[f"{name}_within_1pct"] = found.within_tolerance
    return fields


def _learned_from(prepared: Prepared) -> dict[str, str]:
    return {key: lead.learned_from for key, lead in prepared.leads.items()}


def _risk(prepared: Prepared, progress: Progress) -> dict[str, Any]:
    """What a failure model was worth; no field at all where no pod ever fails."""
    replay = prepared.replay
    if replay.scenario.failures is None:
        return {}
    if replay.risk is None:
        return {"risk": None, "risk_reason": "no failure model was given (--risk-model)"}
    return {"risk": as_json(study(prepared, replay.risk, progress), rounded)}


def _warm(prepared: Prepared, telling: Telling, progress: Progress) -> WarmPods | None:
    if telling.size_warm_until_s is None:
        return None
    if prepared.replay.warm_pods:
        why = f"{prepared.replay.warm_pods} warm pods are installed in this run; ask without --warm-pods"
        return WarmPods(pods_needed=None, gpu_hours_per_day=None, why_none=why)
    progress("sizing warm pods", 0.0)
    need = warm_pods_needed(prepared, until_s=telling.size_warm_until_s)
    why = "" if need.pods is not None else "even 5,000 warm pods leave a shortfall"
    return WarmPods(pods_needed=need.pods, gpu_hours_per_day=need.gpu_hours_per_day, why_none=why)
