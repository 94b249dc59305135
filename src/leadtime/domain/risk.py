"""How likely a pod is to fail soon, who says so, and from what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskDriver:
    """One feature's part in a score: ``effect`` in log-odds (above 0 raises the risk), ``value`` in its own unit."""

    feature: str
    value: float | None
    effect: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskScore:
    """P(the pod's next end is a failure within ``horizon`` after ``as_of``), calibrated; ``base_rate`` beside it.

    ``window_end``: the end (open) of the newest usage window the score knows. ``expires_at``: from then on the score is
    stale and may not be used. ``model``: name and data hash of the published model. ``workload``: the pod's owner,
    None where it has none that is scaled.
    """

    pod: str
    node: str | None
    as_of: datetime
    window_end: datetime
    horizon: timedelta
    probability: float
    base_rate: float
    expires_at: datetime
    model: str
    drivers: tuple[RiskDriver, ...] = ()
    workload: WorkloadRef | None = None

    @property
    def lift(self) -> float:
        """How many times the base rate; 1 = as everybody."""
        return lift(self.probability, self.base_rate)


class RiskModel(Protocol):
    """A published model as the loop sees it: rows of features in, calibrated probabilities out. Pure once loaded."""

    @property
    def name(self) -> str:
        """Name and data hash, as its card has them."""
        ...

    @property
    def features(self) -> Sequence[str]:
        """Names of the columns of a row, in order."""
        ...

    @property
    def base_rates(self) -> Mapping[int, float]:
        """Horizon (minutes) → share of failures in the data the model was calibrated on."""
        ...

    def probabilities(self, rows: Sequence[Sequence[float]]) -> Mapping[int, Sequence[float]]:
        """Rows [n, features] (NaN = missing) → horizon (minutes) → n probabilities, never falling with the horizon."""
        ...

    def drivers(self, row: Sequence[float], horizon_min: int, *, most: int = 3) -> Sequence[RiskDriver]:
        """Up to ``most`` features that move this row's score, largest effect first."""
        ...


class PodEnding(StrEnum):
    """How a pod came to its end."""

    FAILED = "failed"  # by its own failure: what a score is about
    DELETED = "deleted"  # a scale-down, a roll-out, somebody
    EVICTED = "evicted"  # its node was drained or is gone
    DONE = "done"  # it had run to its end


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnd:
    """One pod's end."""

    pod: str
    workload: WorkloadRef | None
    node: str | None
    at: datetime
    how: PodEnding


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """What is known of one running pod beside its usage. Amounts in the unit of its usage windows; None: not known.

    ``restarts``: containers that were started again in it; ``started_at``: when the newest of them was.
    """

    pod: str
    workload: WorkloadRef | None
    node: str | None
    created_at: datetime
    started_at: datetime
    request_cpu: float | None
    request_memory: float | None
    priority: int = 200  # of the trace's production tier
    restarts: int = 0
    capacity_cpu: float | None = None
    capacity_memory: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageWindow:
    """What one pod used in [start, end), in the unit of its requests; None where nothing was measured."""

    pod: str
    start: datetime
    end: datetime
    avg_cpu: float | None
    avg_memory: float | None
    max_cpu: float | None = None
    max_memory: float | None = None
    sample_cpu: float | None = None
    assigned_memory: float | None = None
    page_cache_memory: float | None = None
    cpu_p50: float | None = None
    cpu_p90: float | None = None
    cpu_p95: float | None = None
    cpu_p99: float | None = None
    cycles_per_instruction: float | None = None
    memory_accesses_per_instruction: float | None = None
    sample_rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodUsage:
    """Usage windows visible at ``as_of``, oldest first for each pod.

    ``pods``: those that run, and those that ended within the windows' span; ``ends`` tells the two apart.
    """

    as_of: datetime
    pods: tuple[PodFacts, ...]
    windows: tuple[UsageWindow, ...]
    ends: tuple[PodEnd, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskReading:
    """Scores of the pods that could be scored; ``unscored``: pod → why not, in words."""

    scores: tuple[RiskScore, ...]
    unscored: Mapping[str, str]


class UsageSource(Protocol):
    """The reads a risk model needs; a source may offer them. Nothing it returns lies after ``as_of``."""

    def usage(self, since: datetime, as_of: datetime) -> PodUsage | Missing:
        """Pods that run or ended after ``since``, and their windows with end > ``since`` visible at ``as_of``."""
        ...

    def pod_ends(self, since: datetime, as_of: datetime) -> Sequence[PodEnd] | Missing:
        """Pods that ended in (``since``, ``as_of``], oldest first."""
        ...


class RiskScorer(Protocol):
    """Usage → scores, as the loop asks for them. Equal usage, equal scores: it keeps nothing between two calls."""

    @property
    def name(self) -> str:
        """Name and data hash of the model behind it."""
        ...

    def scores(
        self, usage: PodUsage, *, horizon: timedelta, expiry: timedelta, explain_from: float
    ) -> RiskReading | Missing:
        """One score a pod, for the model's shortest horizon that is not below ``horizon``.

        ``expiry``: how long after its newest window's end a score may be used. ``explain_from``: probability from
        which drivers are worked out. Missing when the model knows no such horizon.
        """
        ...


def lift(probability: float, base_rate: float) -> float:
    """How many times the base rate; 1 where there is none to compare with."""
    return probability / base_rate if base_rate > 0 else 1.0
