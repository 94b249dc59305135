"""A day of a small cluster as kube-state-metrics and cAdvisor would have shown it, written as OpenMetrics text.

Built from a list of pod lives with exact moments; scraped once a minute; what a pod's containers did is known to the
second, so what an import makes of it can be held against it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import sin
from pathlib import Path

MIDNIGHT = 1_772_409_600  # 2026-03-02T00:00:00Z
DAY_S, MINUTE_S, SCRAPE_S = 86_400, 60, 60
BEFORE = -7_200  # alive before the import's start
AFTER = DAY_S + 7_200  # and after its end
GAP = (79_230, 80_970)  # 22:00:30 to 22:29:30: nothing is scraped
NODES = {"n1": (32.0, 128), "n2": (16.0, 64), "n3": (16.0, 64)}  # cores, GiB
N3_GONE = 15 * 3600 + 30  # its last scrape is at 15:00:00
GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Crash:
    """One container's end and, ``back`` seconds later, its next start (seconds of the day)."""

    at: int
    reason: str = "OOMKilled"
    code: int = 137
    back: int = 20


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod from ``born`` to ``gone`` (both seconds of the day); the last scrape that shows it is before ``gone``."""

    name: str
    kind: str
    owner: str
    node: str
    born: int = BEFORE
    gone: int = AFTER
    uid: str = ""
    crashes: tuple[Crash, ...] = ()
    ends: Mapping[int, tuple[str, str]] = field(default_factory=dict)  # moment → phase, reason
    cores: float = 0.4
    above: tuple[str, str] | None = None  # the Deployment above a ReplicaSet
    deleted_at: int | None = None

    def labels(self, **more: str) -> str:
        """Of kube-state-metrics."""
        known = {"namespace": "shop", "pod": self.name, "uid": self.uid or f"uid-{self.name}", **more}
        return ",".join(f'{key}="{value}"' for key, value in known.items())


def deployment(name: str, count: int, node: str, template: str = "aa", **more: object) -> list[Pod]:
    """Pods of one ReplicaSet of a Deployment."""
    return [
        Pod(name=f"{name}-{template}-{number}", kind="ReplicaSet", owner=f"{name}-{template}", node=node,
            above=("Deployment", name), **more)  # type: ignore[arg-type]
        for number in range(count)
    ]  # fmt: skip


OOMS = tuple(range(3_620, 75_000, 9_013))  # of leaky's first pod
LOOPS = tuple(range(43_210, 50_400, 1_201))  # of loop's pod
ROLLOUT = 9 * 3600
EVICTED, VANISHED, IN_GAP = 18 * 3600 + 40, 20 * 3600 + 30, 80_000


def pods() -> list[Pod]:
    """The day."""
    crashing = tuple(Crash(at=at) for at in OOMS)
    looping = tuple(Crash(at=at, reason="Error", code=1, back=90) for at in LOOPS)
    jobs = [
        Pod(name=f"batch-{hour}", kind="Job", owner=f"batch-{hour}", node="n2", born=hour * 3600 + 70,
            gone=hour * 3600 + 5_000, ends={hour * 3600 + 2_000: ("Succeeded", "")}, above=("CronJob", "batch"))
        for hour in (2, 6, 10, 14)
    ]  # fmt: skip
    return [
        *deployment("web", 6, "n1", gone=ROLLOUT + 90),
        *deployment("web", 6, "n1", "bb", born=ROLLOUT + 20),
        *deployment("leaky", 1, "n1", crashes=crashing),
        *deployment("leaky", 2, "n2", "cc"),
        *deployment("loop", 1, "n2", crashes=looping),
        Pod(name="db-0", kind="StatefulSet", owner="db", node="n1"),
        Pod(name="db-1", kind="StatefulSet", owner="db", node="n3", gone=N3_GONE + 300, uid="first"),
        Pod(name="db-1", kind="StatefulSet", owner="db", node="n2", born=N3_GONE + 330, uid="second"),
        *jobs,
        *deployment("cache", 1, "n2", gone=EVICTED + 3_000, ends={EVICTED: ("Failed", "Evicted")}),
        *deployment("cache", 1, "n1", "dd", born=EVICTED + 10),
        Pod(name="alone", kind="", owner="", node="n1", gone=VANISHED),
        Pod(name="unlucky", kind="", owner="", node="n1", gone=IN_GAP),
        Pod(name="removed", kind="", owner="", node="n2", gone=30_030, deleted_at=29_980),
    ]


def openmetrics(path: Path) -> None:
    """Write the day, two hours before and after it, to ``path``."""
    with path.open("w", encoding="utf-8") as file:
        for pod in pods():
            file.writelines(f"{line}\n" for line in _pod(pod))
        for node, (cores, gib) in NODES.items():
            file.writelines(f"{line}\n" for line in _node(node, cores, gib))
        file.writelines(f"{line}\n" for line in _replicasets())
        file.write("# EOF\n")


def _scrapes(born: int, gone: int) -> Iterator[int]:
    first = -(-max(born, BEFORE) // SCRAPE_S) * SCRAPE_S
    return (at for at in range(first, min(gone, AFTER), SCRAPE_S) if not GAP[0] < at < GAP[1])


def _replicasets() -> Iterator[str]:
    owners = {pod.owner: pod.above for pod in pods() if pod.kind == "ReplicaSet"}
    for owner, above in owners.items():
        mine = [pod for pod in pods() if pod.owner == owner]
        labels = f'namespace="shop",replicaset="{owner}",owner_kind="{above[0]}",owner_name="{above[1]}"'  # type: ignore[index]
        for at in _scrapes(min(pod.born for pod in mine), max(pod.gone for pod in mine)):
            yield f"kube_replicaset_owner{{{labels}}} 1 {MIDNIGHT + at}"


def _node(node: str, cores: float, gib: int) -> Iterator[str]:
    for at in _scrapes(BEFORE, N3_GONE if node == "n3" else AFTER):
        yield f'kube_node_status_allocatable{{node="{node}",resource="cpu",unit="core"}} {cores} {MIDNIGHT + at}'
        yield f'kube_node_status_allocatable{{node="{node}",resource="memory",unit="byte"}} {gib * GIB} {MIDNIGHT + at}'


def _pod(pod: Pod) -> Iterator[str]:
    inside = pod.labels(container="main")
    cpu, before = 0.0, None
    owner = f'created_by_kind="{pod.kind or "<none>"}",created_by_name="{pod.owner or "<none>"}",node="{pod.node}"'
    for at in _scrapes(pod.born, pod.gone):
        now = MIDNIGHT + at
        phase, reason = next(((p, r) for moment, (p, r) in reversed(pod.ends.items()) if moment <= at), ("Running", ""))
        yield f"kube_pod_info{{{pod.labels()},{owner}}} 1 {now}"
        yield f"kube_pod_created{{{pod.labels()}}} {MIDNIGHT + pod.born} {now}"
        yield f"kube_pod_start_time{{{pod.labels()}}} {MIDNIGHT + pod.born + 2} {now}"
        for name in ("Running", "Succeeded", "Failed"):
            yield f"kube_pod_status_phase{{{pod.labels(phase=name)}}} {int(name == phase)} {now}"
        if reason:
            yield f"kube_pod_status_reason{{{pod.labels(reason=reason)}}} 1 {now}"
        if pod.deleted_at is not None and pod.deleted_at <= at:
            yield f"kube_pod_deletion_timestamp{{{pod.labels()}}} {MIDNIGHT + pod.deleted_at} {now}"
        yield f'kube_pod_container_resource_requests{{{inside},resource="cpu"}} {pod.cores * 2} {now}'
        yield f'kube_pod_container_resource_requests{{{inside},resource="memory"}} {4 * GIB} {now}'
        yield f'kube_pod_container_resource_limits{{{inside},resource="memory"}} {8 * GIB} {now}'
        past = [crash for crash in pod.crashes if crash.at <= at]
        restarted = [crash for crash in past if crash.at + crash.back <= at]
        yield f"kube_pod_container_status_restarts_total{{{inside}}} {len(restarted)} {now}"
        if past:
            last = past[-1]
            why = pod.labels(container="main", reason=last.reason)
            yield f"kube_pod_container_status_last_terminated_reason{{{why}}} 1 {now}"
            yield f"kube_pod_container_status_last_terminated_exitcode{{{inside}}} {last.code} {now}"
            yield f"kube_pod_container_status_last_terminated_timestamp{{{inside}}} {MIDNIGHT + last.at} {now}"
        if len(restarted) == len(past) and phase == "Running":
            since = restarted[-1].at + restarted[-1].back if restarted else pod.born + 5
            yield f"kube_pod_container_state_started{{{inside}}} {MIDNIGHT + since} {now}"
            cpu = 0.0 if len(restarted) != before and before is not None else cpu + pod.cores * SCRAPE_S
            before = len(restarted)
            own = f'namespace="shop",pod="{pod.name}",container="main"'
            memory = (1.0 + 0.5 * sin(at / 5_000)) * GIB + min(at - since, 9_000) * (
                6 * GIB / 9_013 if pod.crashes else 0
            )
            yield f"container_cpu_usage_seconds_total{{{own}}} {cpu} {now}"
            yield f"container_memory_working_set_bytes{{{own}}} {memory} {now}"
            yield f"container_memory_cache{{{own}}} {0.25 * GIB} {now}"
