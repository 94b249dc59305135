"""A recorded series + the forecast that would have been served → how far ahead it is better than the naive one.

The walk feeds the served forecast (assess) minute by minute and asks it every ten minutes; nothing later is known to
it. At each horizon its hits within ± 10 % are compared, origin by origin, with the better of last value and the mean of
the last five minutes, and with the ceiling (record 0019). A horizon is foreseen where the served forecast is above the
naive one by two standard errors (blocks of six hours), or where the naive one itself comes within three points of the
ceiling (and that is no matter of chance): then the level stays, and last value foresees it. The reach is the longest
horizon that is foreseen; shorter ones need not be, where last value is good enough for them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.domain.demand import DemandPath
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Series, Unit
from leadtime.domain.time_window import from_epoch
from leadtime.forecast import assess
from leadtime.forecast.model import MINUTE_S, FloatColumn
from leadtime.forecast.naive import CEILING_MINUTES, NAIVE_MEAN_MINUTES, centred_mean, is_within, trailing_mean
from leadtime.forecast.selection import difference
from leadtime.policy.schema import Policy

IntColumn = npt.NDArray[np.int64]
Note = Callable[[float], None]

HORIZONS_S = (300, 600, 1200, 1800, 2400, 3600, 5400, 7200, 10_800)
ASK_EVERY_MIN = 10
ROOM_RATIO = 0.03  # DESIGN §6: below three points there is no room for skill
CALM_RATIO = 0.5  # … and last value foresees the level, if knowing the level hits at least every second time
NAIVE_S = NAIVE_MEAN_MINUTES * MINUTE_S
CEILING_S = CEILING_MINUTES // 2 * MINUTE_S  # either side
SURE_ERRORS = 2.0
LEAST_BLOCKS = 8  # two days of six-hour blocks: fewer give no standard error worth the name
_ANYBODY = WorkloadRef(namespace="any", name="series")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recorded:
    """Demand by buckets of ``step_s``, a whole number of minutes; value i covers [start_s + i·step, +step), NaN gap."""

    start_s: int
    step_s: int
    values: FloatColumn

    @property
    def per_bucket(self) -> int:
        """Minutes in a bucket."""
        return self.step_s // MINUTE_S


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """What was forecast at the end of bucket ``newest[i]`` for ``horizons_s[j]`` later: arrays (origins, horizons)."""

    newest: IntColumn
    horizons_s: tuple[int, ...]
    expected: FloatColumn
    upper: FloatColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonSkill:
    """One horizon on ``scored`` origins. ``skill`` and its interval (± 2 standard errors) are None without room."""

    horizon_s: int
    scored: int
    blocks: int
    within_10pct_ratio: float
    naive_within_10pct_ratio: float
    ceiling_within_10pct_ratio: float
    skill: float | None
    skill_lower: float | None
    skill_upper: float | None
    foreseen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """How far one series can be foreseen. ``reach_s`` 0: no horizon tried is; None: too little to judge by.

    ``is_longest_tried``: the reach is the last horizon that was tried, it may be longer. ``scored_from_s`` and
    ``scored_until_s``: epoch seconds of the first and last origin.
    """

    horizons: tuple[HorizonSkill, ...]
    reach_s: int | None
    is_longest_tried: bool
    scored_from_s: int | None
    scored_until_s: int | None
    sentence: str

    def at(self, lead_s: float) -> HorizonSkill | None:
        """The shortest horizon tried that is no shorter than ``lead_s``; None: not judged."""
        return next((one for one in self.horizons if one.horizon_s >= lead_s), None)

    def foreseen_at(self, lead_s: float) -> bool | None:
        """Whether ``at(lead_s)`` is foreseen; None: not judged."""
        one = self.at(lead_s)
        return None if one is None else one.foreseen


def horizons_for(step_s: int, leads_s: Sequence[float] = ()) -> tuple[int, ...]:
    """The horizons tried, ascending: the usual ones and each lead (rounded up to minutes), none below a bucket."""
    wanted = {*HORIZONS_S, *(int(-(-lead // MINUTE_S)) * MINUTE_S for lead in leads_s if lead > 0)}
    return tuple(sorted({max(step_s, one) for one in wanted}))


def walk(
    series: Recorded, policy: Policy, horizons_s: tuple[int, ...], *, first_s: int, note: Note = lambda _share: None
) -> Served:
    """Feed the served forecast every bucket and ask it about every ten minutes from ``first_s`` (epoch) on.

    Origins lie at ends of buckets. A bucket of several minutes is fed as equal minutes when it has ended. ``note``
    hears the share done. Raises ValueError for a step that is no whole number of minutes.
    """
    if series.step_s % MINUTE_S:
        raise ValueError(f"walking a series: step is {series.step_s} s, must be a multiple of {MINUTE_S} s")
    every = max(1, ASK_EVERY_MIN // series.per_bucket)
    steps = [h // MINUTE_S - 1 for h in horizons_s]
    state, newest, expected, upper = assess.start(), [], [], []
    count = len(series.values)
    for begin in range(0, count, every):
        end = min(begin + every, count)
        state = assess.observe(state, _minutes(series, begin, end), policy)
        at_s = series.start_s + end * series.step_s
        note(end / count)
        if at_s < first_s:
            continue
        path = assess.predict(state, _ANYBODY, from_epoch(at_s), horizons_s[-1], Unit.REQUESTS_PER_S, policy)
        if isinstance(path, DemandPath):
            newest.append(end - 1)
            expected.append([path.expected[i] for i in steps])
            upper.append([path.upper[i] for i in steps])
    shape = (len(newest), len(horizons_s))
    return Served(
        newest=np.array(newest, dtype=np.int64), horizons_s=horizons_s,
        expected=np.array(expected).reshape(shape), upper=np.array(upper).reshape(shape),
    )  # fmt: skip


def _minutes(series: Recorded, begin: int, end: int) -> Series:
    values = [None if v != v else v for v in series.values[begin:end].tolist() for _ in range(series.per_bucket)]  # noqa: PLR0124 -- NaN
    start = from_epoch(series.start_s + begin * series.step_s)
    return Series(name="walked", start=start, step_s=MINUTE_S, values=values, unit=Unit.REQUESTS_PER_S)


def foresee(series: Recorded, served: Served) -> Foresight:
    """Judge what was served against what came. Nothing is judged on fewer than two days of origins."""
    naive, ceiling = naive_forecasts(series), centred(series)
    at_s = series.start_s + (served.newest + 1) * series.step_s
    found: list[HorizonSkill] = []
    for j, horizon_s in enumerate(served.horizons_s):
        target = served.newest + -(-horizon_s // series.step_s)
        truth = _at(series.values, target)
        columns = [served.expected[:, j], *(_at(one, served.newest) for one in naive), _at(ceiling, target)]
        known = ~np.isnan(np.stack([truth, *columns])).any(axis=0)
        hits = [is_within(column[known], truth[known]).astype(np.float64) for column in columns]
        one = _skill(horizon_s, hits, at_s[known])
        if one is not None:
            found.append(one)
    return _told(tuple(found), at_s)


def _skill(horizon_s: int, hits: Sequence[FloatColumn], at_s: IntColumn) -> HorizonSkill | None:
    """``hits``: model, last value, mean of five minutes, ceiling; 1.0 or 0.0 an origin."""
    model, ceiling = hits[0], hits[3]
    naive = max(hits[1], hits[2], key=lambda column: float(column.sum()))
    off = difference(model, naive, at_s)
    if off.error is None or off.blocks < LEAST_BLOCKS:
        return None
    room = float(ceiling.mean() - naive.mean())
    no_room = room < ROOM_RATIO
    lower, upper = off.mean - SURE_ERRORS * off.error, off.mean + SURE_ERRORS * off.error
    return HorizonSkill(
        horizon_s=horizon_s, scored=len(model), blocks=off.blocks, within_10pct_ratio=float(model.mean()),
        naive_within_10pct_ratio=float(naive.mean()), ceiling_within_10pct_ratio=float(ceiling.mean()),
        skill=None if no_room else off.mean / room, skill_lower=None if no_room else lower / room,
        skill_upper=None if no_room else upper / room,
        foreseen=lower > 0.0 or (no_room and float(ceiling.mean()) >= CALM_RATIO),
    )  # fmt: skip


def _told(found: tuple[HorizonSkill, ...], at_s: IntColumn) -> Foresight:
    if not found:
        text = f"not judged: fewer than {LEAST_BLOCKS} blocks of six hours could be scored"
        return Foresight(
            horizons=(), reach_s=None, is_longest_tried=False, scored_from_s=None, scored_until_s=None, sentence=text
        )
    reached = [one for one in found if one.foreseen]
    one = reached[-1] if reached else found[min(1, len(found) - 1)]
    numbers = (
        f"{one.horizon_s / 60:g} min ahead {one.within_10pct_ratio:.0%} of forecasts come within ±10 %, the naive "
        f"one's {one.naive_within_10pct_ratio:.0%}, one who knew the level {one.ceiling_within_10pct_ratio:.0%}"
    )
    ahead = _spans(found)
    text = f"foreseen {ahead} ahead: {numbers}" if reached else f"nowhere better foreseen than by last value: {numbers}"
    return Foresight(
        horizons=found, reach_s=reached[-1].horizon_s if reached else 0,
        is_longest_tried=one is found[-1] and bool(reached),
        scored_from_s=int(at_s[0]), scored_until_s=int(at_s[-1]), sentence=text,
    )  # fmt: skip


def _spans(found: Sequence[HorizonSkill]) -> str:
    """``5 min and 90 to 180 min``: neighbouring horizons that are foreseen, told together."""
    spans: list[list[int]] = []
    for i, one in enumerate(found):
        if one.foreseen and i and found[i - 1].foreseen:
            spans[-1][1] = one.horizon_s
        elif one.foreseen:
            spans.append([one.horizon_s, one.horizon_s])
    return " and ".join(f"{a // 60} min" if a == b else f"{a // 60} to {b // 60} min" for a, b in spans)


def naive_forecasts(series: Recorded) -> tuple[FloatColumn, FloatColumn]:
    """By newest bucket: its value, and the mean of the buckets of the last five minutes (NaN where one is a gap)."""
    return series.values, trailing_mean(series.values, max(1, NAIVE_S // series.step_s))


def centred(series: Recorded) -> FloatColumn:
    """Mean of the buckets whose middle lies within five minutes: 11 of a minute. It needs the future: a ceiling."""
    return centred_mean(series.values, CEILING_S // series.step_s)


def _at(values: FloatColumn, index: IntColumn) -> FloatColumn:
    inside = index < len(values)
    return np.where(inside, values[np.where(inside, index, 0)], np.nan)
