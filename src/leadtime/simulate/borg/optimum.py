"""What anybody could know at best: the exact probability of a failure given everything seen so far, for every row.

Two forward filters per run, one for each z of its collection; per collection the log-odds of z, summed over all its
tasks' windows and ends up to the instant. Given z the tasks are independent, so
score = Σ_z P(z | seen) Σ_state P(state | z, own run) P(failure within H | state, z). Source: borg-trace.md §6.1, §6.2.

Arrays [2, n]: first axis z. ``belief`` is P(degrading | seen, alive, z).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.simulate.borg.chain import Chain, Floats, fails_within, outside_rates
from leadtime.simulate.borg.knobs import Knobs
from leadtime.simulate.borg.plan import Ints

STEPS = (1, 3, 6, 9, 12)  # windows in 5, 15, 30, 45, 60 min
KILL_LATEST_US = 60_000_000  # a parent's end kills its children within 1-60 s


def predicted(chain: Chain, belief: Floats) -> tuple[Floats, Floats]:
    """P(alive and degrading), P(alive and healthy) one boundary later, each [2, n]."""
    q = np.array(chain.degrades)[:, None]
    healthy = 1.0 - belief
    return (
        belief * (1 - chain.heals - chain.fails - chain.ends) + healthy * q,
        belief * chain.heals + healthy * (1 - q - chain.fails_healthy - chain.ends),
    )


def seen(degrading: Floats, healthy: Floats, odds: Floats) -> tuple[Floats, Floats]:
    """Belief [2, n] after a window, and what it says of z: log P(seen | z = 1) - log P(seen | z = 0) [n].

    ``odds`` [n] is the window's density under D over that under H; being alive is part of what was seen.
    """
    joint = degrading * odds
    total = joint + healthy
    return joint / total, _ratio(total)


def failure_says(chain: Chain, belief: Floats) -> Floats:
    """What a failure in the window after ``belief`` says of z [n]."""
    fails = belief * chain.fails + (1 - belief) * chain.fails_healthy
    return _ratio(fails)


def lost_says(chain: Chain, belief: Floats) -> Floats:
    """What a LOST end says of z [n]: some end there was, of a kind nobody knows."""
    ends = belief * chain.fails + (1 - belief) * chain.fails_healthy + chain.ends
    return _ratio(ends)


def outside_end_says(chain: Chain, belief: Floats, part: Floats) -> Floats:
    """What an end from outside after ``part`` of a window says of z [n]: the chain had not ended until then."""
    ends = belief * chain.fails + (1 - belief) * chain.fails_healthy + chain.ends
    alive = 1 - part * ends
    return _ratio(alive)


def signal_odds(mu: float, x: Floats) -> Floats:
    """Density of a window's signal under D over that under H: N(mu, 1) over N(0, 1)."""
    return np.exp(mu * x - mu * mu / 2)


def _ratio(of_z: Floats) -> Floats:
    """log P(· | z = 1) - log P(· | z = 0)."""
    return np.asarray(np.log(of_z[1] / of_z[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Future:
    """P(failure within STEPS[h] windows): [half of the trace, parent 0|1, z, state H|D, h]."""

    table: Floats
    lost: float

    def scores(
        self, *, half: npt.NDArray[np.intp], parent: npt.NDArray[np.intp], belief: Floats, bad: Floats,
        parent_gone_us: Floats,
    ) -> Floats:  # fmt: skip
        """The Bayes score [n, len(STEPS)] of rows with ``belief`` [2, n] and P(z = 1) ``bad`` [n].

        ``parent_gone_us`` [n] is the time since the parent's end, negative where there was none: such a run is killed
        1-60 s after it, so it can fail only in what is left of them. A failure may be lost (share ``lost``).
        """
        kind = half * 2 + parent
        worlds = ((1.0 - bad) * (1.0 - belief[0]), (1.0 - bad) * belief[0], bad * (1.0 - belief[1]), bad * belief[1])
        parts = np.stack(worlds, axis=1)  # [n, (z, state)]
        out = np.empty((len(bad), len(STEPS)))
        for value, table in enumerate(self.table.reshape(-1, 4, len(STEPS))):
            rows = np.flatnonzero(kind == value)
            out[rows] = np.einsum("np,ph->nh", parts[rows], table)
        gone = np.flatnonzero(parent_gone_us >= 0)
        left = np.clip(KILL_LATEST_US - parent_gone_us[gone], 0, None) / 2 / 300e6
        out[gone] = (out[gone, 0] * left)[:, None]
        return out * (1.0 - self.lost)


def future(chains: tuple[Chain, Chain], knobs: Knobs) -> Future:
    """Tables for both halves of the trace. The last hour before a drift is scored by the old rates."""
    table = np.array(
        [
            [[fails_within(chain, z, outside)[:, STEPS] for z in (0, 1)] for outside in outside_rates(knobs)]
            for chain in chains
        ]
    )
    return Future(table=table, lost=knobs.lost)


def bad_share(knobs: Knobs, evidence: Floats, step: Ints, collection: Ints) -> Floats:
    """P(z = 1) of collections at boundaries [n]: ``evidence`` [steps, collections] summed up to each, on the prior."""
    share = knobs.bad_collections
    if share == 0:
        return np.zeros(len(step))
    log_odds = np.log(share / (1 - share)) + np.cumsum(evidence, axis=0)[step, collection]
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -500, 500))))
