"""A feature row knows what happened up to its window's end and nothing else: in bulk and live."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.borg import WINDOW_US, EventType
from leadtime.risk.features import (
    BESIDE,
    FEATURES,
    FRESH_US,
    HISTORY_US,
    HISTORY_WINDOWS,
    KEY,
    Context,
    Profile,
    context_from,
    feature_frame,
    features_of,
    live_rows,
)
from leadtime.risk.leaks import Tables, another_future, features_at, hashes_upto, moved_by_the_future
from leadtime.testing.borg_trace import Trace, small_trace

NAMES = [feature.name for feature in FEATURES]
TASK = ["collection_id", "instance_index"]


def tables_of(trace: Trace) -> Tables:
    return Tables(
        windows=trace.windows(), events=trace.ordered_events(), collections=trace.collections, machines=trace.machines
    )


def context_of(tables: Tables) -> Context:
    return context_from(
        tables.windows.lazy(), tables.events.lazy(), collections=tables.collections, machines=tables.machines
    )


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 0.95))
def test_no_feature_moves_when_everything_after_p_is_made_up_anew(seed: int, share: float) -> None:
    tables = tables_of(small_trace(seed))
    ends = tables.windows["end_time_us"].sort()
    at = int(ends[int(share * (len(ends) - 1))])
    moved = moved_by_the_future(tables, [at], profile=Profile.ADVANCED, seed=seed, features=FEATURES)
    assert moved == {}


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 0.95))
def test_no_feature_moves_when_the_raw_trace_after_p_is_made_up_anew(seed: int, share: float) -> None:
    trace = small_trace(seed)
    ends = trace.usage["end_time_us"].sort()
    at = int(ends[int(share * (len(ends) - 1))])
    raw = Tables(windows=trace.windows(), events=trace.events, collections=trace.collections, machines=trace.machines)
    future = another_future(raw, at, seed=seed)
    usage = trace.usage.filter((pl.col("end_time_us") <= at) | (pl.col("avg_cpu") > 0.05))
    other = replace(trace, usage=usage, events=future.events, collections=future.collections, machines=future.machines)
    before, after = (
        features_at(tables_of(each), profile=Profile.ADVANCED, features=FEATURES) for each in (trace, other)
    )
    assert hashes_upto(before, at, NAMES) == hashes_upto(after, at, NAMES)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 0.99))
def test_live_rows_equal_the_bulk_bit_for_bit(seed: int, share: float) -> None:
    tables = tables_of(small_trace(seed))
    context = context_of(tables)
    bulk = feature_frame(tables.windows.lazy(), tables.events.lazy(), context, profile=Profile.ADVANCED).collect()
    ends = bulk["end_time_us"].sort()
    at = int(ends[int(share * (len(ends) - 1))])
    live = live_rows(tables.windows, tables.events, context, profile=Profile.ADVANCED, at_us=at)
    newest = bulk.filter(pl.col("end_time_us") <= at).unique(TASK, keep="last", maintain_order=True)
    assert live.equals(newest)


def test_live_rows_need_only_the_stated_history() -> None:
    tables = tables_of(small_trace(3, collections=2, steps=700, run_windows=500))
    one, events, context = tables.windows, tables.events, context_of(tables)
    at = int(one["end_time_us"].max())
    from_end = pl.int_range(pl.len()).reverse().over([*TASK, "run_number"])
    short = one.filter((pl.col("end_time_us") > at - HISTORY_US) | (from_end < HISTORY_WINDOWS))
    assert short.height < one.height / 1.2
    fresh = pl.col("end_time_us") > at - FRESH_US
    whole, live = (
        live_rows(each, events, context, profile=Profile.ADVANCED, at_us=at).filter(fresh) for each in (one, short)
    )
    assert live.height > 0
    assert live.equals(whole)


def test_a_leaking_feature_is_named() -> None:
    tables = tables_of(small_trace(5))
    honest = features_of(Profile.BASELINE)[0]
    total = replace(
        honest, name="events_of_the_whole_trace", build=lambda block: block.number("avg_cpu") + block.events.height
    )
    at = int(tables.windows["end_time_us"].quantile(0.5, interpolation="nearest") or 0)
    moved = moved_by_the_future(tables, [at], profile=Profile.BASELINE, seed=1, features=(honest, total))
    assert moved == {"events_of_the_whole_trace": (at,)}


def test_a_row_earlier_in_time_never_sees_another_tasks_later_failure_whatever_the_order_of_rows() -> None:
    """T7: rolling over a machine or a user in rows sorted by task sees the future of the tasks before."""
    trace = small_trace(11)
    tables = tables_of(trace)
    base = features_at(tables, profile=Profile.ADVANCED)
    latest = int(tables.windows["end_time_us"].max())
    task = tables.windows.sort("end_time_us").tail(1).select("collection_id", "instance_index")
    failed = tables.events.filter(pl.col("type") == EventType.SCHEDULE).join(task, on=TASK, how="semi").head(1)
    failed = failed.with_columns(
        time_us=pl.lit(latest - WINDOW_US // 2),
        type=pl.lit(int(EventType.FAIL), pl.Int8),
        machine_id=pl.lit(1, pl.Int64),
    )
    more = features_at(replace(tables, events=pl.concat([tables.events, failed])), profile=Profile.ADVANCED)
    names = [feature.name for feature in features_of(Profile.ADVANCED)]
    before = latest - WINDOW_US // 2 - 1
    assert hashes_upto(base, before, names) == hashes_upto(more, before, names)
    now, then = (hashes_upto(each, latest, names) for each in (base, more))
    assert {name for name in names if now[name] != then[name]} >= {"collection_failures", "user_failures"}


@pytest.mark.parametrize("profile", Profile)
def test_columns_are_the_key_the_run_and_the_declared_features_in_float32(profile: Profile) -> None:
    tables = tables_of(small_trace(2))
    rows = feature_frame(
        tables.windows.lazy().with_columns(cell=pl.lit("b")), tables.events.lazy(), context_of(tables), profile=profile
    ).collect()
    declared = [feature.name for feature in features_of(profile)]
    assert rows.columns == [*KEY, *BESIDE, *declared]
    assert all(rows.schema[name] == pl.Float32 for name in declared)
    assert rows.height == tables.windows.height
    assert not any(rows[name].is_nan().any() or rows[name].is_infinite().any() for name in declared)


def test_no_feature_is_an_id_a_name_a_length_or_a_sample_count() -> None:
    words = {"id", "index", "length", "duration", "samples", "rate", "platform", "hash", "time"}
    for feature in FEATURES:
        assert not words & set(feature.name.split("_")), feature.name
    assert len(NAMES) == len(set(NAMES))
    assert 14 <= len(features_of(Profile.BASELINE)) <= 18
    assert len(features_of(Profile.ADVANCED)) >= 60


def test_the_baseline_needs_neither_events_nor_context() -> None:
    tables = tables_of(small_trace(4))
    with_all = feature_frame(
        tables.windows.lazy(), tables.events.lazy(), context_of(tables), profile=Profile.BASELINE
    ).collect()
    alone = feature_frame(tables.windows.lazy(), tables.events.clear().lazy(), profile=Profile.BASELINE).collect()
    assert alone.equals(with_all)
