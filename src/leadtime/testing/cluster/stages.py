"""Stage times → the stages by which KWOK lets nodes and pods live, without a kubelet.

A node becomes Ready; then, where its label ``leadtime.test/gpus`` says so, the driver is installed and the GPUs become
allocatable. A bound pod pulls its image (Pending), then loads its model (Running, not ready), then is Ready. A deleted
pod goes after its grace time. KWOK draws each time evenly between its two ends, anew for each node and pod.
"""

import json
from dataclasses import dataclass

from leadtime.testing.cluster.api import Object
from leadtime.testing.cluster.objects import GPU, GPUS_LABEL

_NOT_DELETED = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stage's time in seconds: drawn evenly from ``least_s`` to ``most_s`` (equal or 0 = always ``least_s``)."""

    least_s: float = 0.0
    most_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """How long each stage takes. The defaults take no time.

    ``node_ready``: node object there → Ready. ``driver``: Ready → GPUs allocatable (device plugin registered).
    ``image``: pod bound → containers started. ``model``: containers started → pod Ready. ``leave``: deletion asked →
    pod gone.
    """

    node_ready: Span = Span()
    driver: Span = Span()
    image: Span = Span()
    model: Span = Span()
    leave: Span = Span()


def stages(times: StageTimes) -> str:
    """KWOK's configuration: one JSON document (which is YAML) a stage."""
    made = [
        _stage("node-ready", "Node", times.node_ready, [_NOT_DELETED, _ready_is("NotIn")], _NODE_READY),
        _stage("node-driver", "Node", times.driver, [_NOT_DELETED, _ready_is("In"), *_GPUS_TO_COME], _NODE_DRIVER),
        _stage("pod-image", "Pod", times.image, [_NOT_DELETED, _phase("Pending")], _POD_RUNNING),
        _stage("pod-model", "Pod", times.model, [_NOT_DELETED, _phase("Running"), _ready_is("NotIn")], _POD_READY),
        _stage("pod-leave", "Pod", times.leave, [{**_NOT_DELETED, "operator": "Exists"}], None),
    ]
    return "\n---\n".join(json.dumps(each, indent=1) for each in made) + "\n"


def _stage(name: str, kind: str, time: Span, selector: list[Object], template: str | None) -> Object:
    delay = {"durationMilliseconds": round(time.least_s * 1000)}
    if time.most_s > time.least_s:
        delay["jitterDurationMilliseconds"] = round(time.most_s * 1000)
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": selector},
            "delay": delay,
            "next": {"delete": True} if template is None else {"statusTemplate": template},
        },
    }


def _ready_is(operator: str) -> Object:
    return {
        "key": '.status.conditions.[] | select( .type == "Ready" ) | .status',
        "operator": operator,
        "values": ["True"],
    }


def _phase(phase: str) -> Object:
    return {"key": ".status.phase", "operator": "In", "values": [phase]}


_GPUS_TO_COME = [
    {"key": f'.metadata.labels["{GPUS_LABEL}"]', "operator": "Exists"},
    {"key": f'.status.allocatable["{GPU}"]', "operator": "DoesNotExist"},
]

_NODE_READY = """
{{ $now := Now }}
phase: Running
conditions:
- {type: Ready, status: "True", reason: KubeletReady, message: kubelet is posting ready status,
   lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
- {type: MemoryPressure, status: "False", reason: KubeletHasSufficientMemory,
   lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
- {type: DiskPressure, status: "False", reason: KubeletHasNoDiskPressure,
   lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
- {type: PIDPressure, status: "False", reason: KubeletHasSufficientPID,
   lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
addresses:
- {type: InternalIP, address: {{ NodeIP | Quote }}}
- {type: Hostname, address: {{ NodeName | Quote }}}
"""

_NODE_DRIVER = f"""
{{{{ $gpus := index .metadata.labels "{GPUS_LABEL}" }}}}
capacity: {{"{GPU}": {{{{ $gpus | Quote }}}}}}
allocatable: {{"{GPU}": {{{{ $gpus | Quote }}}}}}
"""

_POD_RUNNING = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName (or .spec.hostNetwork false) (or .metadata.uid "") (or .metadata.name "") (or .metadata.namespace "") | Quote }}
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Ready, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "False", reason: ContainersNotReady, lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: false, started: true, restartCount: 0,
   state: {running: {startedAt: {{ $now | Quote }}}}}
{{ end }}
"""  # noqa: E501 -- the template language has no line continuation

_POD_READY = """
{{ $now := Now }}
{{ $root := . }}
conditions:
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range $index, $item := .spec.containers }}
{{ $before := index $root.status.containerStatuses $index }}
- {name: {{ $item.name | Quote }}, image: {{ $item.image | Quote }}, imageID: "", ready: true, started: true,
   restartCount: 0, state: {running: {startedAt: {{ $before.state.running.startedAt | Quote }}}}}
{{ end }}
"""
