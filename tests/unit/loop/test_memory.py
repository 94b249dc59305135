"""What survives a tick: windows, accounts and logs, at their edges."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from leadtime.loop.memory import PodHourAccount, RaiseLog, RecentNeeds, ShadowLog
from leadtime.loop.record import highest_of_last

AT = datetime(2026, 3, 2, tzinfo=UTC)
DAY_S = 86_400


def test_a_raise_counts_for_sixty_seconds_and_not_at_the_sixtieth() -> None:
    log = RaiseLog().after(AT, 7)
    assert log.added(AT + timedelta(seconds=59)) == 7
    assert log.added(AT + timedelta(seconds=60)) == 0


def test_needs_are_held_for_the_hold_and_no_longer() -> None:
    recent = RecentNeeds().after(0, None, 50, 900).after(60, None, 10, 900)
    assert recent.highest()[-1] == 50
    assert recent.after(899, None, 0, 900).highest()[-1] == 50
    assert recent.after(900, None, 0, 900).highest()[-1] == 10


def test_the_budget_is_a_share_of_the_hpas_pod_hours_over_the_window() -> None:
    account = PodHourAccount()
    for hour in range(24):
        account = account.after(hour * 3600, hpa_pods=100, extra_pods=5, seconds=3600, window_s=DAY_S)
    assert account.allowed(0.12, DAY_S) == pytest.approx(288.0)  # 12 % of 2,400 pod-hours
    assert account.extra == pytest.approx(120.0)


def test_a_young_account_is_carried_on_at_its_mean() -> None:
    account = PodHourAccount().after(0, hpa_pods=100, extra_pods=0, seconds=60, window_s=DAY_S)
    assert account.allowed(0.12, DAY_S) == pytest.approx(288.0)
    assert PodHourAccount().allowed(0.12, DAY_S) == float("inf")


def test_hours_before_the_window_are_forgotten() -> None:
    account = PodHourAccount()
    for hour in range(60):
        account = account.after(hour * 3600, hpa_pods=1, extra_pods=1, seconds=3600, window_s=DAY_S)
    assert len(account.hours) == 24


def test_the_shadow_log_is_bounded_to_seven_days() -> None:
    log = ShadowLog()
    for _ in range(8 * 24 * 6):  # eight days of ten-minute rows
        log = log.after(np.zeros(8, dtype=np.float32), 600, may_act=True)
    assert log.steps() == 7 * 24 * 6
    assert len(log.rows()) == log.steps()


def test_highest_of_last_includes_the_value_itself() -> None:
    assert highest_of_last(np.array([1.0, 5.0, 2.0, 1.0, 1.0]), 2).tolist() == [1, 5, 5, 5, 2]
