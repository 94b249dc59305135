"""Pods that fail by the trace generator's hidden chain, and what a monitor sees of them: usage windows, ends.

Each pod lives on the 300 s grid of the wall clock. At every boundary from its first on it is healthy or degrading, and
the window that ends there shows it: usage ratio 0.5 + 0.1 (mu · degrading + noise), noise of deviation 1. Within the
next window it may fail, at a time uniform in it. Chain and signal are those of ``simulate/borg`` (borg-trace.md §6.1),
without ends of any other kind (here only decisions end a pod) and without bad collections. Nodes do not fail.

Draws are keyed by (seed, workload, slot, window). A pod takes the lowest slot that no Ready pod of its workload has, so
two worlds see the same misfortune in the same slot at the same time, whatever was decided before.
"""

import zlib
from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.risk import PodEnding
from leadtime.simulate.borg.chain import Chain, solved
from leadtime.simulate.borg.knobs import Knobs
from leadtime.simulate.cluster_events import Bench, Due
from leadtime.simulate.pods import Pod
from leadtime.simulate.scenario import FailuresScenario

WINDOW_S = 300
RATIO_MEAN, RATIO_SPREAD = 0.5, 0.1
Floats = npt.NDArray[np.float64]
STREAM = 11  # apart from every other use of the seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One pod's life as drawn. ``ratios[i]``: usage ratio of the window that ends at first_end_s + 300 i.

    ``noise`` [4, windows] and ``chance`` [4, windows], normal and uniform: for columns that carry no signal.
    ``fails_at_s`` None: it does not fail before the end of what is drawn.
    """

    pod: str
    workload: str
    slot: int
    node: str | None
    created_s: float
    started_s: float
    first_end_s: int
    ratios: tuple[float, ...]
    noise: Floats
    chance: Floats
    fails_at_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """The draws of one slot, a column a window of the span: what may happen after it, and what it shows."""

    moves: Floats  # uniform [windows]: fail, change state, or neither
    within: Floats  # uniform [windows]: when in the window
    signal: Floats  # normal [windows]
    noise: Floats  # normal [4, windows]
    chance: Floats  # uniform [4, windows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One pod's end."""

    at_s: float
    pod: str
    how: PodEnding


def chain_of(scenario: FailuresScenario) -> Chain:
    """The generator's chain at this base rate. Raises BadTrace where no chain reaches it."""
    knobs = Knobs(base_rate=scenario.base_rate, mu=scenario.mu, bad_collections=0.0, parents=0.0)
    return solved(knobs)


def pod_name(pod: Pod) -> str:
    """``serving/chat-7``: unique in the cluster."""
    return f"{pod.group.key}-{pod.serial}"


def node_name(pool: str, serial: int) -> str:
    """``gpu-3``: unique in the cluster."""
    return f"{pool}-{serial}"


class PodFailures:
    """The failing pods of one cluster. Lives are drawn when a pod becomes Ready and end with it."""

    __slots__ = (
        "bench", "chain", "ends", "failed", "fates", "from_s", "in_flight_lost", "lives", "mu", "seed", "taken",
        "until_s",
    )  # fmt: skip

    def __init__(self, scenario: FailuresScenario, bench: Bench, *, seed: int, from_s: int, until_s: int) -> None:
        self.chain = chain_of(scenario)
        self.mu = scenario.mu
        self.seed = seed
        self.from_s = from_s
        self.until_s = until_s  # nothing is drawn beyond it
        self.fates: dict[tuple[str, int], Fate] = {}
        self.taken: dict[str, tuple[str, int]] = {}  # Ready pod → its workload and slot
        self.bench = bench
        self.lives: dict[str, Life] = {}  # every pod that ever was Ready
        self.ends: list[Ended] = []  # in order of time
        self.failed = 0
        self.in_flight_lost = 0.0

    def begin(self, pod: Pod, at_s: float) -> None:
        """``pod`` is Ready and takes requests from now on: draw its life, and put its failure on the agenda."""
        node = None if pod.node is None else node_name(pod.node.pool.name, pod.node.serial)
        life = self._drawn(pod, node, at_s)
        self.lives[life.pod] = life
        if life.fails_at_s is not None:
            self.bench.push(life.fails_at_s, Due.POD_FAILS, pod)

    def ended(self, pod: Pod, at_s: float, how: PodEnding) -> None:
        """``pod`` is gone; pods that never were Ready leave no trace."""
        name = pod_name(pod)
        if name in self.lives:
            self.taken.pop(name, None)
            self.ends.append(Ended(at_s=at_s, pod=name, how=how))
            self.failed += how is PodEnding.FAILED

    def _drawn(self, pod: Pod, node: str | None, at_s: float) -> Life:
        first_s = (int(at_s // WINDOW_S) + 1) * WINDOW_S
        slot = self._take_slot(pod)
        fate = self._fate(pod.group.key, slot)
        begin = first_s // WINDOW_S - self.from_s // WINDOW_S
        ratios: list[float] = []
        degrading, fails_at_s = False, None
        for i in range(begin, len(fate.moves)):
            ratios.append(RATIO_MEAN + RATIO_SPREAD * (self.mu * degrading + float(fate.signal[i])))
            fails, changes = self._rates(degrading=degrading)
            if fate.moves[i] < fails:
                fails_at_s = first_s + WINDOW_S * (i - begin + 1 - float(fate.within[i]))
                break
            degrading ^= bool(fate.moves[i] < fails + changes)
        shown = slice(begin, begin + len(ratios))
        return Life(
            pod=pod_name(pod), workload=pod.group.key, slot=slot, node=node, created_s=pod.created_s, started_s=at_s,
            first_end_s=first_s, ratios=tuple(ratios), fails_at_s=fails_at_s,
            noise=fate.noise[:, shown], chance=fate.chance[:, shown],
        )  # fmt: skip

    def _take_slot(self, pod: Pod) -> int:
        key = pod.group.key
        taken = {slot for of, slot in self.taken.values() if of == key}
        slot = next(i for i in range(len(taken) + 1) if i not in taken)
        self.taken[pod_name(pod)] = key, slot
        return slot

    def _fate(self, key: str, slot: int) -> Fate:
        found = self.fates.get((key, slot))
        if found is None:
            rng = np.random.default_rng([self.seed, STREAM, zlib.crc32(key.encode()), slot])
            n = self.until_s // WINDOW_S - self.from_s // WINDOW_S + 2
            found = self.fates[key, slot] = Fate(
                moves=rng.random(n), within=rng.random(n), signal=rng.standard_normal(n),
                noise=rng.standard_normal((4, n)), chance=rng.random((4, n)),
            )  # fmt: skip
        return found

    def _rates(self, *, degrading: bool) -> tuple[float, float]:
        """(fails, changes state) within a window."""
        chain = self.chain
        return (chain.fails, chain.heals) if degrading else (chain.fails_healthy, chain.degrades[0])

    # --- what a monitor sees -----------------------------------------------------------------------------------------

    def ends_within(self, since_s: float, until_s: float) -> list[Ended]:
        """Ends in (``since_s``, ``until_s``]."""
        first = bisect_right(self.ends, since_s, key=_at)
        return self.ends[first : bisect_right(self.ends, until_s, key=_at)]

    def known(self, since_s: float, until_s: float) -> list[tuple[Life, Ended | None]]:
        """Lives of pods that run at ``until_s`` or ended after ``since_s``, with that end; in order of name."""
        gone = {end.pod: end for end in self.ends if end.at_s <= until_s}
        return [
            (life, gone.get(life.pod))
            for _, life in sorted(self.lives.items())
            if life.started_s <= until_s and (life.pod not in gone or gone[life.pod].at_s > since_s)
        ]


def windows_of(life: Life, until_s: float) -> range:
    """Indices of the windows whose end is at or before ``until_s``."""
    return range(max(0, min(len(life.ratios), int((until_s - life.first_end_s) // WINDOW_S) + 1)))


def ref_of(key: str) -> WorkloadRef:
    """``serving/chat`` → its reference."""
    namespace, _, name = key.partition("/")
    return WorkloadRef(namespace=namespace, name=name)


def _at(end: Ended) -> float:
    return end.at_s
