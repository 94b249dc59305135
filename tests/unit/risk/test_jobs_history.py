"""What was known of the past at a submission: strictly before it, by hand on small cases and as an invariant."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.jobs import JOB_COLUMNS
from leadtime.risk.jobs_features import NAMES, job_table
from leadtime.risk.jobs_history import NOBODY, load, past_outcomes, past_waits
from leadtime.risk.jobs_labels import censoring_weights, failures, waits

NAN = float("nan")


def reals(*values: float) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


def test_an_end_counts_from_the_next_second_on() -> None:
    past = past_outcomes(np.asarray([0, 0, 0]), reals(0, 10, 11), reals(10, 99, 99), reals(1, 0, 0))
    assert past.ended.tolist() == [0, 0, 1]
    assert past.failed.tolist() == [0, 0, 1]
    assert past.since_failure_s[2] == 1


def test_an_end_that_nobody_saw_and_a_job_of_nobody_count_nowhere() -> None:
    past = past_outcomes(np.asarray([0, NOBODY, 0]), reals(0, 1, 50), reals(NAN, 2, 60), reals(NAN, 1, 0))
    assert past.ended.tolist() == [0, 0, 0]
    assert np.isnan(past.since_end_s).all()


def test_an_old_end_weighs_by_its_age() -> None:
    past = past_outcomes(np.asarray([0, 0]), reals(0, 110), reals(10, 200), reals(1, 0), decay_s=100)
    assert past.failed[1] == pytest.approx(np.exp(-1))


def test_the_queue_holds_who_has_not_started_and_not_given_up() -> None:
    found = load(
        np.zeros(4, np.int64), reals(0, 1, 2, 20), reals(30, NAN, 5, 21), reals(40, 10, 15, 22), reals(4, 2, 1, 1)
    )
    assert found.waiting.tolist() == [0, 1, 2, 1]  # at 20: the first alone; the second gave up at 10
    assert found.waiting_cpus[3] == 4
    assert found.running.tolist() == [0, 0, 0, 0]


def test_past_waits_are_of_jobs_that_had_started() -> None:
    found = past_waits(np.zeros(4, np.int64), reals(0, 5, 8, 101), reals(4, 100, 9, NAN))
    assert found.count.tolist() == [0, 1, 1, 3]
    assert found.p50[3] == 4
    assert found.p90[3] == 95
    assert np.isnan(found.p50[0])


def test_an_unseen_wait_speaks_through_the_longer_ones() -> None:
    told = waits(
        pl.DataFrame({"submitted_s": [0, 0, 0, 0], "started_s": [1, 3, None, 9], "ended_s": [5, 5, 2, None]}),
        known_until_s=8,
    )
    assert told.wait_s.tolist() == [1, 3, 2, 8]
    assert told.seen.tolist() == [1, 1, 0, 0]
    weight = censoring_weights(told)
    assert weight.tolist() == pytest.approx([1, 1.5, 0, 0])  # of the three left at 2 one was lost: two stand for three


def jobs_frame(rows: list[tuple[int, int, int, int, str]]) -> pl.DataFrame:
    """(user, submitted, wait, run time, outcome) → canonical jobs."""
    frame = pl.DataFrame([
        {"job": str(number), "user": f"u{user}", "queue": "q", "cpus": float(1 + user), "submitted_s": at,
         "started_s": at + wait, "ended_s": at + wait + run, "outcome": outcome}
        for number, (user, at, wait, run, outcome) in enumerate(rows)
    ])  # fmt: skip
    return frame.select(
        (pl.col(name) if name in frame.columns else pl.lit(None)).cast(getattr(pl, dtype)).alias(name)
        for name, dtype in JOB_COLUMNS.items()
    )


ROWS = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 50), st.integers(0, 9), st.integers(0, 30),
        st.sampled_from(["failed", "completed", "cancelled"]),
    ),
    min_size=2, max_size=25,
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, cut=st.integers(0, 60))
def test_what_comes_after_a_submission_leaves_its_row_as_it_was(
    rows: list[tuple[int, int, int, int, str]], cut: int
) -> None:
    frame = jobs_frame(rows)
    late = pl.col("ended_s") >= cut
    changed = frame.with_columns(
        outcome=pl.when(late).then(pl.lit("completed")).otherwise("outcome"),
        ended_s=pl.when(late).then(pl.col("ended_s") + 1000).otherwise("ended_s"),
        started_s=pl.when(pl.col("started_s") >= cut).then(pl.col("started_s") + 7).otherwise("started_s"),
    )
    before = (frame["submitted_s"] <= cut).to_numpy()
    one, other = (job_table(each, failures(each)) for each in (frame, changed))
    assert np.array_equal(one.x[before], other.x[before], equal_nan=True)
    assert np.array_equal(one.user_rate[before], other.user_rate[before])


def test_a_name_is_no_feature() -> None:
    rows = [(0, 0, 1, 5, "failed"), (1, 3, 1, 5, "completed"), (0, 20, 0, 1, "failed"), (1, 22, 0, 1, "completed")]
    frame = jobs_frame(rows)
    renamed = frame.with_columns(user=pl.col("user").replace({"u0": "zoe", "u1": "abe"}), job="x" + pl.col("job"))
    one, other = (job_table(each, failures(each)) for each in (frame, renamed))
    assert np.array_equal(one.x, other.x, equal_nan=True)
    assert one.column("user_rate")[2] > one.column("user_rate")[3]
    assert len(NAMES) == one.x.shape[1]
