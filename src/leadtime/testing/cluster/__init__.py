"""A real Kubernetes control plane for tests, on 127.0.0.1, without containers. See docs/test-cluster.md.

with Cluster.start(tmp_path, report=print) as cluster, cluster.namespace() as namespace:
    cluster.api.create(objects.node("gpu-1", gpus=8))
    cluster.scheduler.pause()
"""

from leadtime.testing.cluster import objects
from leadtime.testing.cluster.api import Api, ApiError, NotReached
from leadtime.testing.cluster.audit import AuditLog, Write
from leadtime.testing.cluster.cluster import Cluster, Options
from leadtime.testing.cluster.commands import HpaTiming
from leadtime.testing.cluster.credentials import User
from leadtime.testing.cluster.karpenter import InstanceType, Provisioning, capacity_buffer, start_karpenter
from leadtime.testing.cluster.kwok import start_kwok
from leadtime.testing.cluster.load import Load
from leadtime.testing.cluster.metrics_server import Answers, MetricsServer
from leadtime.testing.cluster.part import Part, PartFailed
from leadtime.testing.cluster.stages import Span, StageTimes
from leadtime.testing.control_plane.programs import NotInstallable

__all__ = [
    "Answers",
    "Api",
    "ApiError",
    "AuditLog",
    "Cluster",
    "HpaTiming",
    "InstanceType",
    "Load",
    "MetricsServer",
    "NotInstallable",
    "NotReached",
    "Options",
    "Part",
    "PartFailed",
    "Provisioning",
    "Span",
    "StageTimes",
    "User",
    "Write",
    "capacity_buffer",
    "objects",
    "start_karpenter",
    "start_kwok",
]
