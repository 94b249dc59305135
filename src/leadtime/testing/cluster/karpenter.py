"""A running cluster with KWOK + instance types → Karpenter with its KWOK provider: a real node autoscaler.

The provider makes node objects after its registration delay; KWOK's stages make them Ready. CRDs are read from
Karpenter's source in Go's module cache.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from leadtime.testing.cluster.api import Object
from leadtime.testing.cluster.cluster import Cluster
from leadtime.testing.cluster.objects import GPU, condition
from leadtime.testing.cluster.part import Part, free_port, http_ready
from leadtime.testing.control_plane.go_module import Report, silent
from leadtime.testing.control_plane.programs import KARPENTER, find, original_folder

_GROUP = "karpenter.kwok.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceType:
    """A machine that can be had. ``price``: per hour, in any one currency; Karpenter takes the cheapest that fits."""

    name: str
    gpus: int = 0
    cpu: int = 64
    memory_gib: int = 512
    pods: int = 110
    price: float = 10.0
    zones: tuple[str, ...] = ("zone-a",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provisioning:
    """How Karpenter works here.

    ``registration_s``: whole seconds from node claim to node object. ``batch_idle_s``, ``batch_max_s``: how long it
    waits for further pending pods (Karpenter's own defaults). ``consolidate_after_s``: how long a node must be empty
    before it is taken away; None = never. ``max_gpus``: the node pool's limit; None = none.
    """

    instance_types: tuple[InstanceType, ...]
    registration_s: int = 0
    batch_idle_s: float = 1.0
    batch_max_s: float = 10.0
    consolidate_after_s: int | None = None
    max_gpus: int | None = None


def start_karpenter(cluster: Cluster, provisioning: Provisioning, *, report: Report = silent) -> Part:
    """Apply CRDs, a node class and one node pool called ``default``; start Karpenter, which ends with the cluster.

    CapacityBuffer is on. Raises NotInstallable where it can neither be found nor built, PartFailed where it does not
    start.
    """
    program = find(["karpenter-kwok"], report=report)["karpenter-kwok"]
    _apply_crds(cluster)
    types = cluster.folder / "instance-types.json"
    types.write_text(json.dumps([_instance_type(each) for each in provisioning.instance_types]), encoding="utf-8")
    for each in (_node_class(provisioning), _node_pool(provisioning)):
        cluster.api.create(each)
    metrics, health = free_port(), free_port()
    return cluster.add(
        Part(
            name="karpenter",
            command=(
                str(program),
                "-disable-leader-election",
                f"-instance-types-file-path={types}",
                f"-metrics-port={metrics}",
                f"-health-probe-port={health}",
                "-karpenter-service=karpenter",
                f"-batch-idle-duration={provisioning.batch_idle_s}s",
                f"-batch-max-duration={provisioning.batch_max_s}s",
                "-feature-gates=CapacityBuffer=true",
            ),
            environment={"KUBECONFIG": str(cluster.kubeconfig("admin")), "SYSTEM_NAMESPACE": "kube-system"},
            log=cluster.folder / "karpenter.log",
            ready=http_ready(f"http://127.0.0.1:{health}/readyz"),
        )
    )


def capacity_buffer(name: str, namespace: str, *, template: str, replicas: int) -> Object:
    """A buffer of ``replicas`` pods shaped as the PodTemplate ``template``."""
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"podTemplateRef": {"name": template}, "replicas": replicas},
    }


def _apply_crds(cluster: Cluster) -> None:
    source = original_folder(KARPENTER)
    files = sorted([*(source / "pkg/apis/crds").glob("*.yaml"), *(source / "kwok/apis/crds").glob("*.yaml")])
    made = [cluster.api.apply(yaml.safe_load(file.read_text("utf-8")), manager="test", force=True) for file in files]
    for each in made:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{each['metadata']['name']}"
        cluster.api.until_object(path, lambda crd: condition(crd, "Established").get("status") == "True")


def _instance_type(of: InstanceType) -> Object:
    def requirement(key: str, value: str) -> Object:
        return {"key": key, "operator": "In", "values": [value]}

    offerings = [
        {
            "Price": of.price,
            "Available": True,
            "Requirements": [
                requirement("karpenter.sh/capacity-type", "on-demand"),
                requirement("topology.kubernetes.io/zone", zone),
            ],
        }
        for zone in of.zones
    ]
    resources = {"cpu": str(of.cpu), "memory": f"{of.memory_gib}Gi", "pods": str(of.pods), "ephemeral-storage": "200Gi"}
    if of.gpus:
        resources[GPU] = str(of.gpus)
    return {
        "name": of.name,
        "offerings": offerings,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": resources,
    }


def _node_class(provisioning: Provisioning) -> Object:
    return {
        "apiVersion": f"{_GROUP}/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "default"},
        "spec": {"nodeRegistrationDelay": f"{provisioning.registration_s}s"},
    }


def _node_pool(provisioning: Provisioning) -> Object:
    types: Sequence[str] = [each.name for each in provisioning.instance_types]
    idle_s = provisioning.consolidate_after_s
    spec: Object = {
        "template": {
            "spec": {
                "nodeClassRef": {"group": _GROUP, "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types}],
                "expireAfter": "Never",
            }
        },
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": "Never" if idle_s is None else f"{idle_s}s",
            "budgets": [{"nodes": "100%"}],
        },
    }
    if provisioning.max_gpus is not None:
        spec["limits"] = {GPU: str(provisioning.max_gpus)}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": spec}
