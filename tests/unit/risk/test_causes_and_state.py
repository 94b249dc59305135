"""Why runs end, and what a window knows at its end: requests, priorities, machines, collections, all as of p."""

from collections.abc import Mapping, Sequence

import polars as pl
import pytest

from leadtime.domain.borg import AFTER_TRACE_US, TABLES, Cause, EventType
from leadtime.risk.asof import join_partition
from leadtime.risk.causes import with_causes
from leadtime.risk.runs import ordered
from leadtime.risk.windows import USAGE_SCHEMA, usage_windows
from leadtime.sources.borg.canonical import schema_of

S = 1_000_000
T = 5000 * S
P = 6000 * S


def table(name: str, rows: Sequence[Mapping[str, object]]) -> pl.LazyFrame:
    """Rows → canonical frame; a number left out is 0 where missing means that."""
    zero = {column.name: 0 for column in TABLES[name] if column.omitted == "zero"}
    names = [column.name for column in TABLES[name]]
    filled = [zero | {"collection_id": 1, "machine_id": None} | dict(row) for row in rows]
    return pl.LazyFrame([{key: row.get(key) for key in names} for row in filled], schema=schema_of(name))


def causes(
    events: Sequence[Mapping[str, object]],
    collections: Sequence[Mapping[str, object]] = (),
    machines: Sequence[Mapping[str, object]] = (),
) -> list[str | None]:
    found = with_causes(
        ordered(table("instance_events", events)),
        table("collection_events", collections),
        table("machine_events", machines),
    )
    return found.collect()["cause"].to_list()


def window(
    *events: Mapping[str, object],
    usage: Mapping[str, object] | None = None,
    collections: Sequence[Mapping[str, object]] = (),
    machines: Sequence[Mapping[str, object]] = (),
) -> dict[str, object]:
    """What the window of instance (1, 0) that ends at P knows."""
    row = {"start_time_us": P - 300 * S, "end_time_us": P} | dict(usage or {})
    return join_partition(
        table("instance_usage", [row]),
        table("instance_events", events),
        table("collection_events", collections),
        table("machine_events", machines),
    ).collect().row(0, named=True)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        (EventType.FAIL, Cause.SELF), (EventType.FINISH, Cause.DONE), (EventType.LOST, Cause.UNKNOWN),
        (EventType.KILL, Cause.USER), (EventType.EVICT, Cause.PREEMPTION), (EventType.SCHEDULE, None),
        (EventType.UPDATE_RUNNING, None),
    ],
)  # fmt: skip
def test_a_cause_by_the_type_alone(kind: EventType, cause: Cause | None) -> None:
    assert causes([{"time_us": T, "type": kind}]) == [cause]


@pytest.mark.parametrize(
    ("after_us", "cause"),
    [(-1, Cause.USER), (0, Cause.PARENT), (1, Cause.PARENT), (60 * S, Cause.PARENT), (60 * S + 1, Cause.USER)],
)
def test_a_kill_within_a_minute_after_the_parents_end_is_the_parents(after_us: int, cause: Cause) -> None:
    collections = [
        {"time_us": 5, "parent_collection_id": 9},
        {"time_us": T, "type": EventType.FINISH, "collection_id": 9},
        {"time_us": T, "type": EventType.FINISH, "collection_id": 8},
    ]
    assert causes([{"time_us": T + after_us, "type": EventType.KILL}], collections) == [cause]


def test_the_end_of_a_collection_that_is_not_the_parent_explains_nothing() -> None:
    ends = [{"time_us": T, "type": EventType.KILL, "collection_id": 8}, {"time_us": 5, "parent_collection_id": 0}]
    assert causes([{"time_us": T + 1, "type": EventType.KILL}], ends) == [Cause.USER]


@pytest.mark.parametrize(
    ("off_us", "cause"),
    [(-S - 1, Cause.PREEMPTION), (-S, Cause.MACHINE), (S, Cause.MACHINE), (S + 1, Cause.PREEMPTION)],
)
def test_an_eviction_within_a_second_around_the_remove_is_the_machines(off_us: int, cause: Cause) -> None:
    removed = [{"time_us": T, "machine_id": 7, "type": 2}]
    events = [{"time_us": 9, "type": 3, "machine_id": 7}, {"time_us": T + off_us, "type": 4, "machine_id": 7}]
    assert causes(events, machines=removed) == [None, cause]
    without_machine = [events[0], {"time_us": T + off_us, "type": 4}]
    assert causes(without_machine, machines=removed) == [None, cause]


@pytest.mark.parametrize("machine", [0, -1, None])
def test_no_machine_is_never_joined_as_a_machine(machine: int | None) -> None:
    machines = [{"time_us": 0, "machine_id": machine or 0, "type": 1, "capacity_cpu": 0.5, "platform_id": "x"},
                {"time_us": T, "machine_id": machine or 0, "type": 2}]  # fmt: skip
    assert causes([{"time_us": T, "type": 4, "machine_id": machine}], machines=machines) == [Cause.PREEMPTION]
    known = window(usage={"machine_id": machine}, machines=machines[:1])
    assert (known["capacity_cpu"], known["platform_id"]) == (None, None)


def test_sentinel_times_are_no_instants_of_a_cause() -> None:
    collections = [{"time_us": 5, "parent_collection_id": 9}, {"time_us": 0, "type": 7, "collection_id": 9},
                   {"time_us": AFTER_TRACE_US, "type": 7, "collection_id": 9}]  # fmt: skip
    kills = [{"time_us": 0, "type": 7}, {"time_us": AFTER_TRACE_US, "type": 7}]
    assert causes(kills, collections) == [Cause.USER, Cause.USER]


def test_the_newest_request_and_its_changes_in_this_run_are_known() -> None:
    known = window(
        {"time_us": 10, "type": EventType.SUBMIT, "request_cpu": 0.1, "request_memory": 0.2, "priority": 119},
        {"time_us": 20, "type": EventType.SCHEDULE, "request_cpu": 0.1, "request_memory": 0.2, "priority": 119},
        {"time_us": 25, "type": EventType.UPDATE_RUNNING, "request_cpu": 0.3, "request_memory": 0.3, "priority": 119},
        {"time_us": 30, "type": EventType.FAIL, "priority": 119},
        {"time_us": 40, "type": EventType.SCHEDULE, "priority": 120, "scheduling_class": 2},
        {"time_us": 50, "type": EventType.UPDATE_RUNNING, "request_cpu": 0.5, "request_memory": 0.0, "priority": 120},
        {"time_us": P, "type": EventType.UPDATE_RUNNING, "request_cpu": 0.75, "request_memory": 0.5, "priority": 120},
        {"time_us": P + 1, "type": EventType.UPDATE_RUNNING, "request_cpu": 1.0, "request_memory": 1, "priority": 360},
    )
    assert (known["request_cpu"], known["request_memory"], known["request_changes"]) == (0.75, 0.5, 2)
    assert (known["priority"], known["tier"]) == (120, 3)
    assert (known["run_number"], known["run_start_us"], known["submitted_us"]) == (2, 40, 10)
    assert (known["last_terminal_us"], known["last_terminal_type"]) == (30, EventType.FAIL)


def test_a_machine_has_the_shape_of_its_newest_event_and_none_once_removed() -> None:
    here = {"machine_id": 7}
    added = here | {"time_us": 0, "type": 1, "capacity_cpu": 0.5, "capacity_memory": 0.25, "platform_id": "x"}
    update = here | {"time_us": P, "type": 3, "capacity_cpu": 0.75}
    later = here | {"time_us": P + 1, "type": 3, "capacity_cpu": 1.0}
    known = window(usage=here, machines=[later, update, added])
    assert (known["capacity_cpu"], known["capacity_memory"], known["platform_id"]) == (0.75, 0.25, "x")
    assert window(usage=here, machines=[added, here | {"time_us": 9, "type": 2}])["capacity_cpu"] is None
    again = [added, here | {"time_us": 9, "type": 1, "capacity_cpu": 0.5}, here | {"time_us": 9, "type": 2}]
    assert window(usage=here, machines=again)["capacity_cpu"] == 0.5


def test_what_the_collection_says_is_known_only_from_its_event_on() -> None:
    early = {"time_us": 5, "vertical_scaling": 3, "parent_collection_id": 9, "priority": 25, "scheduling_class": 1}
    late = {"time_us": P + 1, "vertical_scaling": 1, "parent_collection_id": 8, "priority": 360}
    known = window(collections=[late, early])
    assert (known["vertical_scaling"], known["parent_collection_id"]) == (3, 9)
    assert (known["priority"], known["tier"], known["scheduling_class"]) == (25, 0, 1)
    unknown = window(collections=[late])
    assert [unknown[name] for name in ("vertical_scaling", "parent_collection_id", "priority", "tier")] == [None] * 4


def test_changing_anything_after_the_window_end_changes_the_outcome_only() -> None:
    def known(later: int) -> dict[str, object]:
        row = window(
            {"time_us": 20, "type": EventType.SCHEDULE, "priority": 119},
            {"time_us": P + later, "type": EventType.FAIL, "priority": later},
            {"time_us": P + later, "type": EventType.SCHEDULE, "priority": later},
            collections=[{"time_us": P + later, "priority": later}],
            usage={"machine_id": 7},
            machines=[{"time_us": P + later, "machine_id": 7, "type": 1, "capacity_cpu": later / 8}],
        )
        return {name: value for name, value in row.items() if not name.startswith("next_")}

    assert known(1) == known(7)


def test_vectors_become_quantiles_and_alloc_instances_are_left_out() -> None:
    full = {
        "cpu_usage_distribution": [k / 16 for k in range(11)],
        "tail_cpu_usage_distribution": [1.0 + k for k in range(9)],
    }
    rows = table("instance_usage", [full, {"instance_index": 1}, {"collection_type": 1}])
    reduced = usage_windows(rows).collect()
    assert reduced.schema == USAGE_SCHEMA
    assert reduced.select("cpu_p50", "cpu_p90", "cpu_p95", "cpu_p99").rows() == [
        (5 / 16, 9 / 16, 5.0, 9.0), (None,) * 4,
    ]  # fmt: skip


def test_tasks_inside_an_alloc_are_known_by_usage_or_events() -> None:
    assert window(usage={"alloc_collection_id": 3})["in_alloc"] is True
    assert window({"time_us": 5, "type": 3, "alloc_collection_id": 3})["in_alloc"] is True
    assert window({"time_us": 5, "type": 3})["in_alloc"] is False
