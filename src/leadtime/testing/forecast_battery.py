"""A demand model → what every demand model must do, checked one by one. For whoever adds a model.

``check(model)`` runs all; each check raises ``BatteryFailure`` with the model's name and what was wrong. Demand is made
by a fixed formula (a day's wave with a recurring hour of surge), so a failure repeats.
"""

import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leadtime.forecast.checkpoint import from_plain, to_plain
from leadtime.forecast.model import Band, DemandModel, FloatColumn, TooShort

DAY_MIN = 1440
START_S = 1_772_409_600  # a Monday, 00:00 UTC
STEPS = 100
MOST_BYTES = 1_000_000  # a thousand workloads fit in a gigabyte


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
    one = _band(model, fed(model, [900.0] * 200, kept, len(values)))
    other = _band(model, fed(model, demand(200, seed=3), kept, len(values)))
    _must(model, "an update changed the state it was given", holds=_equal(before, _band(model, kept)))
    again = _band(model, fed(model, [900.0] * 200, kept, len(values)))
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


CHECKS: tuple[Callable[[DemandModel], None], ...] = (
    orders_its_bounds, refuses_no_history, answers_twice_the_same, leaves_its_input_alone, knows_no_future,
    survives_saving, stays_bounded, bears_gaps,
)  # fmt: skip


def check(model: DemandModel) -> None:
    """Run every check. Raises BatteryFailure at the first that fails."""
    for one in CHECKS:
        one(model)
