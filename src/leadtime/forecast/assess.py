"""One workload's demand series → forecast path with calibrated bounds, and a surge when demand runs away from it.

The state is a value: every function takes one and returns a new one. All models hear every minute; every ten minutes
each is asked for a path that is scored when its time has come (race); every six hours the best are chosen (champion).
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from math import isfinite
from typing import Any

from leadtime.domain.demand import DemandPath, Surge, SurgeAlarm
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import from_epoch
from leadtime.forecast import champion as champions
from leadtime.forecast import race as races
from leadtime.forecast import recent, surge_alarm
from leadtime.forecast import surge as surges
from leadtime.forecast.blend import Blend, blend
from leadtime.forecast.champion import Champion
from leadtime.forecast.entrants import entrants, memories
from leadtime.forecast.model import MINUTE_S, Band, DemandModel, TooShort
from leadtime.forecast.race import Race
from leadtime.forecast.surge import Reference, SurgeState
from leadtime.forecast.surge_alarm import NOTHING_BESIDE, AlarmState, Beside, Expected
from leadtime.forecast.surge_cause import NO_DEMAND
from leadtime.policy.schema import ForecastPolicy, Policy, SurgePolicy

DAY_MIN = 1440
FORGET_AFTER_DAYS = 28  # a hole longer than any history: nothing from before it counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForecastState:
    """What survives a tick for one workload. ``memories`` by name; times in epoch seconds."""

    memories: dict[str, Any]
    race: Race | None = None
    champion: Champion = field(default_factory=champions.first)
    surge: SurgeState = field(default_factory=SurgeState)
    alarm: AlarmState = field(default_factory=AlarmState)
    mean: float = 0.0  # fading mean of about a day, what the surge detector calls usual
    known_minutes: int = 0
    first_at_s: int | None = None
    last_at_s: int | None = None  # end of the newest bucket seen
    last_known_s: int | None = None  # end of the newest bucket that was not a gap


def start() -> ForecastState:
    """The state before the first bucket."""
    return ForecastState(memories={})


def observe(state: ForecastState, series: Series, policy: Policy, *, beside: Beside = NOTHING_BESIDE) -> ForecastState:
    """Take every bucket newer than the last one seen; a gap, or a hole before the series, is kept as a gap.

    beside: what else is known now; it is taken to be about the newest bucket. Buckets already seen change nothing.
    Raises ValueError when the series' step is not one minute.
    """
    if series.step_s != MINUTE_S:
        raise ValueError(f"observing {series.name}: step is {series.step_s} s, must be {MINUTE_S} s; resample it first")
    start_s = int(series.start.timestamp())
    if state.last_at_s is None or start_s - state.last_at_s > FORGET_AFTER_DAYS * 86_400:
        if not len(series.values):
            return state
        state = replace(start(), first_at_s=start_s, last_at_s=start_s)
    racing = _Field.of(policy)
    if state.race is not None and state.race.shift.shape[1] != len(racing.models):
        state = replace(state, race=None, champion=champions.first())  # saved by a version with other models
    assert state.last_at_s is not None
    skip = max(0, state.last_at_s - start_s) // MINUTE_S
    for at_s in range(state.last_at_s, start_s, MINUTE_S):
        state = _minute(state, at_s, None, racing)
    for i in range(skip, len(series.values)):
        value = series.values[i]
        usable = value if value is not None and isfinite(value) else None
        facts = beside if i == len(series.values) - 1 else NOTHING_BESIDE
        state = _minute(state, start_s + i * MINUTE_S, usable, racing, facts)
    return state


def warm_up(state: ForecastState, series: Series, policy: Policy) -> ForecastState:
    """Take a long history; the same result as observing its buckets one by one."""
    return observe(state, series, policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """Who races by which rules; looked up once a call, not once a minute."""

    models: tuple[DemandModel, ...]
    keepers: tuple[DemandModel, ...]
    rules: ForecastPolicy
    surge: SurgePolicy

    @classmethod
    def of(cls, policy: Policy) -> "_Field":
        """The field under ``policy``."""
        rules = policy.forecast
        return cls(models=entrants(rules), keepers=memories(rules), rules=rules, surge=policy.surge)


def _minute(
    state: ForecastState, at_s: int, value: float | None, racing: _Field, beside: Beside = NOTHING_BESIDE
) -> ForecastState:
    """The state after the bucket [at_s, at_s + 60)."""
    at_min = at_s // MINUTE_S
    race = state.race or races.start(len(racing.models), racing.rules.level_ratio)
    if races.is_issue_minute(at_min):
        race = races.score(race, at_min, value, racing.rules.level_ratio, racing.rules.score_window_s)
    least = racing.surge.min_level_ratio * state.mean
    known, mean, last_known_s = state.known_minutes, state.mean, state.last_known_s
    if value is not None:
        known += 1
        mean += (value - mean) / min(known, DAY_MIN)
        last_known_s = at_s + MINUTE_S
    kept = state.memories
    state = ForecastState(
        memories={m.memory: m.update(kept.get(m.memory) or m.start(), at_s, value) for m in racing.keepers},
        race=race, champion=state.champion, surge=surges.watch(state.surge, at_min, value, least, racing.surge),
        alarm=state.alarm, mean=mean, known_minutes=known, first_at_s=state.first_at_s, last_at_s=at_s + MINUTE_S,
        last_known_s=last_known_s,
    )  # fmt: skip
    if races.is_issue_minute(at_min + 1):
        state = _issue(state, at_min + 1, racing)
    said = _said(state, at_min, racing.rules)
    return replace(state, alarm=surge_alarm.watch(state.alarm, at_min, value, said, racing.surge, beside=beside))


def _said(state: ForecastState, at_min: int, rules: ForecastPolicy) -> Expected:
    """What was said about ``at_min`` earlier, and the path issued at its end if there is one that may be acted on."""
    references = state.surge.references
    expected, upper = surges.reference_at(references, at_min)
    path: tuple[float, ...] = ()
    if references and references[-1].at_min == at_min + 1:
        have_s = (state.last_known_s or 0) - (state.first_at_s or 0)
        if champions.standing(state.champion, "", have_s, rules)[0]:
            path = references[-1].expected
    return Expected(expected=expected, upper=upper, path=path)


def _issue(state: ForecastState, at_min: int, racing: _Field) -> ForecastState:
    """Ask every model for a path at the start of minute ``at_min``, to be scored; pick champions as a block ends."""
    level = _level(state)
    if level is None or state.race is None:
        return state
    bands = tuple(m.predict(state.memories[m.memory], races.PATH_MIN) for m in racing.models)
    race = races.issue(state.race, at_min, level, bands)
    best = state.champion
    if races.begins_block(at_min) and race.blocks:
        best = champions.choose(race.blocks, racing.rules.score_window_s)
    path = blend(bands, best.models, race.shift, level)
    reference = Reference(
        at_min=at_min,
        expected=tuple(path.expected[: surges.PATH_MIN].tolist()),
        upper=tuple(path.upper[: surges.PATH_MIN].tolist()),
    )
    return replace(state, race=race, champion=best, surge=surges.refer(state.surge, reference))


def _level(state: ForecastState) -> float | None:
    """The unit of every miss: the mean of the last hour, but not below the last day's mean.

    By night, or when a service comes back from nothing, misses are not measured by what little there is.
    """
    level = recent.level(state.memories["recent"])
    return None if level is None else max(level, state.mean, 1e-9)


def predict(  # noqa: PLR0917 -- the loop calls it by position, in this agreed order
    state: ForecastState, ref: WorkloadRef, as_of: datetime, horizon_s: int, unit: Unit, policy: Policy
) -> DemandPath | Missing:
    """Expected, lower and upper demand for each minute from the newest bucket's end to ``as_of`` + ``horizon_s``.

    Missing when nothing was ever seen, or when no value came for longer than ``missing_data.hold_max_s``.
    """
    source = f"demand of {ref.key}"
    level = _level(state) if state.memories else None
    if level is None or state.last_known_s is None or state.last_at_s is None or state.race is None:
        return Missing(source=source, reason="no value was ever seen")
    if as_of.timestamp() - state.last_known_s > policy.missing_data.hold_max_s:
        reason = f"no value for more than {policy.missing_data.hold_max_s} s"
        return Missing(source=source, reason=reason, since=from_epoch(state.last_known_s))
    rules = policy.forecast
    behind_s = max(0, int(as_of.timestamp()) - state.last_at_s)
    steps = max(1, -(-(horizon_s + behind_s) // MINUTE_S))
    path, name = _path(state, steps, level, rules)
    have_s = state.last_known_s - (state.first_at_s or state.last_known_s)
    may_act, why = champions.standing(state.champion, name, have_s, rules)
    return DemandPath(
        subject=ref, issued_at=from_epoch(state.last_at_s), step_s=MINUTE_S,
        expected=tuple(path.expected.tolist()), lower=tuple(path.lower.tolist()), upper=tuple(path.upper.tolist()),
        level_ratio=rules.level_ratio, unit=unit, model=name, may_act=may_act, standing=why,
    )  # fmt: skip


def _path(state: ForecastState, steps: int, level: float, rules: ForecastPolicy) -> tuple[Blend, str]:
    """The champions' blended path and their names; last value speaks for a champion that refuses now."""
    assert state.race is not None
    models = entrants(rules)
    speaking = {0, *state.champion.models}
    none = TooShort(reason="does not speak", needed_s=0, have_s=0)
    bands: tuple[Band | TooShort, ...] = tuple(
        m.predict(state.memories[m.memory], steps) if i in speaking else none for i, m in enumerate(models)
    )
    used = tuple(m if isinstance(bands[m], Band) else 0 for m in state.champion.models)
    parts = [f"{models[m].name} at {h} min" for m, h in zip(used, races.HORIZONS_MIN, strict=True)]
    name = models[used[0]].name if len(set(used)) == 1 else ", ".join(parts)
    return blend(bands, used, state.race.shift, level), name


def surge(state: ForecastState, ref: WorkloadRef, policy: Policy, pod_lead_s: float) -> Surge | None:
    """The surge that runs now, with the demand expected one pod lead ahead if the rise goes on; or None.

    None too while the rise is known to be no demand at all: pods counted twice, minutes that arrived together.
    """
    if state.alarm.dismissed is not None and state.alarm.dismissed.cause in NO_DEMAND:
        return None
    return surges.current(state.surge, ref, policy.surge, pod_lead_s)


def alarm(state: ForecastState) -> SurgeAlarm | None:
    """The alarm that stands now, or None."""
    standing = state.alarm.standing
    if standing is None:
        return None
    return SurgeAlarm(raised_at=from_epoch(standing.raised_s), kind=str(standing.kind), ratio=standing.ratio)
