"""Alerts as an on-call person would get them: one a run, so many a day, at the first row that crosses."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.borg import DAY_US, WINDOW_US
from leadtime.risk import alerts


def scored(*runs: tuple[int, list[tuple[int, float, int]]]) -> pl.DataFrame:
    """Runs of (instance, [(window, score, y), …]) as rows with numbered runs."""
    rows = [
        {
            "cell": "b", "collection_id": 1, "instance_index": instance, "run_number": 1,
            "start_time_us": (window - 1) * WINDOW_US, "end_time_us": window * WINDOW_US,
            "risk_score": score, "y": y, "next_terminal_time_us": (window * WINDOW_US + 400_000_000) if y else None,
        }
        for instance, windows in runs
        for window, score, y in windows
    ]  # fmt: skip
    frame = pl.DataFrame(rows, schema_overrides={"next_terminal_time_us": pl.Int64})
    return alerts.with_runs(frame)


A_DAY = 288  # windows


def test_a_run_is_alerted_at_the_first_row_that_crosses_not_at_its_highest():
    rows = scored((0, [(1, 0.2, 0), (2, 0.9, 0), (3, 0.95, 1)]), (1, [(1, 0.9, 0), (A_DAY - 1, 0.1, 0)]))
    chosen = alerts.choose(rows, per_day=2)
    assert chosen.select("instance_index", "end_time_us", "rank").rows() == [(0, 2 * WINDOW_US, 1), (1, WINDOW_US, 2)]


def test_a_run_alerted_yesterday_is_not_alerted_again():
    loud = (0, [(day * A_DAY + 10, 0.9, 0) for day in range(3)])
    quiet = (1, [(day * A_DAY + window, 0.1, 0) for day in range(3) for window in (1, A_DAY - 1)])
    chosen = alerts.choose(scored(loud, quiet), per_day=1)
    assert chosen["instance_index"].to_list() == [0, 1]
    assert chosen["day"].to_list() == [0, 1]


def test_part_of_a_day_has_part_of_the_budget():
    half = scored((0, [(window, 0.1, 0) for window in range(1, A_DAY // 2 + 1)]))
    assert alerts.budgets(half, 100) == {0: 50}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 5))
def test_never_more_alerts_than_the_budget_and_one_a_run(seed, per_day):
    generator = np.random.default_rng(seed)
    runs = [
        (i, [(int(w), float(generator.integers(0, 4)) / 4, 0) for w in generator.integers(1, 3 * A_DAY, 8)])
        for i in range(12)
    ]
    rows = scored(*runs)
    chosen = alerts.choose(rows, per_day=per_day)
    allowed = alerts.budgets(rows, per_day)
    assert all(n <= allowed[day] for day, n in chosen.group_by("day").len().iter_rows())
    assert chosen["run"].n_unique() == chosen.height


def test_precision_counts_alerts_and_recall_counts_failing_runs():
    failing = (0, [(1, 0.9, 1)]), (1, [(1, 0.1, 1), (2, 0.1, 1)])
    healthy = (2, [(1, 0.8, 0)]), (3, [(1, 0.0, 0), (A_DAY - 1, 0.0, 0)])
    at = alerts.precision_recall_at_k_per_day(scored(*failing, *healthy), per_day=2)
    assert (at.alerts, at.true_alerts, at.failing_runs) == (2, 1, 2)
    assert (at.precision, at.recall) == (0.5, 0.5)


def test_equal_scores_favour_nobody():
    # the failing run is the first row of all; among 400 equal ones an order by row would always alert it
    runs = [(i, [(1, 0.5, int(i == 0)), (A_DAY - 1, 0.5, 0)]) for i in range(400)]
    chosen = alerts.choose(scored(*runs), per_day=4)
    assert chosen["instance_index"].to_list() != [0, 1, 2, 3]


def test_lead_time_runs_from_the_alert_to_the_failure():
    rows = scored((0, [(1, 0.9, 1)]), (1, [(1, 0.9, 1)]))
    lead = alerts.lead_time_quantiles(rows, needs_s=(300, 600))
    assert lead.alerts == 2
    assert lead.quantiles_s[0.5] == pytest.approx(400.0)
    assert lead.share_at_least == {300: 1.0, 600: 0.0}


def test_without_true_alerts_there_is_no_lead_time_rather_than_zero():
    assert alerts.lead_time_quantiles(scored((0, [(1, 0.9, 0)])).clear()).quantiles_s == {}
    assert DAY_US == A_DAY * WINDOW_US  # what these tests count in
