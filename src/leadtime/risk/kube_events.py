"""Lives of pods → SUBMIT, SCHEDULE, UPDATE_RUNNING and the ends of runs, by a stated table; each end names its rule.

A cluster's metrics show less than a trace of Google's. Where two causes leave the same marks the rule says which is
taken, and where nothing is left the end is LOST, so that the label contract leaves the rows out.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leadtime.domain.borg import EventType
from leadtime.risk.kube_lives import NodeLife, Owner, PodLife, Termination

EVICTED = frozenset({"Evicted", "NodeLost", "NodeAffinity", "Shutdown", "UnexpectedAdmissionError"})
NODE_GRACE_S = 900  # pods of a lost node stay listed until they are collected: 5 min of toleration, and some
AROUND_STEPS = 2  # a successor, or fewer replicas wanted, within so many instants of an end explain it
RULES: Mapping[str, tuple[EventType, str]] = {
    "container-failed": (EventType.FAIL, "a container ended with another exit code than 0 (OOMKilled, Error, probes)"),
    "container-done": (EventType.FINISH, "a container ended with exit code 0 (Completed), its pod stayed"),
    "container-unknown": (EventType.LOST, "a restart was counted, or its status is unknown; no reason is told"),
    "pod-succeeded": (EventType.FINISH, "the pod's phase became Succeeded"),
    "pod-failed": (EventType.FAIL, "the pod's phase became Failed"),
    "pod-evicted": (EventType.EVICT, "phase Failed with a reason of the node's: Evicted, NodeLost, Shutdown, …"),
    "node-gone": (EventType.EVICT, "the pod vanished when its node had vanished; at the time of the machine's REMOVE"),
    "deleted": (EventType.KILL, "the pod vanished after a deletion time was set"),
    "replaced": (
        EventType.KILL,
        "the pod vanished while its workload got another pod (a rollout, a drain, a scale-down)",
    ),
    "scaled-down": (EventType.KILL, "the pod vanished when its workload wanted fewer replicas"),
    "scrape-gap": (EventType.LOST, "the pod was not seen again after a gap in which nothing was"),
    "vanished": (EventType.LOST, "the pod was not seen again, and nothing says why"),
}  # rule → what it becomes, and when it applies; the first that fits, in the order of ``ending``

WHILE_WAITING = frozenset({"deleted", "replaced", "scaled-down", "vanished", "scrape-gap"})  # ends without a run


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvent:
    """One event of a pod. ``request``: cores and bytes asked for from then on, None where not known."""

    at_s: int
    type: EventType
    cpu: float | None
    memory: float | None
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the end of one pod is judged by. ``observed``: instants at which any pod was seen, rising.

    ``born``: workload → when its pods were created, rising. ``fewer``: workload → when it wanted fewer, rising.
    """

    start_s: int
    step_s: int
    observed: Sequence[int]
    nodes: Mapping[str, NodeLife]
    born: Mapping[Owner, Sequence[int]]
    fewer: Mapping[Owner, Sequence[int]]

    def seen_after(self, at_s: int) -> bool:
        """Was anything seen at the next instant of the grid?"""
        place = bisect_left(self.observed, at_s + self.step_s)
        return place < len(self.observed) and self.observed[place] == at_s + self.step_s

    def is_last(self, at_s: int) -> bool:
        """Is it the last instant at which anything was seen (or later)?"""
        return not self.observed or at_s >= self.observed[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """When and by which rule a pod's last run ended."""

    at_s: int
    rule: str


def termination_rule(end: Termination) -> str:
    """The rule of a container's end inside a pod that stays."""
    if end.reason == "Completed" or (end.exit_code == 0 and end.reason in {None, "Error"}):
        return "container-done"
    if end.reason == "ContainerStatusUnknown" or (end.reason is None and end.exit_code is None):
        return "container-unknown"
    return "container-failed"


def ending(life: PodLife, around: Surroundings) -> Ending | None:
    """How the pod itself ended; None while it lives at the end of observation. On the grid unless told better."""
    for phase, rule in (("Succeeded", "pod-succeeded"), ("Failed", "pod-failed")):
        if phase in life.phases:
            seen = life.phases[phase]
            told = life.completed_s if life.completed_s is not None and life.completed_s <= seen else seen
            return Ending(at_s=told, rule="pod-evicted" if EVICTED & set(life.reasons) else rule)
    if around.is_last(life.last_s):
        return None
    node = around.nodes.get(life.node or "")
    if node is not None and around.seen_after(node.last_s) and _within(node.last_s, life, around.step_s):
        return Ending(at_s=node.last_s, rule="node-gone")
    if not around.seen_after(life.last_s):
        return Ending(at_s=life.last_s, rule="scrape-gap")
    return Ending(at_s=life.last_s, rule=_why_gone(life, around))


def _within(node_last_s: int, life: PodLife, step_s: int) -> bool:
    return life.last_s - NODE_GRACE_S <= node_last_s <= life.last_s + step_s


def _why_gone(life: PodLife, around: Surroundings) -> str:
    near = AROUND_STEPS * around.step_s
    if life.deletion_s is not None:
        return "deleted"
    others = [at for at in around.born.get(life.owner, ()) if at != (life.created_s or life.first_s)]
    if any(abs(at - life.last_s) <= near for at in others):
        return "replaced"
    if any(abs(at - life.last_s) <= near for at in around.fewer.get(life.owner, ())):
        return "scaled-down"
    return "vanished"


def pod_events(life: PodLife, around: Surroundings) -> tuple[PodEvent, ...]:
    """The events of one pod, in order: a run begins at SCHEDULE and ends at the first end after it.

    What happened at or before ``start_s`` is a state: its SUBMIT and SCHEDULE carry ``start_s``.
    """
    end = ending(life, around)
    created = max(life.created_s if life.created_s is not None else life.first_s, around.start_s)
    scheduled = None
    if life.node is not None:
        scheduled = max(life.scheduled_s if life.scheduled_s is not None else life.first_s, created)
    moments: list[tuple[int, int, EventType, str]] = [(created, 1, EventType.SUBMIT, "")]
    if scheduled is not None:
        moments.append((scheduled, 2, EventType.SCHEDULE, ""))
    for one in life.terminations:
        rule = termination_rule(one)
        moments.append((one.at_s, 0, RULES[rule][0], rule))
        if one.resumed_s is not None:
            moments += [(max(one.resumed_s, one.at_s), 1, EventType.SUBMIT, ""),
                        (max(one.resumed_s, one.at_s), 2, EventType.SCHEDULE, "")]  # fmt: skip
    moments += [(one.at_s, 3, EventType.UPDATE_RUNNING, "") for one in life.requests[1:]]
    if end is not None:
        moments = [one for one in moments if one[0] < end.at_s or one[2] in {EventType.SUBMIT, EventType.SCHEDULE}]
        moments = [one for one in moments if one[0] <= end.at_s]
        moments.append((end.at_s, 4, RULES[end.rule][0], end.rule))
    return tuple(_in_turn(life, sorted(moments), around.start_s))


def _in_turn(life: PodLife, moments: list[tuple[int, int, EventType, str]], start_s: int) -> list[PodEvent]:
    """Moments that fit the state: no end of what does not run, no start of what runs, nothing after the pod is gone."""
    events: list[PodEvent] = []
    state = EventType.KILL  # nothing is there yet
    for at, _, kind, rule in moments:
        running, waiting = state == EventType.SCHEDULE, state == EventType.SUBMIT
        if kind is EventType.SUBMIT:
            fits = not running and not waiting
        elif kind is EventType.SCHEDULE:
            fits = waiting
        else:
            fits = running or (waiting and rule in WHILE_WAITING)
        if not fits:
            continue
        known = [one for one in life.requests if one.at_s <= at] or life.requests[:1]
        asked = known[-1] if known else None
        events.append(
            PodEvent(
                at_s=max(at, start_s), type=kind, cpu=None if asked is None else asked.cpu,
                memory=None if asked is None else asked.memory, rule=rule,
            )
        )  # fmt: skip
        state = state if kind is EventType.UPDATE_RUNNING else kind
    return events
