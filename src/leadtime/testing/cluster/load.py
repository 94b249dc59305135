"""Demand and the pods that are ready → what each pod does: the load that a metrics server would measure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from leadtime.testing.cluster.api import Object
from leadtime.testing.cluster.objects import condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What comes to one workload. ``selector``: labels of its pods.

    ``demand_rps``: requests per second at a Unix time. A ready pod serves up to ``capacity_rps`` and then uses its
    whole ``cpu_request_milli``; a pod that is not ready yet uses ``loading_ratio`` of it. What is above the capacity of
    all ready pods is refused, as by a server that sheds load.
    """

    namespace: str
    selector: Mapping[str, str]
    demand_rps: Callable[[float], float]
    capacity_rps: float
    cpu_request_milli: int = 1000
    loading_ratio: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLoad:
    """One running pod at one instant. ``served_rps``: 0 while it is not ready."""

    pod: str
    containers: tuple[str, ...]
    ready: bool
    served_rps: float
    cpu_milli: int


def running_pods(load: Load, pods: Sequence[Object], at_s: float) -> list[PodLoad]:
    """The load of each running pod of the workload at the Unix time ``at_s``, demand shared evenly among the ready.

    ``pods``: the workload's, as the API lists them; those that do not run (pending, ended) have no load and no row.
    """
    alive = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    ready = {pod["metadata"]["name"]: condition(pod, "Ready").get("status") == "True" for pod in alive}
    share_rps = min(load.capacity_rps, load.demand_rps(at_s) / max(1, sum(ready.values())))
    made = []
    for pod in alive:
        name = pod["metadata"]["name"]
        ratio = share_rps / load.capacity_rps if ready[name] else load.loading_ratio
        made.append(
            PodLoad(
                pod=name,
                containers=tuple(each["name"] for each in pod["spec"]["containers"]),
                ready=ready[name],
                served_rps=share_rps if ready[name] else 0.0,
                cpu_milli=round(ratio * load.cpu_request_milli),
            )
        )
    return made
