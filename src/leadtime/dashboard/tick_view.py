"""One tick as the ledger gives it (a dict of JSON types, the shape of domain.tick.Tick) → a TickView.

An action is told by its fields, not by a tag: the actions of domain.decision have different sets of fields.
"""

from collections.abc import Mapping
from typing import Any

from leadtime.dashboard import clock_text
from leadtime.dashboard.clock_text import pods
from leadtime.dashboard.views import (
    ActionView,
    DecisionView,
    Direction,
    Fate,
    ForecastView,
    ProposalView,
    QueueView,
    SurgeView,
    TickView,
    WhyView,
    WorkloadView,
)
from leadtime.domain.risk import PodEnding, RiskDriver
from leadtime.scorecard.risk_alerts import AlertScore, EndSeen

Json = Mapping[str, Any]


def tick_view(tick: Json) -> TickView:
    """Cut one tick down to what the page draws."""
    at_s = clock_text.epoch(tick["as_of"])
    proposals = _proposals(tick)
    return TickView(
        at_s=at_s,
        workloads={_key(a["ref"]): _workload(a, at_s, tick) for a in tick["assessments"]},
        queues=tuple(_queue(q) for q in tick["queue_health"]),
        proposals=proposals,
        decisions=tuple(_decision(d, at_s, proposals, tick["snapshot"]) for d in tick["decisions"]),
        risks=tuple(_risk(risk, tick) for risk in tick.get("risks", ())),
        pod_ends=tuple(_pod_end(end) for end in tick.get("pod_ends", ())),
        **_risk_model(tick),
    )


def _risk(risk: Json, tick: Json) -> AlertScore:
    horizon_s = seconds(risk["horizon"])
    return AlertScore(
        at_s=clock_text.epoch(tick["as_of"]),
        pod=risk["pod"],
        node=risk["node"],
        workload=_key(risk["workload"]) if risk["workload"] else None,
        probability=risk["probability"],
        base_rate=risk["base_rate"],
        until_s=clock_text.epoch(risk["window_end"]) + horizon_s,
        horizon_s=horizon_s,
        drivers=tuple(RiskDriver(feature=d["feature"], value=d["value"], effect=d["effect"]) for d in risk["drivers"]),
    )


def _pod_end(end: Json) -> EndSeen:
    workload = _key(end["workload"]) if end["workload"] else None
    failed = end["how"] == PodEnding.FAILED.value
    return EndSeen(at_s=clock_text.epoch(end["at"]), pod=end["pod"], node=end["node"], workload=workload, failed=failed)


def _risk_model(tick: Json) -> dict[str, str]:
    """The model's name and what it scored, as the tick's evidence says; nothing without a model."""
    for entry in tick["evidence"]:
        if entry["source"] == "risk model":
            return {"risk_model": entry["query"].removeprefix("scores of "), "risk_note": str(entry["value"])}
    return {}


def why_view(why: Json) -> WhyView:
    """An Explanation."""
    return WhyView(reason=why["reason"], sentence=why["sentence"], because=tuple(why.get("because", ())))


def scope_key(scope: Json) -> str:
    """``workload:serving/chat``."""
    return f"{scope['kind']}:{scope['name']}"


def action_view(action: Json, snapshot: Json) -> ActionView:
    """An action in words, with what stood before it."""
    if "paused" in action:
        verb = "hold back new" if action["paused"] else "admit"
        words = f"{verb} low-priority pods in queue {action['queue']}"
        return ActionView(kind="admission", direction=Direction.QUEUE, words=words)
    if "offered" in action:
        verb = "offer empty nodes of" if action["offered"] else "keep empty nodes of"
        direction = Direction.LOWER if action["offered"] else Direction.RAISE
        return ActionView(kind="consolidation", direction=direction, words=f"{verb} pool {action['pool']}")
    if "node" in action:
        return _measure("avoid", action, f"new pods on other nodes than {action['node']}")
    if "pod" in action:
        return _measure("protect", action, f"no scale-down of {_key(action['workload'])} for {action['pod']}")
    state = _state_of(action["workload"], snapshot)
    if "pods" in action:
        ours = state.get("buffer")
        before = int(ours["pods"]) if ours else 0
        words = f"room for {before} → {pods(action['pods'], 'more ')} on {action['pool']}"
        return _moved("buffer", before, action["pods"], words)
    before = _floor(state)
    if "replicas" in action:
        return _moved("floor", before, action["replicas"], f"floor {before} → {pods(action['replicas'])}")
    after = state.get("owner_min_replicas")
    words = f"floor {before} → given back to the owner's {after if after is not None else 'own value'}"
    return ActionView(kind="release", direction=Direction.LOWER, words=words, before=before, after=after)


def _measure(kind: str, action: Json, words: str) -> ActionView:
    """What is done for a pod at risk, until when; given back where there is no end."""
    ends = action["expires_at"]
    if ends is None:
        return ActionView(kind=kind, direction=Direction.LOWER, words=f"{words}: given back")
    until = clock_text.clock(clock_text.epoch(ends))
    return ActionView(kind=kind, direction=Direction.RENEW, words=f"{words}, until {until}")


def _moved(kind: str, before: int, after: int, words: str) -> ActionView:
    direction = Direction.RAISE if after > before else Direction.LOWER if after < before else Direction.RENEW
    if direction is Direction.RENEW:
        words = f"{'floor' if kind == 'floor' else 'room for'} {pods(after)}, renewed"
    return ActionView(kind=kind, direction=direction, words=words, before=before, after=after)


def _key(ref: Json) -> str:
    return f"{ref['namespace']}/{ref['name']}"


def _state_of(ref: Json, snapshot: Json) -> Json:
    for state in snapshot["workloads"]:
        if _key(state["ref"]) == _key(ref):
            found: Json = state
            return found
    return {}


def _floor(state: Json) -> int:
    """minReplicas as it stands: ours, else the owner's; 0 for a workload the snapshot does not know."""
    ours = state.get("floor")
    return int(ours["replicas"] if ours else state.get("owner_min_replicas", 0))


def seconds(value: Any) -> float:
    """A duration of the ledger: seconds as a number, or ISO 8601 as ``PT3240S`` / ``P1DT2H``."""
    if isinstance(value, int | float):
        return float(value)
    sign, text = (-1.0, value[1:]) if value.startswith("-") else (1.0, value)
    days, _, rest = text.removeprefix("P").partition("T")
    total = 86_400.0 * float(days.removesuffix("D") or 0)
    for letter, factor in (("H", 3600.0), ("M", 60.0), ("S", 1.0)):
        head, found, tail = rest.partition(letter)
        if found:
            total, rest = total + factor * float(head), tail
    return sign * total


def _bucket_start(demand: Any, at_s: int, tick: Json) -> int:
    """Start of the minute whose mean ``demand`` is: said by its evidence; the minute before the tick otherwise."""
    for e in tick["evidence"]:
        if e["value"] == demand:
            start_s, end_s = clock_text.epoch(e["window"]["start"]), clock_text.epoch(e["window"]["end"])
            if end_s - start_s == 60:
                return start_s
    return at_s - 60


def _workload(a: Json, at_s: int, tick: Json) -> WorkloadView:
    state = _state_of(a["ref"], tick["snapshot"])
    demand = a["demand"]
    missing = demand if isinstance(demand, Mapping) else None
    served = state.get("capacity_per_pod")
    return WorkloadView(
        demand=None if missing or demand is None else float(demand),
        demand_at_s=_bucket_start(demand, at_s, tick),
        missing=f"{missing['source']}: {missing['reason']}" if missing else None,
        unit=state.get("unit", "requests/s"),
        forecasts=tuple(_forecast(f) for f in a["forecasts"]),
        surge=_surge(a["surge"], at_s) if a["surge"] else None,
        model=a["model"],
        may_act=a["may_act"],
        standing=why_view(a["standing"]),
        lead_total_p90_s=a["lead"]["total_p90_s"],
        lead_learned_from=a["lead"]["learned_from"],
        hpa_would_want=a["hpa_would_want"],
        pods_at_target=served * state["hpa_target_ratio"] if served is not None else None,
        standing_floor=_floor(state),
        wanted=state.get("wanted_replicas", 0),
    )


def _forecast(f: Json) -> ForecastView:
    issued_at_s, horizon_s = clock_text.epoch(f["issued_at"]), int(seconds(f["horizon"]))
    return ForecastView(
        issued_at_s=issued_at_s,
        target_s=issued_at_s + horizon_s,
        horizon_s=horizon_s,
        expected=f["expected"],
        lower=f["lower"],
        upper=f["upper"],
        level_ratio=f["level_ratio"],
        model=f["model"],
    )


def _surge(s: Json, at_s: int) -> SurgeView:
    return SurgeView(
        at_s=at_s,
        began_at_s=clock_text.epoch(s["began_at"]),
        actual=s["actual"],
        forecast=s["forecast"],
        excess_ratio=s["excess_ratio"],
        threshold_ratio=s["threshold_ratio"],
    )


def _queue(q: Json) -> QueueView:
    because = tuple(why_view(w) for w in q["because"])
    return QueueView(queue=q["queue"], healthy=q["healthy"], clean_ticks=q["clean_ticks"], because=because)


def _proposals(tick: Json) -> tuple[ProposalView, ...]:
    lost = {r["proposal_id"]: why_view(r["why"]) for d in tick["decisions"] for r in d["rejections"]}
    won = {d["proposal_id"] for d in tick["decisions"] if d["proposal_id"] and d["action"]}
    verdicts = {v["proposal_id"]: v for v in tick["verdicts"]}
    views = []
    for p in tick["proposals"]:
        verdict = verdicts.get(p["id"])
        fate, fate_why = _fate(p["id"], won, lost, verdict)
        views.append(
            ProposalView(
                id=p["id"],
                agent=p["agent"],
                scope=scope_key(p["scope"]),
                action=action_view(p["action"], tick["snapshot"]),
                why=why_view(p["why"]),
                fate=fate,
                fate_why=fate_why,
            )
        )
    return tuple(views)


def _fate(
    proposal_id: str, won: set[str], lost: Mapping[str, WhyView], verdict: Json | None
) -> tuple[Fate, WhyView | None]:
    guard = tuple(why_view(w) for w in verdict["why"]) if verdict else ()
    if verdict and verdict["answer"] == "Refused":
        return Fate.REFUSED, guard[0] if guard else lost.get(proposal_id)
    if proposal_id in won:
        limited = verdict is not None and verdict["answer"] == "Limited"
        return (Fate.LIMITED, guard[0] if guard else None) if limited else (Fate.WON, None)
    return Fate.LOST, lost.get(proposal_id)


def _decision(d: Json, at_s: int, proposals: tuple[ProposalView, ...], snapshot: Json) -> DecisionView:
    scope = scope_key(d["scope"])
    losing = {r["proposal_id"] for r in d["rejections"]}
    winner = next((p for p in proposals if p.id == d["proposal_id"]), None)
    return DecisionView(
        at_s=at_s,
        scope=scope,
        action=action_view(d["action"], snapshot) if d["action"] else None,
        agent=winner.agent if winner else None,
        why=why_view(d["why"]),
        losers=tuple(p for p in proposals if p.id in losing),
    )
