"""Each repair does what its name says, counts what it touched, and touches nothing the second time."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.borg import AFTER_TRACE_US, V2_TO_V3, WINDOW_US
from leadtime.risk import repairs
from leadtime.risk.gates import Gate, Standing, failed
from leadtime.risk.repairs_plan import Plan, plan_of
from leadtime.testing.toy_trace import frame_of, toy_trace

V3_TO_V2 = {int(v3): v2 for v2, v3 in V2_TO_V3.items()}


@pytest.fixture(scope="module")
def trace() -> dict[str, pl.DataFrame]:
    return toy_trace(collections=6, tasks=3).tables()


@pytest.mark.parametrize(("unit", "divisor"), [("ms", 1_000), ("s", 1_000_000)])
def test_full_windows_come_back_exactly(trace: dict[str, pl.DataFrame], unit: str, divisor: int) -> None:
    usage = trace["instance_usage"].filter(pl.col("start_time_us") % 1_000_000 == 0)
    assert usage.height > 100
    spoilt = usage.with_columns(pl.col("start_time_us", "end_time_us") // divisor)
    mended = repairs.times_to_us(spoilt, unit)
    assert mended.frame.equals(usage)
    assert mended.rows == usage.height


def test_nanoseconds_come_back_exactly(trace: dict[str, pl.DataFrame]) -> None:
    usage = trace["instance_usage"]
    spoilt = usage.with_columns(pl.col("start_time_us", "end_time_us") * 1_000)
    assert repairs.times_to_us(spoilt, "ns").frame.equals(usage)


@given(st.integers(1, WINDOW_US - 1), st.integers(600_000_000, 2_000_000_000_000))
@settings(max_examples=200)
def test_a_window_cut_at_its_end_never_seems_to_end_before_it(length: int, start: int) -> None:
    usage = frame_of("instance_usage", [{"start_time_us": start // 1_000, "end_time_us": (start + length) // 1_000}])
    mended = repairs.times_to_us(usage, "ms").frame
    if (start + length) // 1_000 - start // 1_000 != WINDOW_US // 1_000:
        assert mended["end_time_us"].item() >= start + length
    assert 0 <= mended["end_time_us"].item() - (start + length) // 1_000 * 1_000 < 1_000


def test_before_and_after_the_trace_keep_their_marks() -> None:
    events = frame_of("instance_events", [{"time_us": 0}, {"time_us": AFTER_TRACE_US // 1_000}, {"time_us": 700_000}])
    assert repairs.times_to_us(events, "ms").frame["time_us"].to_list() == [0, AFTER_TRACE_US, 700_000_000]


def test_codes_of_2011_become_those_of_2019(trace: dict[str, pl.DataFrame]) -> None:
    events = trace["instance_events"].filter(pl.col("type").is_in(list(V3_TO_V2)))
    old = events.with_columns(pl.col("type").replace_strict(V3_TO_V2, return_dtype=pl.Int8))
    mended = repairs.v2_to_v3(old)
    assert mended.frame.equals(events)
    assert mended.rows == events.filter(pl.col("type") != 0).height


def test_doubles_anywhere_go_and_the_least_made_up_stays(trace: dict[str, pl.DataFrame]) -> None:
    events = trace["instance_events"]
    assert events.unique().height == events.height
    twin = events.slice(3, 1).with_columns(missing_type=pl.lit(2, pl.Int8))
    parts = [pl.concat([twin, events.head(50), events.head(1)]), pl.concat([events.slice(50), events.slice(7, 2)])]
    marked = repairs.doubles([repairs.identities(part) for part in parts])
    kept = [part.filter(~double) for part, double in zip(parts, marked, strict=True)]
    assert [int(double.sum()) for double in marked] == [2, 2]
    assert pl.concat(kept).equals(events)
    again = repairs.doubles([repairs.identities(part) for part in kept])
    assert sum(int(double.sum()) for double in again) == 0


def test_rows_about_no_machine_and_backward_windows_are_set_aside(trace: dict[str, pl.DataFrame]) -> None:
    machines = trace["machine_events"].with_columns(
        machine_id=pl.when(pl.int_range(pl.len()) < 2).then(pl.int_range(pl.len()) - 1).otherwise("machine_id")
    )
    step = repairs.no_machine_aside(machines)
    assert step.aside is not None
    assert step.aside["machine_id"].to_list() == [-1, 0]
    assert repairs.no_machine_aside(step.frame).rows == 0
    usage = trace["instance_usage"]
    turned = usage.head(2).with_columns(start_time_us=pl.col("end_time_us"), end_time_us=pl.col("start_time_us"))
    step = repairs.backward_aside(pl.concat([usage, turned]))
    assert (step.rows, step.frame.equals(usage)) == (2, True)


@pytest.mark.parametrize("table", ["instance_usage", "instance_events", "collection_events", "machine_events"])
def test_order_is_found_whatever_it_was_and_once_found_stays(trace: dict[str, pl.DataFrame], table: str) -> None:
    frame = trace[table]
    ordered = repairs.in_order(frame, table)
    shuffled = repairs.in_order(frame.sample(fraction=1.0, shuffle=True, seed=1), table)
    assert shuffled.rows > 0
    assert shuffled.frame.equals(ordered.frame)
    again = repairs.in_order(ordered.frame, table)
    assert (again.rows, again.frame.equals(ordered.frame)) == (0, True)


def test_at_the_same_instant_an_end_comes_before_what_begins() -> None:
    events = frame_of("instance_events", [{"time_us": 9, "type": kind} for kind in (0, 3, 5)])
    assert repairs.in_order(events, "instance_events").frame["type"].to_list() == [5, 0, 3]


# --- what a failed gate asks for ----------------------------------------------------------------------------------

FILES = {"b/u-0": ("b", "instance_usage"), "b/e-0": ("b", "instance_events"), "b/c-0": ("b", "collection_events")}


def gate(name: str, where: str, **figures: object) -> Gate:
    return failed(name, where=where, sentence="s", cure="c", figures=figures)


def test_a_plan_touches_only_what_a_failed_gate_names() -> None:
    passed = Gate(name="time-unit", standing=Standing.PASSED, where="b/u-0", sentence="s", figures={"unit": "us"})
    assert plan_of([passed, gate("null-rate", "cell b instance_usage.avg_cpu")], FILES) == Plan()
    plan = plan_of([gate("time-unit", "b/u-0", unit="ms"), gate("enum-proof", "cell b", stands=["v2"])], FILES)
    assert plan == Plan(units={"b/u-0": "ms"}, v2=frozenset({"b/e-0"}))
    plan = plan_of([gate("enum-proof", "cell b collections", stands=["v2"])], FILES)
    assert plan.v2 == {"b/c-0"}


@pytest.mark.parametrize(
    ("name", "figures"),
    [("readable", {}), ("join-match", {}), ("separate-events", {}), ("time-unit", {"unit": "unknown"}),
     ("enum-proof", {"contradicting_ratio": 1.0})],
)  # fmt: skip
def test_what_cannot_be_mended_is_set_aside_with_the_reason(name: str, figures: dict[str, object]) -> None:
    assert plan_of([gate(name, "b/u-0", **figures)], FILES).aside == {"b/u-0": f"{name}: s"}


def test_codes_that_nothing_proves_are_left_alone() -> None:
    assert plan_of([gate("enum-proof", "cell b", stands=[])], FILES) == Plan()


def test_a_second_round_asks_for_more_only_where_something_is_new() -> None:
    first = Plan(units={"a": "ms"}, aside={"x": "r"})
    assert not Plan(units={"a": "ms"}).asks_more_than(first)
    assert Plan(v2=frozenset({"e"})).asks_more_than(first)
    assert first + Plan(units={"a": "s"}, v2=frozenset({"e"})) == Plan(
        units={"a": "ms"}, v2=frozenset({"e"}), aside={"x": "r"}
    )
