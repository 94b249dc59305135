"""How a pod ended, by the stated table: one case a rule, and what must never be made up."""

from dataclasses import replace

import polars as pl
import pytest

from leadtime.domain.borg import EventType
from leadtime.risk.kube_events import RULES, Surroundings, ending, pod_events, termination_rule
from leadtime.risk.kube_facts import node_lives, pod_lives, runs
from leadtime.risk.kube_lives import NodeLife, Owner, PodLife, Request, Termination, ordinal
from leadtime.risk.kube_tables import scale_of, slots, usage_windows

STEP, START, END = 300, 0, 9_000
WEB = Owner(namespace="shop", kind="Deployment", name="web")
GRID = list(range(STEP, END + 1, STEP))
AROUND = Surroundings(start_s=START, step_s=STEP, observed=GRID, nodes={}, born={}, fewer={})


def life(**more: object) -> PodLife:
    """A pod seen from 600 to 3,000 s."""
    known = PodLife(namespace="shop", pod="web-1", uid="u", owner=WEB, node="n1", first_s=600, last_s=3_000,
                    created_s=400, scheduled_s=401)  # fmt: skip
    return replace(known, **more)  # type: ignore[arg-type]


def end(reason: str | None, code: int | None, at: int = 1_000, back: int | None = 1_010) -> Termination:
    """A container's end."""
    return Termination(at_s=at, reason=reason, exit_code=code, resumed_s=back, container="main")


@pytest.mark.parametrize(
    ("reason", "code", "rule"),
    [
        ("OOMKilled", 137, "container-failed"), ("Error", 1, "container-failed"), ("Error", 143, "container-failed"),
        ("Completed", 0, "container-done"), ("Completed", None, "container-done"), (None, 0, "container-done"),
        (None, None, "container-unknown"), ("ContainerStatusUnknown", 137, "container-unknown"),
    ],
)  # fmt: skip
def test_a_containers_end_is_read_by_reason_and_code(reason: str | None, code: int | None, rule: str) -> None:
    assert termination_rule(end(reason, code)) == rule


LOST_NODE = {"n1": NodeLife(node="n1", first_s=300, last_s=2_700, shapes=((300, 4.0, 8.0),))}


@pytest.mark.parametrize(
    ("pod", "around", "rule", "at"),
    [
        (life(phases={"Running": 600, "Succeeded": 2_400}, completed_s=2_222), AROUND, "pod-succeeded", 2_222),
        (life(phases={"Failed": 2_400}), AROUND, "pod-failed", 2_400),
        (life(phases={"Failed": 2_400}, reasons={"Evicted": 2_400}), AROUND, "pod-evicted", 2_400),
        (life(), replace(AROUND, nodes=LOST_NODE), "node-gone", 2_700),
        (life(deletion_s=2_900), AROUND, "deleted", 3_000),
        (life(), replace(AROUND, born={WEB: [400, 2_800]}), "replaced", 3_000),
        (life(), replace(AROUND, born={WEB: [400, 1_000]}), "vanished", 3_000),
        (life(), replace(AROUND, fewer={WEB: [3_300]}), "scaled-down", 3_000),
        (life(), replace(AROUND, observed=[at for at in GRID if not 3_000 < at < 4_200]), "scrape-gap", 3_000),
        (life(), AROUND, "vanished", 3_000),
    ],
)
def test_a_pods_end_is_read_by_the_first_rule_that_fits(pod: PodLife, around: Surroundings, rule: str, at: int) -> None:
    found = ending(pod, around)
    assert found is not None
    assert (found.rule, found.at_s) == (rule, at)
    last = pod_events(pod, around)[-1]
    assert (last.type, last.at_s) == (RULES[rule][0], at)


def test_a_pod_that_lives_at_the_end_has_no_end() -> None:
    assert ending(life(last_s=END), AROUND) is None
    assert [event.type for event in pod_events(life(last_s=END), AROUND)] == [EventType.SUBMIT, EventType.SCHEDULE]


def test_a_crash_ends_a_run_and_the_next_start_begins_one() -> None:
    pod = life(last_s=END, terminations=(end("OOMKilled", 137), end("Error", 1, at=2_000, back=None)))
    told = [(event.at_s, event.type) for event in pod_events(pod, AROUND)]
    assert told == [
        (400, EventType.SUBMIT), (401, EventType.SCHEDULE), (1_000, EventType.FAIL), (1_010, EventType.SUBMIT),
        (1_010, EventType.SCHEDULE), (2_000, EventType.FAIL),
    ]  # fmt: skip


def test_a_pod_deleted_while_it_waits_to_start_again_did_not_fail_twice() -> None:
    pod = life(terminations=(end("Error", 1, back=None),), deletion_s=2_900)
    assert [event.type for event in pod_events(pod, AROUND)] == [EventType.SUBMIT, EventType.SCHEDULE, EventType.FAIL]


def test_a_changed_request_is_an_update_of_the_run() -> None:
    asked = (Request(at_s=600, cpu=1.0, memory=1.0), Request(at_s=1_500, cpu=2.0, memory=1.0))
    told = pod_events(life(last_s=END, requests=asked), AROUND)
    assert [(event.type, event.cpu) for event in told][-1] == (EventType.UPDATE_RUNNING, 2.0)
    assert told[0].cpu == 1.0


def test_a_pod_that_was_there_before_is_a_state_of_the_start() -> None:
    told = pod_events(life(created_s=-5_000, scheduled_s=-4_999, last_s=END), AROUND)
    assert [event.at_s for event in told] == [START, START]


def samples(rows: list[tuple[str, str, str, int, float]], *more: str) -> pl.DataFrame:
    """(namespace, pod, uid, at, value) with further labels, empty, as runs."""
    frame = pl.DataFrame(rows, schema=["namespace", "pod", "uid", "at_s", "value"], orient="row")
    return runs(frame.with_columns(pl.lit("").alias(name) for name in more), STEP)


INFO = ("node", "created_by_kind", "created_by_name", "priority_class")


def test_restarts_without_times_are_ends_at_the_instant_they_were_seen_and_the_rest_is_counted() -> None:
    seen = [("shop", "a", "u", at, 1.0) for at in GRID]
    counted = [("shop", "a", "u", at, float(3 + (at >= 1_500) + 2 * (at >= 3_000))) for at in GRID]
    frames = {"pods": samples(seen, *INFO), "restarts": samples(counted, "container")}
    (pod,) = pod_lives(frames, start_s=START - 10_000)
    assert [one.at_s for one in pod.terminations] == [
        300,
        1_500,
        3_000,
    ]  # a new pod: its first three restarts are its own
    assert pod.restarts_unseen == 2 + 0 + 1
    (old,) = pod_lives(frames | {"created": samples([("shop", "a", "u", 300, -9_000.0)])}, start_s=START)
    assert [one.at_s for one in old.terminations] == [1_500, 3_000]  # an old one: what was before is before


def test_a_counter_that_fell_has_begun_anew() -> None:
    values = {300: 5.0, 600: 5.0, 900: 1.0, 1_200: 1.0}
    frames = {
        "pods": samples([("shop", "a", "u", at, 1.0) for at in values], *INFO),
        "created": samples([("shop", "a", "u", 300, -9_000.0)]),
        "restarts": samples([("shop", "a", "u", at, value) for at, value in values.items()], "container"),
    }
    (pod,) = pod_lives(frames, start_s=START)
    assert [one.at_s for one in pod.terminations] == [900]
    assert pod.restarts_unseen == 0


def test_a_gap_inside_a_life_is_no_end() -> None:
    seen = [("shop", "a", "u", at, 1.0) for at in GRID if not 1_000 < at < 4_000]
    (pod,) = pod_lives({"pods": samples(seen, *INFO)}, start_s=START)
    assert (pod.first_s, pod.last_s) == (GRID[0], GRID[-1])
    assert ending(pod, AROUND) is None
    assert pod.requests == ()  # nothing was told of requests: not known, which is not zero


def test_a_statefulsets_ordinal_is_its_slot_and_others_are_numbered_by_birth() -> None:
    db = Owner(namespace="shop", kind="StatefulSet", name="db")
    pods = [life(), life(pod="web-9", created_s=300), life(pod="db-3", owner=db), life(pod="db-3", uid="v", owner=db)]
    place = slots(pods)
    assert [place[pod] for pod in pods] == [1, 0, 3, 3]
    assert ordinal(life(pod="web-3")) is None


def test_a_window_without_an_average_is_a_gap_and_not_a_zero() -> None:
    pod = life(created_s=0, first_s=300)
    keys = {"namespace": ["shop"] * 2, "pod": ["web-1"] * 2, "at_s": [600, 900]}
    table = {name: pl.DataFrame(keys | {"value": [1.0, 2.0]}) for name in
             ("avg_cpu", "max_cpu", "sample_cpu", "max_memory", "page_cache_memory", "samples")}  # fmt: skip
    table["avg_memory"] = pl.DataFrame(keys | {"value": [4.0, 4.0]}).head(1)
    nodes = node_lives({"nodes": runs(pl.DataFrame({
        "node": ["n1", "n1"], "resource": ["cpu", "memory"], "at_s": [300, 300], "value": [4.0, 8.0],
    }), STEP)})  # fmt: skip
    scale = scale_of(nodes, START)
    rows, left_out = usage_windows(table, {pod: 0}, {node.node: node for node in nodes}, scale)
    assert left_out == 1
    assert rows.select("avg_cpu", "avg_memory", "assigned_memory").rows() == [
        (0.25, 0.5, 1.0)
    ]  # no limit: the node is it
