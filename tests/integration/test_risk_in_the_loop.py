"""A failure model in the loop: what it saves beside its placebo and perfect knowledge, and what it may cost."""

import pytest

from leadtime.simulate.report_fields import rounded
from leadtime.simulate.risk_study import as_json, study
from leadtime.testing.risk_world import prepared
from leadtime.testing.usage_scorer import UsageScorer


@pytest.mark.slow
def test_a_model_that_knows_saves_requests_the_placebo_saves_none_and_the_budget_bounds_the_cost():
    hours, budget, longest_s = 24, 3, 3600
    world = prepared(hours, base_rate=0.03, spare_replicas_per_day=budget, max_spare_s=longest_s)
    found = study(world, UsageScorer(base_rate=0.03), lambda _what, _share: None, draws=5)
    lost = {
        name: found.difference(name, "none", lambda one: one.requests_lost) for name in ("placebo", "model", "oracle")
    }
    assert lost["oracle"].high < 0
    assert lost["model"].mean < 0
    assert lost["placebo"].high > 0
    assert lost["oracle"].mean < lost["model"].mean < lost["placebo"].mean
    # A spare replica costs its longest time, the HPA's 300 s before it goes, and a tick; a day has its budget of them.
    most = budget * hours / 24 * (longest_s + 300 + 300) / 3600
    for name in ("placebo", "model", "oracle"):
        assert all(one.spare_replicas <= budget for one in found.of(name))
        for one, none in zip(found.of(name), found.of("none"), strict=True):
            assert one.pod_hours - none.pod_hours <= most + none.failures * 0.25  # a failed pod is missed for minutes
    told = as_json(found, rounded)
    assert told["draws"] == 5
    assert set(told["worlds"]) == {"none", "placebo", "model", "oracle"}
    assert told["worlds"]["none"]["spare_replicas"] == 0


@pytest.mark.slow
def test_equal_runs_give_equal_studies():
    world = prepared(2, base_rate=0.1)
    one, two = (study(world, UsageScorer(base_rate=0.1), lambda _what, _share: None, draws=2) for _ in range(2))
    assert one == two
