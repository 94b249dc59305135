"""Knobs → the hidden chain of a run, and what it implies: failure within k windows, long-run shares, the base rate.

A run is healthy (H) or degrading (D) at each boundary of its 300 s grid. Within the next window it fails (F), ends
otherwise (O) or goes on; F and O take a time uniform in the window. Independent of the chain, a run is ended from
outside (its user, its parent, its machine) at a constant rate. Source: borg-trace.md §6.1 and §6.2.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.domain.borg import DAY_US, PRIMARY_HORIZON_MIN, WINDOW_US
from leadtime.domain.errors import BadTrace
from leadtime.simulate.borg.knobs import Knobs

Floats = npt.NDArray[np.float64]

FEWEST_STEPS = PRIMARY_HORIZON_MIN // 5  # windows within the horizon that the base rate counts
MOST_STEPS = 12  # windows within the longest horizon, 60 min
WINDOWS_A_DAY = DAY_US // WINDOW_US
FLAPS_A_DAY = 1.0
LOW_TIERS_SHARE = 0.55  # free and best-effort batch, §6.3
EVICT_FACTOR = 10.0  # evictions of the two lowest tiers to the others', §6.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """Probabilities a window. ``degrades`` is H to D by z (0, 1)."""

    degrades: tuple[float, float]
    fails_healthy: float
    fails: float
    heals: float
    ends: float

    def scaled(self, factor: float) -> "Chain":
        """The same chain with H to D times ``factor``, at most 0.9."""
        healthy, bad = (min(0.9, factor * rate) for rate in self.degrades)
        return Chain(
            degrades=(healthy, bad), fails_healthy=self.fails_healthy, fails=self.fails, heals=self.heals,
            ends=self.ends,
        )  # fmt: skip

    def survives(self, z: int) -> Floats:
        """[from, to] over (H, D): probability to be alive in ``to`` one boundary later."""
        q = self.degrades[z]
        return np.array(
            [
                [1 - q - self.fails_healthy - self.ends, q],
                [self.heals, 1 - self.heals - self.fails - self.ends],
            ]
        )


def outside_rates(knobs: Knobs) -> tuple[float, float]:
    """Rate a window at which a run is ended from outside: without and with a parent.

    A machine counts with the mean over steady and flapping machines: its flaps are visible only afterwards. For the
    5 % of flapping machines the failure probability within 15 min is then off by at most half a per cent of itself.
    """
    killed = knobs.killed_a_day / WINDOWS_A_DAY
    removed = (
        (1 - knobs.flapping) * knobs.removals_a_day + knobs.flapping * max(FLAPS_A_DAY, knobs.removals_a_day)
    ) / WINDOWS_A_DAY
    if knobs.removals_a_day == 0:
        removed = 0.0
    return killed + removed, 2 * killed + removed


def fails_within(chain: Chain, z: int, outside_rate: float, steps: int = MOST_STEPS) -> Floats:
    """[state H|D, k = 0 … steps]: P(the run's next end is a failure within k windows of 300 s | alive in the state)."""
    alive = chain.survives(z) * np.exp(-outside_rate)
    first = 1.0 if outside_rate == 0 else -np.expm1(-outside_rate) / outside_rate  # mean survival at a uniform instant
    fails = np.array([chain.fails_healthy, chain.fails]) * first
    within = np.zeros((2, steps + 1))
    for k in range(1, steps + 1):
        within[:, k] = fails + alive @ within[:, k - 1]
    return within


def degrading_share(chain: Chain, z: int) -> float:
    """P(D | alive) in the long run: the left eigenvector of the survival matrix with the largest eigenvalue."""
    values, vectors = np.linalg.eig(chain.survives(z).T)
    vector = np.abs(np.real(vectors[:, int(np.argmax(np.real(values)))]))
    return float(vector[1] / vector.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a chain makes of one task slot on average."""

    base_rate: float  # share of labelled rows that fail within 15 min
    windows: float  # usage windows of a slot over the trace


def start_share(chain: Chain, z: int, knobs: Knobs, *, alive_before: bool) -> float:
    """P(D) at a run's first boundary: 0 for a new run; the long-run share where it ran before, or in the placebo."""
    return degrading_share(chain, z) if alive_before or knobs.placebo else 0.0


def expected(chain: Chain, knobs: Knobs) -> Expected:
    """Mean rows and failures of a slot by following the expected number alive from boundary to boundary.

    Slots alive at the start begin there, the others at times uniform over the trace; a failed or evicted run begins
    anew by the knobs' shares. Restarts are taken to reach the next boundary (their mean delay is 60 s of 300).
    """
    kinds = [(z, outside) for z in (0, 1) for outside in outside_rates(knobs)]
    weights = np.outer((1 - knobs.bad_collections, knobs.bad_collections), (1 - knobs.parents, knobs.parents)).ravel()
    survives = np.stack([chain.survives(z) * np.exp(-outside) for z, outside in kinds])
    within = np.stack([fails_within(chain, z, outside)[:, FEWEST_STEPS] for z, outside in kinds])
    fresh, old = (
        np.array(
            [[1 - share, share] for z, _ in kinds for share in [start_share(chain, z, knobs, alive_before=before)]]
        )
        for before in (False, True)
    )
    no_parent, parent = outside_rates(knobs)
    evicts = knobs.evicted * (LOW_TIERS_SHARE * EVICT_FACTOR + 1 - LOW_TIERS_SHARE) + 2 * no_parent - parent
    again = knobs.resubmitted * np.array([chain.fails_healthy, chain.fails]) + knobs.resubmitted_evicted * evicts
    steps = knobs.days * WINDOWS_A_DAY
    state = knobs.alive_at_start * old
    alive, ended = np.zeros((steps, *state.shape)), np.zeros((steps, len(kinds)))
    for step in range(steps):
        alive[step] = state
        following = np.matmul(state[:, None, :], survives)[:, 0, :]
        ended[step] = state.sum(1) - following.sum(1)
        state = following + ((1 - knobs.alive_at_start) / steps + state @ again)[:, None] * fresh
    labelled = alive[: steps - FEWEST_STEPS].sum(0)
    return Expected(
        base_rate=float(weights @ (labelled * within).sum(1) / (weights @ labelled.sum(1))),
        windows=float(weights @ (alive.sum((0, 2)) + ended.sum(0))),
    )


def solved(knobs: Knobs) -> Chain:
    """The chain whose expected 15-min base rate is the knobs' (within 0.01 %).

    Raises BadTrace ``base-rate-unreachable`` where no rate of degrading reaches it.
    """
    unpredictable = knobs.unpredictable * knobs.base_rate / FEWEST_STEPS

    def chain(degrades: float) -> Chain:
        return Chain(
            degrades=(degrades, min(0.9, degrades * knobs.bad_factor)), fails_healthy=unpredictable,
            fails=knobs.degrading_fails, heals=knobs.degrading_heals, ends=knobs.other_ends,
        )  # fmt: skip

    if knobs.degrades > 0:
        return chain(knobs.degrades)
    high = min(0.5, 0.97 - knobs.other_ends - unpredictable)
    reach = expected(chain(high), knobs).base_rate
    if reach < knobs.base_rate:
        raise BadTrace(
            "base-rate-unreachable", "solving the hidden chain",
            f"base_rate {knobs.base_rate:g} is above the {reach:.3g} that these knobs can reach",
            "lower base_rate, or raise degrading_fails",
        )  # fmt: skip
    return chain(_root(lambda rate: expected(chain(rate), knobs).base_rate - knobs.base_rate, high, knobs.base_rate))


def _root(excess: Callable[[float], float], high: float, scale: float) -> float:
    """Where a rising ``excess`` is zero, within 0.01 % of ``scale``: secants in log-log inside a closing bracket."""
    low, low_value = 1e-9, excess(1e-9) + scale
    high_value = excess(high) + scale
    middle = high
    for _ in range(60):
        slope = np.log(high_value / low_value) / np.log(high / low)
        middle = low * float(np.exp(np.log(scale / low_value) / max(slope, 1e-9)))
        middle = min(max(middle, low * 1.000001), high / 1.000001)
        value = excess(middle) + scale
        if abs(value - scale) < 1e-4 * scale:
            break
        geometric = (low * high) ** 0.5
        if value < scale:
            low, low_value = middle, value
        else:
            high, high_value = middle, value
        if high / low > 4 and low < geometric < high:  # one halving more: secants creep where the curve bends
            value = excess(geometric) + scale
            low, low_value, high, high_value = (
                (geometric, value, high, high_value) if value < scale else (low, low_value, geometric, value)
            )
    return middle
