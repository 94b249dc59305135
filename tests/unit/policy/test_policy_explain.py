"""What a threshold does, at the values that matter."""

import pytest

from leadtime.domain.errors import BadPolicy
from leadtime.policy.explain import duration, explain
from leadtime.policy.fields import all_fields, plain


def effects(path: str) -> dict[str, str]:
    """Value → what it does."""
    return {one.value: one.does for one in explain(path).effects}


@pytest.mark.parametrize("field", all_fields(), ids=lambda field: field.path)
def test_every_threshold_has_an_effect_at_its_default(field) -> None:
    told = explain(field.path)
    assert any(one.value == plain(field.default) for one in told.effects)
    assert all(one.does for one in told.effects)
    assert field.why
    assert field.bounds


def test_the_rate_is_told_minute_by_minute() -> None:
    assert (
        effects("scaling.surge_pods_added_per_min")["20"]
        == "60 → 80 pods after 1 min, 120 after 3, 200 (a cap) after 7"
    )


def test_the_target_is_told_in_pods() -> None:
    assert effects("scaling.target_utilisation_ratio")["0.7"] == "143 pods for the work of 100 full ones; head room 43%"


def test_four_deviations_are_about_one_false_crossing_a_month() -> None:
    assert effects("surge.deviations")["4"].startswith("1.4 chance crossings a month")


def test_the_name_alone_is_enough_and_a_wrong_one_is_met_with_the_nearest() -> None:
    assert explain("replica_cap").field.path == "scaling.replica_cap"
    with pytest.raises(BadPolicy, match=r"did you mean scaling\.target_utilisation_ratio\?"):
        explain("scaling.target_utilization_ratio")
    with pytest.raises(BadPolicy, match=r"a section of queue\.growth_window_s"):
        explain("queue")
    with pytest.raises(BadPolicy, match="policy show"):
        explain("§")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (5400, "1.5 h"), (86_400, "24 h"), (604_800, "7 days")],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text
