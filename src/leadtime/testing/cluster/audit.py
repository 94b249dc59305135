"""The API server's audit log → what was written, by whom: the witness that is not our own log."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

# Reads, leases and events would be nine tenths of the log. The server writes a line before it answers the call.
POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "None", "verbs": ["get", "list", "watch"]},
        {"level": "None", "resources": [
            {"group": "coordination.k8s.io", "resources": ["leases"]},
            {"group": "", "resources": ["events"]},
            {"group": "events.k8s.io", "resources": ["events"]},
            {"group": "authentication.k8s.io"},
            {"group": "authorization.k8s.io"},
            {"group": "", "resources": ["serviceaccounts/token"]},
        ]},
        {"level": "RequestResponse"},
    ],
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One call that asked the API server to change something. ``at``: when it answered, UTC.

    ``status``: HTTP status (a refused write is here too). ``resource`` carries the subresource: ``pods/binding``.
    ``request``: the body as sent; ``response``: the object as stored; None where there is none.
    """

    at: datetime
    user: str
    agent: str
    verb: str
    resource: str
    namespace: str
    name: str
    status: int
    request: Any = None
    response: Any = None


@dataclass(slots=True, kw_only=True)
class AuditLog:
    """Reads what the server has written so far."""

    path: Path

    def writes(
        self,
        *,
        resource: str | None = None,
        namespace: str | None = None,
        user: str | None = None,
        verbs: Sequence[str] | None = None,
    ) -> list[Write]:
        """Calls in the order of the log. Each argument keeps what equals it; ``user`` also as an end (``:hpa``)."""
        return [
            write
            for write in (_write(msgspec.json.decode(line)) for line in self._lines())
            if resource in {None, write.resource}
            and namespace in {None, write.namespace}
            and (user is None or write.user.endswith(user))
            and (verbs is None or write.verb in verbs)
        ]

    def _lines(self) -> list[bytes]:
        if not self.path.exists():
            return []
        whole, end, _unfinished = self.path.read_bytes().rpartition(b"\n")
        return whole.split(b"\n") if end else []


def _write(entry: dict[str, Any]) -> Write:
    what = entry.get("objectRef") or {}
    sub = what.get("subresource")
    return Write(
        at=datetime.fromisoformat(entry["stageTimestamp"]),
        user=entry["user"]["username"],
        agent=entry.get("userAgent", ""),
        verb=entry["verb"],
        resource=what.get("resource", "") + (f"/{sub}" if sub else ""),
        namespace=what.get("namespace", ""),
        name=what.get("name", "") or ((entry.get("responseObject") or {}).get("metadata") or {}).get("name", ""),
        status=(entry.get("responseStatus") or {}).get("code", 0),
        request=entry.get("requestObject"),
        response=entry.get("responseObject"),
    )
