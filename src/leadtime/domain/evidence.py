"""Evidence (what was observed, where, over which window) and explanations that point at it."""

from dataclasses import dataclass

from leadtime.domain.reasons import Reason
from leadtime.domain.time_window import TimeWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observation: ``source`` and ``query`` say how to get it again; ``value`` is in ``unit``."""

    id: str
    source: str
    query: str
    window: TimeWindow
    value: float | str | None
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why: a stable reason, one sentence with numbers and units, and the ids of the evidence it stands on."""

    reason: Reason
    sentence: str
    because: tuple[str, ...] = ()
