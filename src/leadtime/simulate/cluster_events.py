"""What will happen when (the agenda) and what happened (stage passages), shared by all parts of one simulated cluster.

Every part pushes the exact second at which something ends; the step loop takes them out in order of time, then of
pushing, so that equal worlds go equal ways.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappush
from typing import Any, NamedTuple

from leadtime.simulate.recorder import EventLog

DAY_S = 86_400
EPISODE_GAP_S = 1800  # what is asked for within half an hour of the last belongs to one scale-up


class Due(IntEnum):
    """What an agenda entry means for its subject."""

    NODE_STAGE = 0  # a node's current stage ends
    POD_STAGE = 1  # a pod's image or weights stage ends
    AUTOSCALE = 2  # the node autoscaler looks at pods without a place
    CONSOLIDATE = 3  # the node autoscaler looks at empty nodes
    BATCH_ARRIVAL = 4  # the next low-priority pod is submitted
    BATCH_DONE = 5  # a low-priority pod has run to its end
    POD_FAILS = 6  # a pod fails by itself


class Entry(NamedTuple):
    """One agenda entry; ``number`` makes the order total."""

    at_s: float
    number: int
    due: Due
    subject: Any


class Passage(NamedTuple):
    """One stage passage or, when ``censored``, one that was cut short at ``ended_s``."""

    ended_s: float
    pool: str
    workload: str | None
    stage: str
    duration_s: float
    censored: bool
    episode: str


@dataclass(slots=True)
class Bench:
    """The shared parts: seed, agenda, event log, passages (in order of ``ended_s``), and what was ever made."""

    seed: int
    log: EventLog = field(default_factory=EventLog)
    agenda: list[Entry] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    pushed: int = 0
    pods_created: int = 0
    pods_deleted: int = 0
    nodes_created: int = 0

    def push(self, at_s: float, due: Due, subject: object) -> None:
        """Put ``due`` of ``subject`` on the agenda."""
        self.pushed += 1
        heappush(self.agenda, Entry(at_s, self.pushed, due, subject))


@dataclass(slots=True)
class Episodes:
    """Names the scale-up a request belongs to: requests within half an hour of each other on one day are one."""

    prefix: str
    last_s: float = float("-inf")
    name: str = ""

    def of(self, at_s: float) -> str:
        """The episode of a request at ``at_s``, e.g. ``gpu/20514/21915`` (pool, day, second of the first request)."""
        day = int(at_s // DAY_S)
        if at_s - self.last_s > EPISODE_GAP_S or int(self.last_s // DAY_S) != day:
            self.name = f"{self.prefix}/{day}/{int(at_s % DAY_S)}"
        self.last_s = at_s
        return self.name
