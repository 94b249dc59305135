"""Lines of an API server's audit log → who wrote what."""

import json
from pathlib import Path
from typing import Any

from leadtime.testing.cluster.audit import AuditLog


def line(user: str, verb: str, resource: str, *, sub: str = "", status: int = 200, **more: Any) -> str:
    entry: dict[str, Any] = {
        "stageTimestamp": "2026-03-02T06:00:00.250000Z",
        "user": {"username": user},
        "userAgent": "agent",
        "verb": verb,
        "objectRef": {"resource": resource, "namespace": "ns", "name": "one"},
        "responseStatus": {"code": status},
    }
    if sub:
        entry["objectRef"]["subresource"] = sub
    return json.dumps(entry | more)


def test_writes_are_kept_by_what_equals_and_a_half_written_line_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    hpa = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
    lines = [
        line(hpa, "update", "deployments", sub="scale", requestObject={"spec": {"replicas": 4}}),
        line("leadtime", "patch", "horizontalpodautoscalers", status=409),
    ]
    file.write_text("\n".join(lines) + '\n{"half')
    log = AuditLog(path=file)

    assert [write.status for write in log.writes()] == [200, 409]
    (scaled,) = log.writes(user=":horizontal-pod-autoscaler")
    assert (scaled.resource, scaled.request["spec"]["replicas"], scaled.response) == ("deployments/scale", 4, None)
    assert scaled.at.isoformat() == "2026-03-02T06:00:00.250000+00:00"
    assert [write.user for write in log.writes(verbs=["patch"], namespace="ns")] == ["leadtime"]
    assert log.writes(namespace="other") == []


def test_what_was_created_has_the_name_the_server_gave_it(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    made = {"metadata": {"name": "model-7c9"}}
    file.write_text(line("x", "create", "pods", objectRef={"resource": "pods"}, responseObject=made) + "\n")
    (write,) = AuditLog(path=file).writes()
    assert (write.name, write.namespace) == ("model-7c9", "")


def test_no_log_yet_is_no_write(tmp_path: Path) -> None:
    assert AuditLog(path=tmp_path / "absent").writes() == []
