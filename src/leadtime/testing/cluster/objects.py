"""Short words → Kubernetes objects as dicts, for tests on a real control plane."""

from collections.abc import Mapping, Sequence

from leadtime.testing.cluster.api import Object

GPU = "nvidia.com/gpu"
GPUS_LABEL = "leadtime.test/gpus"  # how many GPUs a node's driver brings, for KWOK's stages


def node(
    name: str,
    *,
    gpus: int = 0,
    cpu: str = "64",
    memory: str = "512Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Object:
    """A node that is Ready from its creation on. ``taints``: as in a node's spec."""
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods)} | ({GPU: str(gpus)} if gpus else {})
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions},
    }


def node_to_come(name: str, *, gpus: int = 0, labels: Mapping[str, str] | None = None) -> Object:
    """A node that KWOK makes Ready, and on which it then installs the driver of ``gpus`` GPUs."""
    more = {GPUS_LABEL: str(gpus)} if gpus else {}
    one = node(name, labels={**more, **(labels or {})})
    del one["status"]["conditions"]
    return one


def deployment(
    name: str,
    namespace: str,
    *,
    replicas: int,
    requests: Mapping[str, str] | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
) -> Object:
    """A Deployment of one-container pods labelled ``app: NAME``. Extended resources get an equal limit."""
    asked = dict(requests or {})
    limits = {resource: amount for resource, amount in asked.items() if "/" in resource}
    container = {"name": "main", "image": "model", "resources": {"requests": asked, "limits": limits}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [container],
                    "nodeSelector": dict(node_selector or {}),
                    "tolerations": [dict(toleration) for toleration in tolerations],
                },
            },
        },
    }


def condition(one: Object, kind: str) -> Mapping[str, str]:
    """The condition of this type in an object's status; empty where it is not set."""
    conditions = one.get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), {})
