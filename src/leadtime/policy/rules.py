"""Rules that span thresholds: CEL text + the sentence a person reads + the cure. One text for here and for elsewhere.

The inputs are flat and typed (``self.scaling.replica_cap`` is an int), so a rule with a wrong name or type fails when
the rules are compiled, not when a policy happens to reach it. ``self`` is Kubernetes' name for the object under test.
Source of CEL: https://cel.dev, evaluated by cel-expr-python.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from leadtime.policy.fields import all_fields, plain, value_of
from leadtime.policy.schema import Policy

if TYPE_CHECKING:
    from cel_expr_python import cel  # type: ignore[import-untyped]  # it ships stubs without py.typed

_PATH = re.compile(r"\bself\.([a-z_]+\.[a-z_0-9]+)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``holds`` is a CEL expression over threshold paths that must be true."""

    id: str
    holds: str
    sentence: str
    cure: str

    @property
    def touches(self) -> tuple[str, ...]:
        """The thresholds the rule speaks about, in order of appearance."""
        return tuple(dict.fromkeys(_PATH.findall(self.holds)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRule:
    """A rule a policy breaks, with the values that break it."""

    rule: Rule
    values: str  # scaling.surge_pods_added_per_min is 5, scaling.normal_pods_added_per_min is 10


RULES: tuple[Rule, ...] = (
    Rule(
        id="surge-rate-not-below-normal",
        holds="self.scaling.surge_pods_added_per_min >= self.scaling.normal_pods_added_per_min",
        sentence="A surge lifts the rate; it must not lower it.",
        cure="raise the surge rate to at least the normal rate",
    ),
    Rule(
        id="floor-outlives-two-ticks",
        holds="self.actuation.floor_expiry_s >= 2 * self.loop.tick_s",
        sentence="A floor is renewed once a tick; it must survive one that is missed.",
        cure="raise floor_expiry_s to two ticks or more",
    ),
    Rule(
        id="buffer-outlives-two-ticks",
        holds="self.actuation.buffer_expiry_s >= 2 * self.loop.tick_s",
        sentence="A buffer is renewed once a tick; it must survive one that is missed.",
        cure="raise buffer_expiry_s to two ticks or more",
    ),
    Rule(
        id="stale-not-before-a-tick",
        holds="self.loop.stale_after_s >= self.loop.tick_s",
        sentence="Data as old as the tick itself is as fresh as it can be.",
        cure="raise stale_after_s to the tick or more",
    ),
    Rule(
        id="hold-begins-before-it-ends",
        holds="self.missing_data.hold_max_s >= self.loop.stale_after_s",
        sentence="The hold on missing data would be over before the data counts as missing.",
        cure="raise hold_max_s above stale_after_s",
    ),
    Rule(
        id="history-holds-queue-window",
        holds="self.loop.history_s >= self.queue.growth_window_s",
        sentence="The queue rule compares pending pods over its window; that much history must be there.",
        cure="raise history_s or shorten growth_window_s",
    ),
    Rule(
        id="queue-window-two-ticks",
        holds="self.queue.growth_window_s >= 2 * self.loop.tick_s",
        sentence="Growth is a difference between ticks; the window must hold two.",
        cure="raise growth_window_s to two ticks or more",
    ),
    Rule(
        id="history-not-forgotten-too-soon",
        holds="self.forecast.max_history_days * 86400 >= self.forecast.min_history_s",
        sentence="Days are forgotten before there are enough of them: no seasonal model could ever act.",
        cure="raise max_history_days or lower min_history_s",
    ),
    Rule(
        id="scores-fit-their-window",
        holds="self.forecast.min_scored * self.loop.tick_s <= self.forecast.score_window_s",
        sentence="The window never holds as many scored forecasts as are asked for: no model could ever act.",
        cure="raise score_window_s or lower min_scored",
    ),
    Rule(
        id="surge-seen-within-headroom",
        holds="self.surge.min_excess_ratio <= 1.0 / self.scaling.target_utilisation_ratio - 1.0",
        sentence="The head room above the target would be used up before a surge counts as one.",
        cure="lower min_excess_ratio or the target utilisation",
    ),
    Rule(
        id="surge-seen-before-it-is-carried-on",
        holds="self.surge.persistence_ticks * self.loop.tick_s <= self.surge.extrapolate_s",
        sentence="A surge would be confirmed later than it may be carried into the future.",
        cure="lower persistence_ticks or raise extrapolate_s",
    ),
    Rule(
        id="surge-clears-no-faster-than-it-comes",
        holds="self.surge.clear_ticks >= self.surge.persistence_ticks",
        sentence="A surge that ends on fewer ticks than it needs to begin would flicker.",
        cure="raise clear_ticks to persistence_ticks or more",
    ),
    Rule(
        id="node-lead-p90-not-below-p50",
        holds="self.lead_time.prior_node_p90_s >= self.lead_time.prior_node_p50_s",
        sentence="Nine of ten nodes take at least as long as five of ten.",
        cure="raise prior_node_p90_s or lower prior_node_p50_s",
    ),
    Rule(
        id="pod-lead-p90-not-below-p50",
        holds="self.lead_time.prior_pod_p90_s >= self.lead_time.prior_pod_p50_s",
        sentence="Nine of ten pods take at least as long as five of ten.",
        cure="raise prior_pod_p90_s or lower prior_pod_p50_s",
    ),
    Rule(
        id="risk-measures-are-known",
        holds="self.risk.measures.all(measure, measure in ['protect_pod', 'avoid_node', 'spare_replica'])",
        sentence="A measure nobody knows would silently not be taken.",
        cure="name protect_pod, avoid_node, spare_replica, or fewer of them",
    ),
    Rule(
        id="risk-hold-outlives-its-score",
        holds="self.risk.hold_s > self.risk.score_expiry_s && self.risk.hold_s >= 2 * self.loop.tick_s",
        sentence="What is done for a pod ends before the score it is done for, or before a missed tick is over.",
        cure="raise hold_s above score_expiry_s, and to two ticks or more",
    ),
    Rule(
        id="risk-spare-not-shorter-than-hold",
        holds="self.risk.max_spare_s >= self.risk.hold_s",
        sentence="A spare replica would go before the alert it was made for is over.",
        cure="raise max_spare_s to hold_s or more",
    ),
    Rule(
        id="risk-score-within-its-horizon",
        holds="self.risk.score_expiry_s <= 60 * self.risk.horizon_min",
        sentence="A score would be used after the time it speaks about is over.",
        cure="lower score_expiry_s or raise horizon_min",
    ),
    Rule(
        id="risk-history-holds-a-score",
        holds="self.risk.history_s >= self.risk.score_expiry_s",
        sentence="A score may be as old as score_expiry_s; the windows behind it must still be read.",
        cure="raise history_s",
    ),
    Rule(
        id="order-names-each-agent-once",
        holds="size(self.referee.order) == 5 && ['safety', 'admission', 'unblock', 'scaling', 'efficiency']"
        ".all(agent, agent in self.referee.order)",
        sentence="An agent that has no rank could not be judged.",
        cure="name safety, admission, unblock, scaling and efficiency, each once",
    ),
    Rule(
        id="safety-first-cost-last",
        holds="self.referee.order[0] == 'safety' && self.referee.order[size(self.referee.order) - 1] == 'efficiency'",
        sentence="Safety comes before queue health, queue health before cost.",
        cure="begin with safety and end with efficiency",
    ),
)


def broken(policy: Policy) -> tuple[BrokenRule, ...]:
    """The rules that ``policy`` breaks, in the order of RULES. A rule that cannot be evaluated counts as broken."""
    data = {f"self.{field.path}": _cel_value(value_of(policy, field.path)) for field in all_fields()}
    found = []
    for rule, expression in _compiled():
        if expression.eval(data=data).value() is not True:
            values = ", ".join(f"{path} is {plain(value_of(policy, path))}" for path in rule.touches)
            found.append(BrokenRule(rule=rule, values=values))
    return tuple(found)


def rules_about(path: str) -> tuple[Rule, ...]:
    """The rules that speak about one threshold."""
    return tuple(rule for rule in RULES if path in rule.touches)


@cache
def _compiled() -> "tuple[tuple[Rule, cel.Expression], ...]":
    """All rules, type-checked. Raises RuntimeError, with CEL's own message, for a wrong name or type in a rule."""
    from cel_expr_python import cel

    kinds = {int: cel.Type.INT, float: cel.Type.DOUBLE, bool: cel.Type.BOOL, tuple: cel.Type.List(cel.Type.STRING)}
    env = cel.NewEnv(variables={f"self.{field.path}": kinds.get(field.kind, cel.Type.STRING) for field in all_fields()})
    compiled = []
    for rule in RULES:
        expression = env.compile(rule.holds)
        if expression.return_type() != cel.Type.BOOL:
            raise RuntimeError(f"compiling rule {rule.id}: it gives {expression.return_type()}, must give a bool")
        compiled.append((rule, expression))
    return tuple(compiled)


def _cel_value(value: object) -> object:
    """Enums as their text, tuples as lists; the rest as it is."""
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, str) else value
