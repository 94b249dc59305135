"""The label contract (docs/designs/0013) edge by edge, and against a slow reference that loops over events."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.borg import (
    AFTER_TRACE_US,
    COLLECTION_EVENTS,
    INSTANCE_EVENTS,
    INSTANCE_USAGE,
    MACHINE_EVENTS,
    MINUTE_US,
    TERMINAL,
    Column,
    EventType,
)
from leadtime.risk.asof import join_partition
from leadtime.risk.labels import labels
from leadtime.risk.windows import WINDOW_SCHEMA

SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST = (
    EventType.SUBMIT, EventType.SCHEDULE, EventType.EVICT, EventType.FAIL, EventType.FINISH, EventType.KILL,
    EventType.LOST,
)  # fmt: skip
H_US = 15 * MINUTE_US
P = 10_000 * MINUTE_US
UNTIL = 100_000 * MINUTE_US


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    y: int | None
    excluded: str | None
    is_running: bool
    run_number: int
    next_us: int | None


def frame(columns: Sequence[Column], rows: Sequence[dict[str, object]]) -> pl.LazyFrame:
    types = {"Int8": pl.Int8, "Int32": pl.Int32, "Int64": pl.Int64, "Float32": pl.Float32, "String": pl.String}
    schema = {column.name: types.get(column.dtype, pl.List(pl.Float32)) for column in columns}
    zero = {column.name: 0 for column in columns if column.omitted == "zero"}
    return pl.LazyFrame([{name: (zero | row).get(name) for name in schema} for row in rows], schema=schema)


def joined(
    windows: Sequence[tuple[int, int, int]],
    events: Sequence[tuple[int, int, int, EventType, int]],
    **tables: Sequence[dict[str, object]],
) -> pl.LazyFrame:
    """Windows (collection, instance, p) and events (time, collection, instance, type, missing_type)."""
    usage = [
        {"collection_id": c, "instance_index": i, "start_time_us": p - 1000, "end_time_us": p} for c, i, p in windows
    ]
    instance = [
        {"time_us": t, "collection_id": c, "instance_index": i, "type": int(kind), "missing_type": made_up}
        for t, c, i, kind, made_up in events
    ]
    return join_partition(
        frame(INSTANCE_USAGE, usage),
        frame(INSTANCE_EVENTS, instance),
        frame(COLLECTION_EVENTS, tables.get("collections", ())),
        frame(MACHINE_EVENTS, tables.get("machines", ())),
    )


def judged(windows: pl.LazyFrame, until: int = UNTIL, delay_us: int = 0) -> list[Label]:
    rows = labels(windows, horizons_min=[15], observed_until_us=until, delay_us=delay_us).collect()
    return [
        Label(
            y=row["y_15"], excluded=row["excluded_15"], is_running=row["is_running"], run_number=row["run_number"],
            next_us=row["next_terminal_time_us"],
        )
        for row in rows.iter_rows(named=True)
    ]  # fmt: skip


def one(*events: tuple[int, EventType], p: int = P, until: int = UNTIL, delay_us: int = 0) -> Label:
    """The label of one window of instance (1, 0), which was scheduled at 5 unless the events say so."""
    listed = [(time, 1, 0, kind, 0) for time, kind in events]
    (label,) = judged(joined([(1, 0, p)], listed), until, delay_us)
    return label


STARTED = (5, SCHEDULE)


@pytest.mark.parametrize(
    ("offset_us", "y", "excluded"),
    [(0, None, "not_running"), (1, 1, None), (H_US, 1, None), (H_US + 1, 0, None), (-1, None, "not_running")],
)
def test_the_interval_is_open_at_the_window_end_and_closed_at_the_horizon(
    offset_us: int, y: int | None, excluded: str | None
) -> None:
    label = one(STARTED, (P + offset_us, FAIL))
    assert (label.y, label.excluded) == (y, excluded)


@pytest.mark.parametrize("kind", [EVICT, FINISH, KILL])
def test_a_competing_end_makes_the_row_negative_even_where_a_failure_follows(kind: EventType) -> None:
    assert one(STARTED, (P + 10, kind), (P + 20, SCHEDULE), (P + 30, FAIL)).y == 0


def test_lost_within_the_interval_excludes_and_after_it_does_not() -> None:
    assert one(STARTED, (P + H_US, LOST)).excluded == "lost"
    assert one(STARTED, (P + H_US + 1, LOST)).y == 0
    assert one(STARTED, (P + 5, KILL), (P + 6, LOST)).y == 0


def test_the_interval_beyond_the_observation_is_censored_whatever_was_seen() -> None:
    assert one(STARTED, (P + 1, FAIL), until=P + H_US).y == 1
    assert one(STARTED, (P + 1, FAIL), until=P + H_US - 1).excluded == "censored"
    assert one(STARTED, (P + 1, LOST), until=P + H_US - 1).excluded == "censored"
    assert one(STARTED, (P, FAIL), until=P).excluded == "not_running"


def test_a_failure_and_a_resubmission_in_the_same_microsecond_are_an_end_then_a_start() -> None:
    label = one((P - 50, FAIL), (P - 50, SUBMIT), (P - 50, SCHEDULE), (5, SCHEDULE), (P + 9, FAIL))
    assert label == Label(y=1, excluded=None, is_running=True, run_number=2, next_us=P + 9)


def test_a_resubmitted_task_that_waits_is_not_running() -> None:
    label = one(STARTED, (P - 50, FAIL), (P - 50, SUBMIT), (P + 20, SCHEDULE), (P + 30, FAIL))
    assert (label.excluded, label.is_running) == ("not_running", False)


def test_earlier_failures_and_later_runs_do_not_label_this_run() -> None:
    label = one(STARTED, (50, FAIL), (60, SCHEDULE), (P + 4, FINISH), (P + 5, SCHEDULE), (P + 6, FAIL))
    assert (label.y, label.run_number, label.next_us) == (0, 2, P + 4)


def test_usage_past_the_end_is_not_running() -> None:
    assert one(STARTED, (P - 1, FINISH)).excluded == "not_running"


def test_a_task_alive_at_the_start_runs_from_time_zero() -> None:
    label = one((0, SUBMIT), (0, SCHEDULE), (P + 1, FAIL))
    assert label == Label(y=1, excluded=None, is_running=True, run_number=1, next_us=P + 1)


def test_an_end_after_the_trace_is_no_end() -> None:
    assert one(STARTED, (AFTER_TRACE_US, FAIL)) == Label(
        y=0, excluded=None, is_running=True, run_number=1, next_us=None
    )


def test_an_instance_without_a_start_is_not_known_to_run() -> None:
    assert one((P + 1, FAIL)).excluded == "not_running"
    assert one().excluded == "not_running"


def test_instances_do_not_see_each_other() -> None:
    events = [(5, 1, 0, SCHEDULE, 0), (5, 1, 1, SCHEDULE, 0), (P + 1, 1, 1, FAIL, 0), (5, 2, 0, SCHEDULE, 0)]
    windows = [(2, 0, P), (1, 1, P), (1, 0, P), (1, 0, 4)]
    assert [label.y for label in judged(joined(windows, events))] == [None, 0, 1, 0]


def test_with_a_delay_the_interval_moves_and_runs_that_end_meanwhile_are_not_running() -> None:
    d = MINUTE_US
    assert one(STARTED, (P + d, FAIL), delay_us=d).excluded == "not_running"
    assert one(STARTED, (P + d + 1, FAIL), delay_us=d).y == 1
    assert one(STARTED, (P + d + H_US, FAIL), delay_us=d).y == 1
    assert one(STARTED, (P + d + H_US + 1, FAIL), delay_us=d).y == 0
    assert one(STARTED, (P + H_US, FAIL), until=P + d + H_US - 1, delay_us=d).excluded == "censored"


def test_made_up_records_are_state_unless_they_contradict() -> None:
    start, end = (5, 1, 0, SCHEDULE, 3), (P + 1, 1, 0, FAIL, 2)
    assert [label.y for label in judged(joined([(1, 0, P)], [start, end]))] == [1]
    again = (9, 1, 0, SCHEDULE, 1)
    (label,) = judged(joined([(1, 0, P)], [start, again, end]))
    assert (label.y, label.run_number) == (1, 1)


def test_records_that_differ_only_in_missing_type_are_one() -> None:
    events = [(5, 1, 0, SCHEDULE, 4), (5, 1, 0, SCHEDULE, 0), (5, 1, 0, SCHEDULE, 0)]
    (label,) = judged(joined([(1, 0, P)], events))
    assert label.run_number == 1


def test_failure_types_are_ends_with_a_known_outcome() -> None:
    rows = joined([(1, 0, P)], [(5, 1, 0, SCHEDULE, 0), (P + 1, 1, 0, EVICT, 0)])
    both = frozenset({EventType.FAIL, EventType.EVICT})
    assert labels(rows, horizons_min=[5], failure_types=both, observed_until_us=UNTIL).collect()["y_5"].to_list() == [1]
    with pytest.raises(ValueError, match="known outcome"):
        labels(rows, horizons_min=[5], failure_types=frozenset({EventType.LOST}), observed_until_us=UNTIL)


def test_columns_are_the_contract_whatever_the_input() -> None:
    assert joined([], []).collect().schema == WINDOW_SCHEMA
    assert joined([(1, 0, P)], [(5, 1, 0, SCHEDULE, 0)]).collect().schema == WINDOW_SCHEMA


def reference(
    window: tuple[int, int, int], events: Sequence[tuple[int, int, int, EventType, int]], until: int, delay_us: int
) -> Label:
    """The contract word by word, one event after the other."""
    collection, instance, p = window
    mine = {(t, k) for t, c, i, k, _ in events if (c, i) == (collection, instance)}
    running, runs, seen_end, next_us, next_kind = False, 0, False, None, None
    for time, kind in sorted(mine, key=lambda e: (e[0], 0 if e[1] in TERMINAL else e[1] + 1, e[1])):
        if time <= p and kind == SCHEDULE:
            running, runs = True, runs + 1
        elif time <= p and kind in TERMINAL:
            running = False
        elif time > p and kind in TERMINAL and time != AFTER_TRACE_US and not seen_end:
            seen_end, next_us, next_kind = True, time, kind
    last = p + delay_us + H_US
    if not running or (next_us is not None and next_us <= p + delay_us):
        excluded = "not_running"
    elif last > until:
        excluded = "censored"
    elif next_kind == LOST and next_us is not None and next_us <= last:
        excluded = "lost"
    else:
        excluded = None
    y = None if excluded else int(next_kind == FAIL and next_us is not None and next_us <= last)
    return Label(y=y, excluded=excluded, is_running=running, run_number=runs, next_us=next_us)


TIMES = st.sampled_from([0, AFTER_TRACE_US]) | st.integers(0, 12).map(lambda step: step * MINUTE_US * 5)
EVENTS = st.lists(
    st.tuples(TIMES, st.integers(1, 2), st.integers(0, 1), st.sampled_from(list(EventType)), st.just(0)), max_size=14
)
WINDOWS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 1), st.integers(0, 60).map(lambda m: m * MINUTE_US)),
    min_size=1, max_size=8,
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(windows=WINDOWS, events=EVENTS, until=st.integers(10, 80), delay_s=st.sampled_from([0, 60, 300]))
def test_labels_equal_the_reference(
    windows: list[tuple[int, int, int]],
    events: list[tuple[int, int, int, EventType, int]],
    until: int,
    delay_s: int,
) -> None:
    until_us, delay_us = until * MINUTE_US, delay_s * 1_000_000
    expected = [reference(window, events, until_us, delay_us) for window in sorted(windows)]
    assert judged(joined(windows, events), until_us, delay_us) == expected
