"""A demand model → what every demand model must do, checked one by one. For whoever adds a model.

``check(model)`` runs all; each check raises ``BatteryFailure`` with the model's name and what was wrong. Demand is made
by a fixed formula (a day's wave with a recurring hour of surge), so a failure repeats.
"""

import json
import pickle
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np

from leadtime.forecast.checkpoint import from_plain, to_plain
from leadtime.forecast.model import Band, DemandModel, FloatColumn, TooShort

DAY_MIN = 1440
START_S = 1_772_409_600  # a Monday, 00:00 UTC
STEPS = 100
LONG_STEPS = 2160
LATER_MIN = 1600  # more than a day: a model of days may hear the newest hours and still say what it said
MOST_BYTES = 400_000  # a thousand workloads fit in 400 MB
SPIKE = 1e12
NEAR = 0.10  # a longer path may be asked of other days, and so begin a little otherwise


class BatteryFailure(AssertionError):
    """A model breaks a rule every model must keep."""


def demand(minutes: int, *, seed: int = 1) -> list[float | None]:
    """A wave by the hour of day, a surge from 06:00 to 06:45, noise of 2 %, and a few gaps."""
    t = np.arange(minutes)
    hour = t % DAY_MIN / 60.0
    wave = 100.0 + 30.0 * np.sin(2.0 * np.pi * hour / 24.0) + np.where((hour >= 6.0) & (hour < 6.75), 80.0, 0.0)
    noisy = wave * (1.0 + 0.02 * np.random.default_rng(seed).standard_normal(minutes))
    return [None if i % 977 == 500 else float(v) for i, v in enumerate(noisy)]


def fed(model: DemandModel, values: Sequence[float | None], state: Any = None, first: int = 0) -> Any:
    """The model's state after ``values``, the first of them the ``first`` minute of the history."""
    state = model.start() if state is None else state
    for i, value in enumerate(values, start=first):
        state = model.update(state, START_S + i * 60, value)
    return state


def band_after(model: DemandModel, values: Sequence[float | None]) -> Band:
    """The band after ``values``. Raises BatteryFailure when the model refuses."""
    return _band(model, fed(model, values))


def _band(model: DemandModel, state: Any) -> Band:
    band = model.predict(state, STEPS)
    if isinstance(band, TooShort):
        raise BatteryFailure(f"{model.name}: refuses a history of days: {band.reason}")
    return band


def _must(model: DemandModel, what: str, *, holds: bool) -> None:
    if not holds:
        raise BatteryFailure(f"{model.name}: {what}")


def _columns(band: Band) -> tuple[FloatColumn, FloatColumn, FloatColumn]:
    return band.expected, band.lower, band.upper


def _equal(one: Band, other: Band) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(_columns(one), _columns(other), strict=True))


def orders_its_bounds(model: DemandModel) -> None:
    """lower ≤ expected ≤ upper, all finite, one element a minute, at any minute of an hour."""
    values = demand(5 * DAY_MIN)
    state = fed(model, values)
    for i, value in enumerate(demand(60, seed=2)):
        state = model.update(state, START_S + (len(values) + i) * 60, value)
        band = _band(model, state)
        ordered = (band.lower <= band.expected + 1e-9) & (band.expected <= band.upper + 1e-9)
        _must(model, "lower ≤ expected ≤ upper does not hold", holds=bool(ordered.all()))
        _must(model, "not finite", holds=all(bool(np.isfinite(c).all()) for c in _columns(band)))
        _must(model, f"not {STEPS} minutes", holds=all(c.shape == (STEPS,) for c in _columns(band)))


def refuses_no_history(model: DemandModel) -> None:
    """Without a single value the answer is TooShort, with the model's name and both lengths; never a guess."""
    for state in (model.start(), fed(model, [None, None, None])):
        answer = model.predict(state, STEPS)
        _must(model, "does not refuse an empty history", holds=isinstance(answer, TooShort))
        assert isinstance(answer, TooShort)
        _must(model, f"refuses without its name: {answer.reason}", holds=model.name in answer.reason)
        _must(model, "refuses although it has enough", holds=answer.have_s < answer.needed_s)


def answers_twice_the_same(model: DemandModel) -> None:
    """Equal values, equal band; asking changes nothing."""
    values = demand(4 * DAY_MIN)
    state = fed(model, values)
    _must(model, "two questions, two answers", holds=_equal(_band(model, state), _band(model, state)))
    _must(model, "equal values, two answers", holds=_equal(_band(model, state), band_after(model, values)))


def leaves_its_input_alone(model: DemandModel) -> None:
    """A state that was kept answers as before, whatever came after; so two futures can grow from one state."""
    values = demand(4 * DAY_MIN)
    kept = fed(model, values)
    before = _band(model, kept)
    one = _band(model, fed(model, [900.0] * LATER_MIN, kept, len(values)))
    other = _band(model, fed(model, demand(LATER_MIN, seed=3), kept, len(values)))
    _must(model, "an update changed the state it was given", holds=_equal(before, _band(model, kept)))
    again = _band(model, fed(model, [900.0] * LATER_MIN, kept, len(values)))
    _must(model, "one future changed another", holds=_equal(one, again) and not _equal(one, other))


def knows_no_future(model: DemandModel) -> None:
    """What is said at a moment is the same whichever values come later."""
    values = demand(4 * DAY_MIN)
    cut = 4 * DAY_MIN - 333
    said = []
    for future in (values[cut:], [1e6] * (len(values) - cut), [0.0] * (len(values) - cut)):
        state = fed(model, values[:cut])
        band = _band(model, state)
        fed(model, future, state, cut)
        said.append((band, _band(model, state)))
    _must(model, "the future leaks", holds=all(_equal(said[0][0], band) for pair in said for band in pair))


def survives_saving(model: DemandModel) -> None:
    """Pickled, or written as plain JSON and read back, a state answers as before and learns on as before."""
    state = fed(model, demand(4 * DAY_MIN))
    text = json.dumps(to_plain(state), allow_nan=False)
    for copy in (pickle.loads(pickle.dumps(state)), from_plain(json.loads(text))):
        _must(model, "a saved state answers differently", holds=_equal(_band(model, state), _band(model, copy)))
        more = demand(30, seed=4)
        later, copied = fed(model, more, state, 4 * DAY_MIN), fed(model, more, copy, 4 * DAY_MIN)
        _must(model, "a saved state learns differently", holds=_equal(_band(model, later), _band(model, copied)))


def stays_bounded(model: DemandModel) -> None:
    """After forty days the state is small and no longer grows."""
    state = fed(model, demand(35 * DAY_MIN))
    before = len(pickle.dumps(state))
    after = len(pickle.dumps(fed(model, demand(5 * DAY_MIN, seed=5), state, 35 * DAY_MIN)))
    _must(model, f"state of {after} bytes", holds=after < MOST_BYTES)
    _must(model, f"state grows from {before} to {after} bytes", holds=after <= before * 1.01 + 200)


def bears_gaps(model: DemandModel) -> None:
    """An hour without values leads to finite answers or a refusal, never to NaN."""
    state = fed(model, demand(4 * DAY_MIN))
    for i in range(60):
        state = model.update(state, START_S + (4 * DAY_MIN + i) * 60, None)
        answer = model.predict(state, STEPS)
        if isinstance(answer, Band):
            _must(model, "NaN in a gap", holds=all(bool(np.isfinite(c).all()) for c in _columns(answer)))


def bears_any_input(model: DemandModel) -> None:
    """Zeros, a constant, a gap of days, one minute of 1e12, tiny numbers: a refusal, or a finite path not below 0.

    Nor does a single wild minute make a path that is wilder than it.
    """
    usual = demand(4 * DAY_MIN)
    wild: dict[str, Sequence[float | None]] = {
        "zeros": [0.0] * (4 * DAY_MIN),
        "zeros after days of demand": [*usual, *([0.0] * DAY_MIN)],
        "demand after days of zeros": [*([0.0] * (3 * DAY_MIN)), *usual[:300]],
        "a constant": [42.0] * (4 * DAY_MIN),
        "tiny numbers": [None if v is None else v * 1e-12 for v in usual],
        "a gap of two days": [*usual, *([None] * (2 * DAY_MIN)), *usual[:5]],
        "one minute of 1e12": [*usual[:-30], SPIKE, *usual[-29:]],
        "1e12 in the newest minute": [*usual, SPIKE],
    }
    for what, values in wild.items():
        answer = model.predict(fed(model, values), STEPS)
        if isinstance(answer, TooShort):
            continue
        _must(model, f"not finite after {what}", holds=all(bool(np.isfinite(c).all()) for c in _columns(answer)))
        _must(model, f"expects less than nothing after {what}", holds=bool((answer.expected >= 0.0).all()))
        most = max(v for v in values if v is not None)
        _must(
            model, f"expects 100 times the most there was after {what}", holds=bool(answer.expected.max() <= 100 * most)
        )


def looks_as_far_as_asked(model: DemandModel) -> None:
    """A path of one minute, of an hour and of a day and a half: as long as asked, finite, with the same beginning."""
    state = fed(model, demand(5 * DAY_MIN))
    whole = model.predict(state, LONG_STEPS)
    _must(model, f"refuses {LONG_STEPS} minutes", holds=isinstance(whole, Band))
    assert isinstance(whole, Band)
    for steps in (1, 60, LONG_STEPS):
        band = model.predict(state, steps)
        assert isinstance(band, Band)
        _must(model, f"not {steps} minutes", holds=all(c.shape == (steps,) for c in _columns(band)))
        _must(model, f"not finite in {steps} minutes", holds=all(bool(np.isfinite(c).all()) for c in _columns(band)))
        near = band.expected[: min(steps, 10)] / whole.expected[: min(steps, 10)]
        _must(model, f"a path of {steps} minutes begins otherwise", holds=bool((np.abs(near - 1.0) < NEAR).all()))


def updates_in_equal_steps(model: DemandModel) -> None:
    """O(1): half a day of updates takes as many Python operations after 30 days as after 3 (counted, not timed)."""
    values = demand(31 * DAY_MIN)
    young, old = fed(model, values[: 3 * DAY_MIN]), fed(model, values[: 30 * DAY_MIN])
    few = _operations(lambda: fed(model, values[: DAY_MIN // 2], young, 3 * DAY_MIN))
    many = _operations(lambda: fed(model, values[: DAY_MIN // 2], old, 30 * DAY_MIN))
    _must(model, f"{few} operations after 3 days, {many} after 30", holds=many <= 1.1 * few)


def pickles(model: DemandModel) -> None:
    """A model read back from its pickle has the same name and says the same."""
    copy = pickle.loads(pickle.dumps(model))
    values = demand(3 * DAY_MIN)
    _must(model, "its pickle has another name", holds=(copy.name, copy.memory) == (model.name, model.memory))
    _must(model, "its pickle says something else", holds=_equal(band_after(model, values), band_after(copy, values)))


def keeps_its_scale(model: DemandModel) -> None:
    """1,000 times the demand, 1,000 times the path. For models that claim it: ``CLAIMED``, not ``CHECKS``."""
    values = demand(4 * DAY_MIN)
    one = band_after(model, values)
    thousand = band_after(model, [None if v is None else 1000.0 * v for v in values])
    for a, b in zip(_columns(one), _columns(thousand), strict=True):
        _must(
            model, "1,000 times the demand is not 1,000 times the path", holds=bool(np.allclose(1000 * a, b, rtol=1e-6))
        )


def _operations(work: Callable[[], object]) -> int:
    """Calls of Python functions and of built-in ones that ``work`` makes. Whoever traces meanwhile is put back."""
    count = 0

    def counted(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


CHECKS: tuple[Callable[[DemandModel], None], ...] = (
    orders_its_bounds, refuses_no_history, answers_twice_the_same, leaves_its_input_alone, knows_no_future,
    survives_saving, stays_bounded, bears_gaps, bears_any_input, looks_as_far_as_asked, updates_in_equal_steps, pickles,
)  # fmt: skip
CLAIMED: tuple[Callable[[DemandModel], None], ...] = (keeps_its_scale,)


def check(model: DemandModel) -> None:
    """Run every check. Raises BatteryFailure at the first that fails."""
    for one in CHECKS:
        one(model)
