"""Pods and nodes of a cluster's own history, each from first to last seen: the records the mapping to events reads.

A life is one (namespace, pod, uid). It is known at the instants of a grid; what has an exact time of its own (created,
started, terminated, deleted) keeps it. Gaps inside a life are no end. Times are whole seconds since 1970.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_ORDINAL = re.compile(r"-(\d+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The workload a pod belongs to: what stays when its pods change. A pod nobody owns is its own."""

    namespace: str
    kind: str
    name: str

    @property
    def collection_id(self) -> int:
        """A stable number in [1, 2^53): equal workloads have equal ids in every import."""
        return stable_id(f"{self.namespace}/{self.kind}/{self.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """One container's end while its pod stayed. ``resumed_s``: when it ran again; None: not seen to."""

    at_s: int
    reason: str | None
    exit_code: int | None
    resumed_s: int | None
    container: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a pod asked for from ``at_s`` on, in cores and bytes."""

    at_s: int
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodLife:
    """One pod, equal to itself alone. ``first_s``, ``last_s``: instants of the grid, both closed.

    ``phases``, ``reasons``: word → first instant it was seen.
    """

    namespace: str
    pod: str
    uid: str
    owner: Owner
    node: str | None
    first_s: int
    last_s: int
    created_s: int | None = None
    scheduled_s: int | None = None
    deletion_s: int | None = None
    completed_s: int | None = None
    phases: Mapping[str, int] = field(default_factory=dict)
    reasons: Mapping[str, int] = field(default_factory=dict)
    terminations: tuple[Termination, ...] = ()
    restarts_unseen: int = 0
    requests: tuple[Request, ...] = ()
    memory_limit: float | None = None
    qos: str | None = None
    priority_class: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLife:
    """One node: its allocatable cores and bytes as they changed, (at_s, cpu, memory)."""

    node: str
    first_s: int
    last_s: int
    shapes: tuple[tuple[int, float | None, float | None], ...]
    platform: str | None = None


def ordinal(life: PodLife) -> int | None:
    """The number a StatefulSet's pod carries in its name; None for every other pod."""
    found = _ORDINAL.search(life.pod)
    return int(found[1]) if found and life.owner.kind == "StatefulSet" else None


def stable_id(text: str) -> int:
    """A number in [1, 2^53) for a name; exact even where somebody reads ids as floats."""
    return 1 + int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % (2**53 - 1)
