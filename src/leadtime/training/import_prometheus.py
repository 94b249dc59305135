"""A Kubernetes cluster's own history in Prometheus → a trace in the canonical schema: shards, trace.json, import.json.

``import.json`` tells what was found: ends by rule, restarts of which nothing else is known, gaps. It is written last.
"""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import polars as pl

from leadtime.domain.borg import DECLARATION, TABLES, TRACE_START_US, WINDOW_US
from leadtime.domain.errors import BadTrace
from leadtime.risk.kube_events import RULES, PodEvent, Surroundings, pod_events
from leadtime.risk.kube_facts import Frames, node_lives, pod_lives
from leadtime.risk.kube_lives import NodeLife, Owner, PodLife
from leadtime.risk.kube_tables import (
    SECOND_US,
    WINDOW_S,
    Scale,
    collection_events,
    instance_events,
    machine_events,
    scale_of,
    slots,
    usage_windows,
)
from leadtime.sources.kube_queries import state_queries, usage_queries
from leadtime.sources.prometheus_options import PrometheusOptions
from leadtime.sources.prometheus_sync import PrometheusDoor
from leadtime.training.import_prometheus_fetch import Fetch, Span, absent, clean, work_folder
from leadtime.training.manifest import disk_errors, read_json, write_json
from leadtime.training.progress import Progress, silent
from leadtime.training.repair_shards import write_declaration, write_shard

REPORT = "import.json"
REPORT_SCHEMA = "leadtime.prometheus-import/1"
VECTORS = frozenset({"cpu_usage_distribution", "tail_cpu_usage_distribution"})
COUNTERS = frozenset({"cycles_per_instruction", "memory_accesses_per_instruction"})
WANTED = {"deployments": ("Deployment", "deployment"), "statefulsets": ("StatefulSet", "statefulset"),
          "replicasets": ("ReplicaSet", "replicaset")}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """What to import. ``priorities``: priority class → Borg's scale (0–450). Instants are whole seconds since 1970."""

    url: str
    start_s: int
    end_s: int
    cell: str
    step_s: int = WINDOW_S
    namespace: str | None = None
    token: str | None = None
    timeout_s: float = 60.0
    priorities: Mapping[str, int] = field(default_factory=dict)


def import_prometheus(
    asked: ImportRequest,
    out: Path,
    *,
    progress: Progress = silent,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> dict[str, Any]:
    """Write the trace of ``asked`` to ``out`` and return ``import.json``. Answers at hand are not asked for again.

    Raises BadTrace (import-step, import-span, import-out-in-use, prometheus-metric-absent), WrongUse (promql-refused,
    prometheus-refused), DependencyFailed (prometheus-…, disk-…).
    """
    span = _span(asked)
    if (out / DECLARATION).exists() and read_json(out / REPORT) is None:
        raise BadTrace(
            "import-out-in-use", f"importing into {out}", f"it holds a trace that is no import ({DECLARATION})",
            "name an empty or new folder",
        )  # fmt: skip
    work = work_folder(out, span, asked.url, asked.namespace)
    # Replicas would be merged by labels an import must keep; max() in the queries takes one of them already.
    options = PrometheusOptions(url=asked.url, token=asked.token, timeout_s=asked.timeout_s, replica_labels=())
    with PrometheusDoor(options, transport=transport) as door, disk_errors(f"importing into {out}", out):
        fetch = Fetch(door=door, span=span, folder=work, progress=progress)
        frames = fetch.state(state_queries(asked.namespace, span.step_s))
        cluster = _cluster(frames, span)
        for shard in out.glob("*-*.parquet"):
            shard.unlink()
        windows = _write_usage(fetch, asked, cluster, out)
        tables = _write_events(cluster, asked, out)
        until_us = (span.end_s - span.start_s) * SECOND_US + TRACE_START_US
        write_declaration(out, cell=asked.cell, clusterdata="v3", observed_until_us=until_us)
        report = _report(asked, cluster, windows | tables, fetch.not_finite)
        write_json(out / REPORT, report)
        clean(out)
    return report


def _span(asked: ImportRequest) -> Span:
    doing = "importing from Prometheus"
    if asked.step_s != WINDOW_S:
        raise BadTrace(
            "import-step", doing, f"--step is {asked.step_s} s",
            f"take {WINDOW_US // 60_000_000}m: usage windows of a trace are {WINDOW_S} s, and check refuses others",
        )  # fmt: skip
    start, end = -(-asked.start_s // WINDOW_S) * WINDOW_S, asked.end_s // WINDOW_S * WINDOW_S
    if end - start < 2 * WINDOW_S:
        raise BadTrace(
            "import-span", doing, f"from --start to --end are {asked.end_s - asked.start_s} s",
            f"take at least {3 * WINDOW_S} s; a week is little",
        )  # fmt: skip
    return Span(start_s=start, end_s=end, step_s=WINDOW_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    """Everything the tables are made from."""

    lives: tuple[PodLife, ...]
    nodes: tuple[NodeLife, ...]
    around: Surroundings
    told: Mapping[PodLife, tuple[PodEvent, ...]]
    place: Mapping[PodLife, int]
    scale: Scale


def _cluster(frames: Frames, span: Span) -> _Cluster:
    lives, nodes = pod_lives(frames, start_s=span.start_s), node_lives(frames)
    born: dict[Owner, list[int]] = {}
    for life in lives:
        insort(born.setdefault(life.owner, []), life.created_s or life.first_s)
    around = Surroundings(
        start_s=span.start_s, step_s=span.step_s, observed=_observed(frames, span.step_s), born=born,
        nodes={node.node: node for node in nodes}, fewer=_fewer(frames),
    )  # fmt: skip
    return _Cluster(
        lives=lives, nodes=nodes, around=around, told={life: pod_events(life, around) for life in lives},
        place=slots(lives), scale=_scale(nodes, span),
    )  # fmt: skip


def _scale(nodes: Sequence[NodeLife], span: Span) -> Scale:
    try:
        return scale_of(nodes, span.start_s)
    except ValueError as error:
        raise BadTrace(
            "prometheus-no-capacity", "putting amounts in the unit of the largest node", str(error),
            "kube_node_status_allocatable must be scraped with resource cpu and memory",
        ) from None  # fmt: skip


def _observed(frames: Frames, step_s: int) -> list[int]:
    """Instants at which anything was seen, from the runs of their count."""
    found = set[int]()
    for row in frames["observed"].iter_rows(named=True):
        found |= set(range(row["at_s"], row["until_s"] + 1, step_s))
    return sorted(found)


def _fewer(frames: Frames) -> dict[Owner, list[int]]:
    """When each workload's wanted replicas fell."""
    found: dict[Owner, list[int]] = {}
    for name, (kind, label) in WANTED.items():
        for (namespace, workload), rows in frames[name].sort("at_s").group_by(["namespace", label]):
            falls = rows.filter(pl.col("value") < pl.col("value").shift())["at_s"].to_list()
            if falls:
                found[Owner(namespace=str(namespace), kind=kind, name=str(workload))] = falls
    return found


def _write_usage(fetch: Fetch, asked: ImportRequest, cluster: _Cluster, out: Path) -> dict[str, int]:
    """One usage shard a day."""
    queries = usage_queries(asked.namespace)
    nodes, rows, left_out = {node.node: node for node in cluster.nodes}, 0, 0
    for number, _ in enumerate(fetch.span.days()):
        samples = fetch.usage(queries, number)
        frame, gone = usage_windows(samples, cluster.place, nodes, cluster.scale)
        rows, left_out = rows + frame.height, left_out + gone
        if frame.height:
            place = out / f"instance_usage-{number:012d}.parquet"
            write_shard(place, frame, "instance_usage", without=VECTORS | COUNTERS)
    if not rows:
        raise absent("container_cpu_usage_seconds_total", asked.url)
    return {"instance_usage": rows, "usage_left_out": left_out}


def _write_events(cluster: _Cluster, asked: ImportRequest, out: Path) -> dict[str, int]:
    tables = {
        "instance_events": instance_events(cluster.told, cluster.place, cluster.scale, asked.priorities),
        "collection_events": collection_events(cluster.told, cluster.scale, asked.priorities),
        "machine_events": machine_events(cluster.nodes, cluster.around, cluster.scale),
    }
    for table, frame in tables.items():
        write_shard(out / f"{table}-000000000000.parquet", frame, table)
    return {table: frame.height for table, frame in tables.items() if table in TABLES}


def _report(asked: ImportRequest, cluster: _Cluster, rows: Mapping[str, int], not_finite: int) -> dict[str, Any]:
    ends: Sequence[str] = [event.rule for events in cluster.told.values() for event in events if event.rule]
    observed = cluster.around.observed
    wanted = (asked.end_s // WINDOW_S * WINDOW_S - cluster.around.start_s) // asked.step_s
    return {
        "schema": REPORT_SCHEMA, "cell": asked.cell, "namespace": asked.namespace, "start_s": cluster.around.start_s,
        "end_s": asked.end_s // WINDOW_S * WINDOW_S, "step_s": asked.step_s, "pods": len(cluster.lives),
        "workloads": len({life.owner for life in cluster.lives}), "nodes": len(cluster.nodes),
        "rows": {name: count for name, count in rows.items() if name in TABLES},
        "usage_left_out": rows["usage_left_out"],
        "ends": {rule: ends.count(rule) for rule in RULES},
        "restarts_unseen": sum(life.restarts_unseen for life in cluster.lives),
        "instants_observed": len(observed), "instants_missing": max(0, wanted - len(observed)),
        "values_not_finite": not_finite,
        "largest_node": {"cpu_cores": cluster.scale.cpu, "memory_bytes": cluster.scale.memory},
    }  # fmt: skip
