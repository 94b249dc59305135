"""What is asked of a cluster's Prometheus: PromQL by name, for kube-state-metrics 2.x and the kubelet's cAdvisor.

Every query at an instant t looks at samples in (t - step, t] and at nothing older, so a gap in scraping stays a gap (an
instant selector would repeat the last value for five minutes). Sums go over a pod's containers; pause containers and
cgroup totals (no container name) are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass

POD = ("namespace", "pod", "uid")
CONTAINER = (*POD, "container")
INFO = (*POD, "node", "created_by_kind", "created_by_name", "priority_class")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One range query and the labels its table keeps. ``needed``: the import stops where it finds nothing."""

    name: str
    promql: str
    labels: tuple[str, ...]
    metric: str
    needed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Last:
    """Builds queries for the last value of a metric in (t - step, t]."""

    of: str
    step_s: int

    def __call__(
        self, name: str, metric: str, labels: tuple[str, ...], more: str = "", *, one: bool = False,
        needed: bool = False, cluster: bool = False,
    ) -> Query:  # fmt: skip
        """``more``: further matchers; ``one``: only series that stand at 1; ``cluster``: of no namespace."""
        window = f"{self.step_s * 1000 - 1}ms"  # without t - step itself: Prometheus 2 closes ranges on both sides
        inside = ",".join(part for part in ("" if cluster else self.of, more) if part)
        seen = f"last_over_time({metric}{{{inside}}}[{window}]){' == 1' if one else ''}"
        promql = f"max by ({','.join(labels)}) ({seen})" if labels else f"count({seen})"
        return Query(name=name, promql=promql, labels=labels, metric=metric, needed=needed)


def state_queries(namespace: str | None, step_s: int) -> tuple[Query, ...]:
    """Pods, their owners, restarts, requests, ends; nodes; replicas wanted."""
    last = _Last(of="" if namespace is None else f'namespace=~"{_quoted(namespace)}"', step_s=step_s)
    return (*_pods(last), *_containers(last), *_cluster(last))


def _pods(last: _Last) -> Iterator[Query]:
    yield last("pods", "kube_pod_info", INFO, needed=True)
    yield last("owners", "kube_pod_owner", (*POD, "owner_kind", "owner_name"), 'owner_is_controller!="false"')
    yield last("created", "kube_pod_created", POD)
    yield last("scheduled", "kube_pod_status_scheduled_time", POD)
    yield last("started", "kube_pod_start_time", POD)
    yield last("deleted", "kube_pod_deletion_timestamp", POD)
    yield last("completed", "kube_pod_completion_time", POD)
    yield last("phases", "kube_pod_status_phase", (*POD, "phase"), one=True)
    yield last("reasons", "kube_pod_status_reason", (*POD, "reason"), one=True)
    yield last("classes", "kube_pod_status_qos_class", (*POD, "qos_class"), one=True)


def _containers(last: _Last) -> Iterator[Query]:
    ended, resource = "kube_pod_container_status_last_terminated", 'resource=~"cpu|memory"'
    yield last("restarts", "kube_pod_container_status_restarts_total", CONTAINER)
    yield last("ended_reasons", f"{ended}_reason", (*CONTAINER, "reason"), one=True)
    yield last("ended_codes", f"{ended}_exitcode", CONTAINER)
    yield last("ended_times", f"{ended}_timestamp", CONTAINER)
    yield last("running_since", "kube_pod_container_state_started", CONTAINER)
    yield last("requests", "kube_pod_container_resource_requests", (*CONTAINER, "resource"), resource)
    yield last("limits", "kube_pod_container_resource_limits", (*CONTAINER, "resource"), resource)


def _cluster(last: _Last) -> Iterator[Query]:
    resource = 'resource=~"cpu|memory"'
    above = ("owner_kind", "owner_name")
    yield last("replicaset_owners", "kube_replicaset_owner", ("namespace", "replicaset", *above))
    yield last("job_owners", "kube_job_owner", ("namespace", "job_name", *above))
    yield last("nodes", "kube_node_status_allocatable", ("node", "resource"), resource, cluster=True, needed=True)
    yield last("node_labels", "kube_node_labels", ("node", "label_node_kubernetes_io_instance_type"), cluster=True)
    yield last("deployments", "kube_deployment_spec_replicas", ("namespace", "deployment"))
    yield last("statefulsets", "kube_statefulset_replicas", ("namespace", "statefulset"))
    yield last("replicasets", "kube_replicaset_spec_replicas", ("namespace", "replicaset"))
    yield last("observed", "kube_pod_info", (), cluster=True)


def usage_queries(namespace: str | None) -> tuple[Query, ...]:
    """Usage of a pod in (t - 300 s, t]. The highest CPU is of 2-min rates, a minute apart (scrapes ≤ 60 s apart)."""
    inside = ",".join([*([] if namespace is None else [f'namespace=~"{_quoted(namespace)}"']), 'container!=""',
                       'container!="POD"'])  # fmt: skip
    cpu, memory, cache = (
        f"{name}{{{inside}}}"
        for name in (
            "container_cpu_usage_seconds_total",
            "container_memory_working_set_bytes",
            "container_memory_cache",
        )
    )
    by, pod = "sum by (namespace,pod)", ("namespace", "pod")
    asked = {
        "avg_cpu": f"{by} (rate({cpu}[5m]))",
        "max_cpu": f"max_over_time({by} (rate({cpu}[2m]))[5m:1m])",
        "sample_cpu": f"{by} (irate({cpu}[5m]))",
        "avg_memory": f"{by} (avg_over_time({memory}[5m]))",
        "max_memory": f"{by} (max_over_time({memory}[5m]))",
        "page_cache_memory": f"{by} (avg_over_time({cache}[5m]))",
        "samples": f"max by (namespace,pod) (count_over_time({memory}[5m]))",
    }
    needed = {"avg_cpu": "container_cpu_usage_seconds_total", "avg_memory": "container_memory_working_set_bytes"}
    return tuple(
        Query(name=name, promql=promql, labels=pod, metric=needed.get(name, name), needed=name in needed)
        for name, promql in asked.items()
    )


def _quoted(regex: str) -> str:
    """A regular expression inside PromQL's double quotes."""
    return regex.replace("\\", "\\\\").replace('"', '\\"')
