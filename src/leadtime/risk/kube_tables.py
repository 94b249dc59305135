"""Lives and events of a cluster → the canonical tables of a trace: events, collections, machines, usage windows.

Amounts are shares of the largest node (cores by the most cores, bytes by the most bytes), as Borg's are of its largest
machine. Times become microseconds, 600 s at the import's start; what lies before it is 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from leadtime.domain.borg import TABLES, TRACE_START_US, WINDOW_US, EventType, MachineEventType, Omitted
from leadtime.risk.kube_events import PodEvent, Surroundings
from leadtime.risk.kube_lives import NodeLife, Owner, PodLife, ordinal, stable_id

SECOND_US = 1_000_000
WINDOW_S = WINDOW_US // SECOND_US
PRODUCTION = 200  # priority of a pod whose class nobody mapped: the middle of the production tier
SYSTEM_CLASSES = {"system-node-critical": 360, "system-cluster-critical": 360}
CLASS_OF_QOS = {"BestEffort": 0, "Burstable": 1, "Guaranteed": 2}  # of four classes, 3 being the most latency-sensitive
AUTOSCALING_OFF = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The largest node (cores, bytes): what 1.0 means. ``start_s``: the instant that is 600 s on the trace's clock."""

    cpu: float
    memory: float
    start_s: int

    def time_us(self, at_s: int) -> int:
        """A moment on the trace's clock; 0 at or before the start: a state, not an event."""
        return 0 if at_s <= self.start_s else (at_s - self.start_s) * SECOND_US + TRACE_START_US


def scale_of(nodes: Sequence[NodeLife], start_s: int) -> Scale:
    """The largest amounts any node ever had. Raises ValueError where no node tells both."""
    shapes = [(cpu, memory) for node in nodes for _, cpu, memory in node.shapes if cpu and memory]
    if not shapes:
        raise ValueError("no node tells its allocatable cpu and memory")
    return Scale(cpu=max(cpu for cpu, _ in shapes), memory=max(memory for _, memory in shapes), start_s=start_s)


def slots(lives: Sequence[PodLife]) -> dict[PodLife, int]:
    """Life → instance_index in its workload: a StatefulSet's ordinal, else the how-manieth pod (by creation) it was."""
    found: dict[PodLife, int] = {}
    seen: dict[Owner, int] = {}
    for life in sorted(lives, key=lambda one: (one.created_s or one.first_s, one.namespace, one.pod, one.uid)):
        place = ordinal(life)
        if place is None:
            place = seen.get(life.owner, 0)
            seen[life.owner] = place + 1
        found[life] = place
    return found


def instance_events(
    told: Mapping[PodLife, Sequence[PodEvent]], place: Mapping[PodLife, int], scale: Scale,
    priorities: Mapping[str, int],
) -> pl.DataFrame:  # fmt: skip
    """Canonical instance events. A machine stands in no row before SCHEDULE."""
    rows = [
        {
            "time_us": scale.time_us(event.at_s), "type": int(event.type), "collection_id": life.owner.collection_id,
            "scheduling_class": CLASS_OF_QOS.get(life.qos or "", 1), "priority": priority(life, priorities),
            "instance_index": place[life],
            "machine_id": stable_id(life.node) if life.node and event.type is not EventType.SUBMIT else None,
            "request_cpu": None if event.cpu is None else event.cpu / scale.cpu,
            "request_memory": None if event.memory is None else event.memory / scale.memory,
        }
        for life, events in told.items() for event in events
    ]  # fmt: skip
    return _canonical("instance_events", rows).sort("time_us", "collection_id", "instance_index", maintain_order=True)


def priority(life: PodLife, priorities: Mapping[str, int]) -> int:
    """Of Borg's scale (0–450): as mapped, Kubernetes' own system classes as monitoring, all else production."""
    return (SYSTEM_CLASSES | dict(priorities)).get(life.priority_class or "", PRODUCTION)


def collection_events(
    told: Mapping[PodLife, Sequence[PodEvent]], scale: Scale, priorities: Mapping[str, int]
) -> pl.DataFrame:  # fmt: skip
    """A SUBMIT and a SCHEDULE of each workload, when its first pod had them. When a workload ends is not known."""
    first: dict[tuple[Owner, EventType], tuple[int, PodLife]] = {}
    for life, events in told.items():
        for event in events:
            if event.type in {EventType.SUBMIT, EventType.SCHEDULE}:
                key = (life.owner, event.type)
                first[key] = min(first.get(key, (event.at_s, life)), (event.at_s, life), key=lambda one: one[0])
    rows = [
        {
            "time_us": scale.time_us(at), "type": int(kind), "collection_id": owner.collection_id,
            "scheduling_class": CLASS_OF_QOS.get(life.qos or "", 1), "priority": priority(life, priorities),
            "user": owner.namespace, "collection_name": f"{owner.namespace}/{owner.kind}/{owner.name}",
            "collection_logical_name": f"{owner.kind}/{owner.name}", "vertical_scaling": AUTOSCALING_OFF,
        }
        for (owner, kind), (at, life) in first.items()
    ]  # fmt: skip
    return _canonical("collection_events", rows).sort("time_us", "collection_id", "type")


def machine_events(nodes: Sequence[NodeLife], around: Surroundings, scale: Scale) -> pl.DataFrame:
    """ADD, UPDATE and REMOVE of nodes. A node that vanishes in a scrape gap is not known to be gone."""
    rows = []
    for node in nodes:
        kinds = [(at, MachineEventType.UPDATE, cpu, memory) for at, cpu, memory in node.shapes]
        kinds[0] = (kinds[0][0], MachineEventType.ADD, *kinds[0][2:])
        if not around.is_last(node.last_s) and around.seen_after(node.last_s):
            kinds.append((node.last_s, MachineEventType.REMOVE, kinds[-1][2], kinds[-1][3]))
        rows += [
            {
                "time_us": scale.time_us(at), "machine_id": stable_id(node.node), "type": int(kind),
                "capacity_cpu": None if cpu is None else cpu / scale.cpu,
                "capacity_memory": None if memory is None else memory / scale.memory,
                "platform_id": node.platform,
            }
            for at, kind, cpu, memory in kinds
        ]  # fmt: skip
    return _canonical("machine_events", rows).sort("time_us", "machine_id", maintain_order=True)


def usage_windows(
    samples: Mapping[str, pl.DataFrame], place: Mapping[PodLife, int], nodes: Mapping[str, NodeLife], scale: Scale
) -> tuple[pl.DataFrame, int]:  # fmt: skip
    """Samples by name (namespace, pod, at_s, value) → canonical usage rows [at_s - 300 s, at_s), and how many
    were left out: windows without average CPU or memory (gaps), and windows of no known life.

    ``sample_rate`` is the share of the most samples any window has.
    """
    keys = ["namespace", "pod", "at_s"]
    whole = samples["avg_cpu"].rename({"value": "avg_cpu"})
    for name in ("avg_memory", "max_cpu", "max_memory", "sample_cpu", "page_cache_memory", "samples"):
        whole = whole.join(samples[name].rename({"value": name}), on=keys, how="full", coalesce=True)
    lives = _spans(place, nodes)
    found = whole.with_columns(before_s=pl.col("at_s") - 1).sort("before_s").join_asof(
        lives.sort("from_s"), left_on="before_s", right_on="from_s", by=["namespace", "pod"], check_sortedness=False
    )  # fmt: skip
    known = found.filter(
        (pl.col("at_s") <= pl.col("until_s")) & pl.col("avg_cpu").is_not_null() & pl.col("avg_memory").is_not_null()
        & (pl.col("at_s") - WINDOW_S >= scale.start_s)
    )  # fmt: skip
    most = known["samples"].max()
    rows = known.select(
        start_time_us=(pl.col("at_s") - WINDOW_S - scale.start_s) * SECOND_US + TRACE_START_US,
        end_time_us=(pl.col("at_s") - scale.start_s) * SECOND_US + TRACE_START_US,
        collection_id="collection_id", instance_index="instance_index", machine_id="machine_id",
        **{name: pl.col(name) / scale.cpu for name in ("avg_cpu", "max_cpu", "sample_cpu")},
        **{name: pl.col(name) / scale.memory for name in ("avg_memory", "max_memory", "page_cache_memory")},
        assigned_memory=pl.col("limit") / scale.memory, sample_rate=pl.col("samples") / pl.lit(most),
        alloc_instance_index=pl.lit(-1),
    )  # fmt: skip
    table = _canonical("instance_usage", rows).sort("end_time_us", "collection_id", "instance_index")
    return table, found.height - rows.height


def _spans(place: Mapping[PodLife, int], nodes: Mapping[str, NodeLife]) -> pl.DataFrame:
    """Lives as rows, with what a window of theirs carries; a pod without a limit has its node's memory."""
    return pl.DataFrame(
        [
            {
                "namespace": life.namespace, "pod": life.pod, "from_s": life.created_s or life.first_s - WINDOW_S,
                "until_s": life.last_s + WINDOW_S, "collection_id": life.owner.collection_id, "instance_index": index,
                "machine_id": stable_id(life.node) if life.node else None,
                "limit": life.memory_limit if life.memory_limit is not None else _capacity(nodes.get(life.node or "")),
            }
            for life, index in place.items()
        ],
        schema={"namespace": pl.String, "pod": pl.String, "from_s": pl.Int64, "until_s": pl.Int64,
                "collection_id": pl.Int64, "instance_index": pl.Int32, "machine_id": pl.Int64, "limit": pl.Float64},
    )  # fmt: skip


def _capacity(node: NodeLife | None) -> float | None:
    return None if node is None or not node.shapes else node.shapes[-1][2]


def _canonical(table: str, rows: Sequence[Mapping[str, object]] | pl.DataFrame) -> pl.DataFrame:
    """Columns of ``table`` in order; what the cluster does not tell is missing, or 0 where missing means 0."""
    frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(rows, infer_schema_length=None)
    made = []
    for column in TABLES[table]:
        dtype = pl.List(pl.Float32) if column.dtype.startswith("List") else getattr(pl, column.dtype)()
        value = (pl.col(column.name) if column.name in frame.columns else pl.lit(None)).cast(dtype)
        if column.omitted is Omitted.ZERO:
            value = value.fill_null(pl.lit(0, dtype=dtype))
        made.append(value.alias(column.name))
    return frame.select(made) if frame.width else pl.DataFrame(schema={c.name: pl.Null for c in TABLES[table]})
