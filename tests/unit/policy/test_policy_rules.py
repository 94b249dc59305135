"""Rules that span thresholds: type-checked, kept by the default policy, each broken by something."""

from typing import Any

import pytest

from leadtime.policy import Policy, rules
from leadtime.policy.fields import all_fields

BREAKS: dict[str, dict[str, dict[str, Any]]] = {
    "surge-rate-not-below-normal": {"scaling": {"surge_pods_added_per_min": 9}},
    "floor-outlives-two-ticks": {"actuation": {"floor_expiry_s": 121}, "loop": {"tick_s": 61}},
    "buffer-outlives-two-ticks": {"actuation": {"buffer_expiry_s": 120}, "loop": {"tick_s": 61}},
    "stale-not-before-a-tick": {"loop": {"stale_after_s": 59}},
    "hold-begins-before-it-ends": {"missing_data": {"hold_max_s": 89}},
    "history-holds-queue-window": {"loop": {"history_s": 600}, "queue": {"growth_window_s": 601}},
    "queue-window-two-ticks": {"queue": {"growth_window_s": 119}},
    "history-not-forgotten-too-soon": {"forecast": {"max_history_days": 1}},
    "scores-fit-their-window": {"forecast": {"min_scored": 10_080, "score_window_s": 604_799}},
    "surge-seen-within-headroom": {"surge": {"min_excess_ratio": 0.43}},
    "surge-seen-before-it-is-carried-on": {"surge": {"persistence_ticks": 16, "clear_ticks": 16}},
    "surge-clears-no-faster-than-it-comes": {"surge": {"clear_ticks": 1}},
    "node-lead-p90-not-below-p50": {"lead_time": {"prior_node_p90_s": 599.0}},
    "pod-lead-p90-not-below-p50": {"lead_time": {"prior_pod_p90_s": 239.0}},
    "risk-measures-are-known": {"risk": {"measures": ("protect_pod", "migrate")}},
    "risk-hold-outlives-its-score": {"risk": {"hold_s": 600}},
    "risk-spare-not-shorter-than-hold": {"risk": {"max_spare_s": 899}},
    "risk-score-within-its-horizon": {"risk": {"horizon_min": 9}},
    "risk-history-holds-a-score": {"risk": {"history_s": 900, "score_expiry_s": 901, "hold_s": 902}},
    "order-names-each-agent-once": {"referee": {"order": ("safety", "unblock", "scaling", "efficiency")}},
    "safety-first-cost-last": {"referee": {"order": ("admission", "safety", "unblock", "scaling", "efficiency")}},
}


def test_the_default_policy_keeps_every_rule() -> None:
    assert rules.broken(Policy()) == ()


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.id)
def test_each_rule_can_be_broken_and_says_by_what(rule: rules.Rule) -> None:
    found = {one.rule.id: one for one in rules.broken(Policy.model_validate(BREAKS[rule.id]))}
    assert rule.id in found
    assert all(f"{path} is " in found[rule.id].values for path in rule.touches)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.id)
def test_a_rule_is_broken_alone_by_one_step_over_its_edge(rule: rules.Rule) -> None:
    """The values above lie one step beyond; taken back by leaving them out, nothing is broken (see the default)."""
    broken = [one.rule.id for one in rules.broken(Policy.model_validate(BREAKS[rule.id]))]
    assert broken == [rule.id]


def test_rules_speak_of_thresholds_that_exist_and_ids_are_unique() -> None:
    known = {field.path for field in all_fields()}
    assert all(rule.touches and set(rule.touches) <= known for rule in rules.RULES)
    assert len({rule.id for rule in rules.RULES}) == len(rules.RULES)


def test_an_empty_order_breaks_the_rules_instead_of_stopping_them() -> None:
    found = [one.rule.id for one in rules.broken(Policy.model_validate({"referee": {"order": ()}}))]
    assert found == ["order-names-each-agent-once", "safety-first-cost-last"]


def test_a_rule_of_mixed_types_fails_when_the_rules_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = rules.Rule(id="wrong", holds="self.scaling.replica_cap > self.actuation.stage", sentence="", cure="")
    rules._compiled.cache_clear()
    monkeypatch.setattr(rules, "RULES", (wrong,))
    with pytest.raises(RuntimeError, match="no matching overload"):
        rules.broken(Policy())
    rules._compiled.cache_clear()


def test_a_section_that_came_later_leaves_the_hash_of_policies_that_do_not_name_it() -> None:
    """The hash of the default policy before there was a section ``risk``; old ledgers and reports carry it."""
    assert Policy().hash == "b8738e60526493a3"
    assert Policy.model_validate({"risk": {"min_lift": 6.0}}).hash != Policy().hash
