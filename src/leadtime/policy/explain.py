"""One threshold → what it is, why its default, which rules touch it, and what it does at the values that matter."""

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass

from leadtime.domain.errors import BadPolicy
from leadtime.policy import rules
from leadtime.policy.fields import ThresholdField, all_fields, plain
from leadtime.policy.schema import Policy

MINUTES_A_MONTH = 43_200
_DEFAULT = Policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one value does."""

    value: str
    does: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldExplanation:
    """All there is to say about one threshold."""

    field: ThresholdField
    effects: tuple[Effect, ...]
    touched_by: tuple[rules.Rule, ...]


def explain(path: str) -> FieldExplanation:
    """Explain ``section.name``, or ``name`` alone where it is the only one of that name.

    Raises BadPolicy naming the nearest threshold when there is none.
    """
    field = _find(path)
    return FieldExplanation(field=field, effects=_effects(field), touched_by=rules.rules_about(field.path))


def _find(path: str) -> ThresholdField:
    fields = {field.path: field for field in all_fields()}
    if path in fields:
        return fields[path]
    by_name = [field for field in fields.values() if field.name == path]
    if len(by_name) == 1:
        return by_name[0]
    begun = sorted((one for one in fields if one.startswith(path)), key=len) if path else []
    near = begun[:1] or difflib.get_close_matches(
        path, [*fields, *(field.name for field in fields.values())], n=1, cutoff=0.5
    )
    inside = [one for one in fields if one.startswith(f"{path}.")]
    if inside:
        cure = f"it is a section of {', '.join(inside)}"
    else:
        cure = f"did you mean {near[0]}?" if near else "'leadtime policy show' lists every threshold"
    raise BadPolicy("policy-field-unknown", f"explaining {path}", "there is no such threshold", cure)


def _effects(field: ThresholdField) -> tuple[Effect, ...]:
    """Lowest, around the default, highest: each with what it does."""
    if field.choices:
        return tuple(Effect(value=choice, does=_WORDS.get(choice, "")) for choice in field.choices)
    if field.kind is bool:
        return tuple(Effect(value=plain(value), does=_WORDS[f"{field.path}={plain(value)}"]) for value in (False, True))
    if not field.is_number:
        words = _WORDS.get(field.path, "")
        return (Effect(value=plain(field.default), does=words),)
    does = _SPECIAL.get(field.path) or _generic(field)
    return tuple(Effect(value=plain(value), does=does(float(value))) for value in _values_that_matter(field))


def _values_that_matter(field: ThresholdField) -> tuple[float, ...]:
    """The bounds, half and twice the default, the default: those within bounds, in order, none twice."""
    default = float(field.default)  # type: ignore[arg-type]  # only asked for numbers
    wanted = {default, default / 2, default * 2, field.lowest or 0.0, field.highest or default}
    allowed = {value for value in wanted if field.allows(value)}
    if field.kind is int:
        allowed = {float(int(value)) for value in allowed if field.allows(int(value))}
    return tuple(sorted(round(value, 6) for value in allowed))


def duration(seconds: float) -> str:
    """Seconds as people say them: 900 → 15 min.

    >>> duration(900), duration(172800), duration(0)
    ('15 min', '2 days', '0 s')
    """
    for size_s, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= size_s * (2 if name == "days" else 1):
            return f"{seconds / size_s:.3g} {name}"
    return f"{seconds:.3g} s"


def _ticks(seconds: float) -> str:
    ticks = round(seconds / _DEFAULT.loop.tick_s, 2)
    return f"{ticks:,g} ticks of {_DEFAULT.loop.tick_s} s" if ticks < 1e5 else f"{ticks:,.0f} ticks"


def _generic(field: ThresholdField) -> Callable[[float], str]:
    """By unit, where no table of its own is written."""
    if field.unit == "s":
        return lambda value: f"{duration(value)}, {_ticks(value)}"
    if field.unit.startswith("share of "):
        return lambda value: f"{value * 100:.3g} % of {field.unit.removeprefix('share of ')}"
    if field.unit == "ticks":
        return lambda value: duration(value * _DEFAULT.loop.tick_s)
    return lambda value: f"{plain(value)} {field.unit}"


def _rate(pods_per_min: float) -> str:
    """Step by step from 60 pods to a cap of 200."""
    after_3 = min(200, 60 + 3 * pods_per_min)
    cap_after = math.ceil(140 / pods_per_min)
    first = min(200, 60 + pods_per_min)
    return f"60 → {first:g} pods after 1 min, {after_3:g} after 3, 200 (a cap) after {cap_after:,}"


def _target(ratio: float) -> str:
    return f"{math.ceil(100 / ratio - 1e-9)} pods for the work of 100 full ones; head room {1 / ratio - 1:.0%}"


def _expiry(seconds: float) -> str:
    return f"survives {seconds // _DEFAULT.loop.tick_s:.0f} missed ticks, then lapses by itself ({duration(seconds)})"


def _level(ratio: float) -> str:
    above = (1 - ratio) / 2
    return f"{above:.1%} of minutes lie above the upper bound: about {above * 1440:.0f} a day"


def _budget(ratio: float) -> str:
    return f"beside an HPA of 100 pods: {ratio * 2400:.0f} pod-hours more a day, {ratio * 100:.3g} pods all day"


def _deviations(deviations: float) -> str:
    a_month = 0.5 * math.erfc(deviations / math.sqrt(2)) * MINUTES_A_MONTH
    times = f"{a_month:,.1f}" if a_month >= 0.05 else "hardly any"
    return f"{times} chance crossings a month on minute data with normal residuals"


def _floor_tolerance(ratio: float) -> str:
    at_100, at_500 = (max(1, math.ceil(ratio * pods)) for pods in (100, 500))
    return f"a floor of 100 pods moves by {at_100} or more, one of 500 by {at_500} or more"


def _excess(ratio: float) -> str:
    target = _DEFAULT.scaling.target_utilisation_ratio
    used = (1 + ratio) * target
    return f"demand {ratio:.0%} above the forecast; pods sized at {target:g} then run at {min(used, 9.99):.0%}"


def _stepwise(ratio: float) -> str:
    return f"a floor is gone after {math.ceil(1 / ratio - 1e-9)} ticks"


def _quantile(ratio: float) -> str:
    return f"{1 - ratio:.0%} of nodes come later than planned"


def _after_ticks(count: float) -> str:
    return f"reached after {duration(count * _DEFAULT.loop.tick_s)} of minutes"


_SPECIAL: dict[str, Callable[[float], str]] = {
    "scaling.normal_pods_added_per_min": _rate,
    "scaling.surge_pods_added_per_min": _rate,
    "scaling.target_utilisation_ratio": _target,
    "scaling.max_extra_pod_hours_ratio": _budget,
    "scaling.floor_tolerance_ratio": _floor_tolerance,
    "scaling.replica_cap": lambda pods: f"a forecast gone wrong stops at {pods:,.0f} pods",
    "scaling.max_buffer_pods": lambda pods: f"room for at most {pods:,.0f} further pods stands ready",
    "scaling.pool_headroom_nodes": lambda nodes: f"{nodes * 24:,.0f} node-hours a day beyond the plan",
    "forecast.max_history_days": lambda days: f"{days / 7:.3g} of each weekday are remembered",
    "forecast.min_scored": _after_ticks,
    "forecast.better_than_last_value_ratio": lambda ratio: (
        f"a model acts at {1 - ratio:.0%} of last value's loss or less"
    ),
    "lead_time.min_episodes": lambda count: f"the prior stands beside what was seen until {count:.0f} scale-ups",
    "actuation.floor_expiry_s": _expiry,
    "actuation.buffer_expiry_s": _expiry,
    "actuation.release_step_ratio": _stepwise,
    "forecast.level_ratio": _level,
    "lead_time.quantile_ratio": _quantile,
    "surge.deviations": _deviations,
    "surge.min_excess_ratio": _excess,
}
_WORDS: dict[str, str] = {
    "forecast.time_zone": "a day begins at midnight of this zone, and 09:00 stays 09:00 when the clock changes",
    "off": "the loop does not decide",
    "shadow": "decisions are recorded, nothing is written",
    "capacity_buffer": "nodes are prepared ahead; no workload object is touched",
    "hpa_floor": "nodes are prepared ahead and minReplicas is raised ahead, each with an expiry",
    "at_once": "all floors go in the same tick; the youngest pods go together",
    "stepwise": "a share of the floor goes each tick, so that no warm pool dies at a stroke",
    "actuation.kill_switch=false": "leadtime acts as far as the stage allows",
    "actuation.kill_switch=true": "nothing is written and everything written is released",
    "risk.measures": "these are proposed for a pod at risk, and no other; a spare replica only behind the others",
    "referee.order": "where two agents want different things of one scope, the earlier in this list wins",
}
