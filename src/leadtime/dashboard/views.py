"""The nouns of the page: what the ledger says, cut down to what is drawn. Times are epoch seconds, UTC.

Everything here is plain data; a value that is absent is None, and the page says why instead of drawing 0.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

from leadtime.scorecard.risk_alerts import AlertScore, EndSeen


class Direction(StrEnum):
    """Where an action moves capacity; NOTHING is a decision too."""

    RAISE = "raise"
    LOWER = "lower"
    RENEW = "renew"
    QUEUE = "queue"
    NOTHING = "nothing"


class Fate(StrEnum):
    """What became of a proposal."""

    WON = "won"
    LIMITED = "limited"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyView:
    """A reason, its sentence, and the evidence ids it stands on."""

    reason: str
    sentence: str
    because: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastView:
    """Demand expected at ``target_s`` = issued + horizon."""

    issued_at_s: int
    target_s: int
    horizon_s: int
    expected: float
    lower: float
    upper: float
    level_ratio: float
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SurgeView:
    """The detector's word at one tick."""

    at_s: int
    began_at_s: int
    actual: float
    forecast: float
    excess_ratio: float
    threshold_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionView:
    """An action in words. ``before`` and ``after`` are pods (floor or buffer), None where it is not about pods."""

    kind: str  # floor | release | buffer | admission | consolidation | protect | avoid
    direction: Direction
    words: str
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalView:
    """One agent's wish and its fate. ``fate_why`` is None only for the winner."""

    id: str
    agent: str
    scope: str
    action: ActionView
    why: WhyView
    fate: Fate
    fate_why: WhyView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionView:
    """What the referee decided for one scope at one tick; ``action`` None means nothing, ``why`` says why."""

    at_s: int
    scope: str
    action: ActionView | None
    agent: str | None
    why: WhyView
    losers: tuple[ProposalView, ...]

    @property
    def direction(self) -> Direction:
        """Direction of the action; NOTHING when there is none."""
        return self.action.direction if self.action else Direction.NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """The queue rule at one tick."""

    queue: str
    healthy: bool
    clean_ticks: int
    because: tuple[WhyView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadView:
    """What the loop believed about one workload at one tick. ``demand`` None: ``missing`` says why."""

    demand: float | None
    demand_at_s: int  # start of the minute it was measured over
    missing: str | None
    unit: str
    forecasts: tuple[ForecastView, ...]
    surge: SurgeView | None
    model: str
    may_act: bool
    standing: WhyView
    lead_total_p90_s: float
    lead_learned_from: str
    hpa_would_want: int
    pods_at_target: float | None  # demand one pod serves at the HPA's target
    standing_floor: int
    wanted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TickView:
    """One tick, cut down. ``risk_model`` empty: no failure model was connected; ``risk_note``: what it scored."""

    at_s: int
    workloads: Mapping[str, WorkloadView]
    queues: tuple[QueueView, ...]
    proposals: tuple[ProposalView, ...]
    decisions: tuple[DecisionView, ...]
    risks: tuple[AlertScore, ...] = ()
    pod_ends: tuple[EndSeen, ...] = ()
    risk_model: str = ""
    risk_note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldMinutes:
    """One world's minutes for one workload, columns of equal length; ``None`` is a gap.

    ``demand`` is a mean rate over [at, at + step_s); ``arrived``/``unserved`` are requests counted in it; pod and node
    counts stand at ``at``. ``step_s`` is 60, more where a long run was thinned out.
    """

    world: str
    step_s: int
    at_s: Sequence[int]
    demand: Sequence[float | None]
    arrived: Sequence[float | None]
    unserved: Sequence[float | None]
    wanted: Sequence[int | None]
    ready: Sequence[int | None]
    starting: Sequence[int | None]
    pending: Sequence[int | None]
    floor: Sequence[int | None]
    nodes: Sequence[Mapping[str, int]]

    def index_at(self, at_s: int) -> int | None:
        """Index of the minute that holds ``at_s``, or None when it was not recorded."""
        low = bisect_right(self.at_s, at_s)
        return low - 1 if low and at_s < self.at_s[low - 1] + self.step_s else None

    def before(self, until_s: int) -> "WorldMinutes":
        """The minutes that began before ``until_s``."""
        return self._part(slice(None, bisect_left(self.at_s, until_s)))

    def since(self, start_s: int) -> "WorldMinutes":
        """The minutes that began at ``start_s`` or later."""
        return self._part(slice(bisect_left(self.at_s, start_s), None))

    def _part(self, rows: slice) -> "WorldMinutes":
        cut = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name not in {"world", "step_s"}}
        return WorldMinutes(world=self.world, step_s=self.step_s, **cut)


def workload_of(scope: str) -> str | None:
    """The workload a scope is about: itself (``workload:W``) or its place on a pool (``pool:gpu/W``); else None."""
    kind, _, name = scope.partition(":")
    if kind == "workload":
        return name
    _, found, rest = name.partition("/")
    return rest if kind == "pool" and found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """[start_s, end_s) on the page's time axis."""

    start_s: int
    end_s: int

    def share(self, at_s: float) -> float:
        """Where ``at_s`` lies: 0 at the start, 1 at the end (may lie outside)."""
        return (at_s - self.start_s) / max(1, self.end_s - self.start_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """Everything the page shows of one ledger, one workload, one window."""

    ledger: str
    workload: str
    workloads: tuple[str, ...]
    full: Span  # what the ledger holds
    loaded: Span  # what was read of it: all of a short ledger, one day of a long one
    window: Span  # what is drawn
    worlds: Mapping[str, WorldMinutes]
    ticks: tuple[TickView, ...]
    report: Mapping[str, Any] | None
    report_absent: str  # why there is no report; empty when there is one
    unit: str = "requests/s"
    meta: Mapping[str, str] = field(default_factory=dict)
