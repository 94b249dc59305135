"""The 2011 trace ("v2") beside the canonical tables: its columns, and how its scales become those of 2019.

Source: the trace document of ClusterData2011_2 (google/cluster-data, CC-BY 4.0). Its files have no header; events of
tasks have 13 columns, usage 20, machines 6, jobs 8. It knows no QUEUE and ENABLE, no alloc sets, no parents, no
histograms.
"""

from collections.abc import Mapping

from leadtime.domain.borg import MachineEventType

NO_ALLOC_INDEX = -1  # what alloc_instance_index says where there is no alloc set

# Columns in file order by canonical name; one that begins with "_" has no place in the canonical tables.
V2_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "instance_events": (
        "time_us", "missing_type", "collection_id", "instance_index", "machine_id", "type", "_user",
        "scheduling_class", "priority", "request_cpu", "request_memory", "_request_disk", "_different_machines",
    ),
    "instance_usage": (
        "start_time_us", "end_time_us", "collection_id", "instance_index", "machine_id", "avg_cpu", "avg_memory",
        "assigned_memory", "_unmapped_page_cache", "page_cache_memory", "max_memory", "_disk_io", "_disk_space",
        "max_cpu", "_max_disk_io", "cycles_per_instruction", "memory_accesses_per_instruction", "sample_rate",
        "_aggregation_type", "sample_cpu",
    ),
    "machine_events": ("time_us", "machine_id", "type", "platform_id", "capacity_cpu", "capacity_memory"),
    "collection_events": (
        "time_us", "missing_type", "collection_id", "type", "user", "scheduling_class", "collection_name",
        "collection_logical_name",
    ),
}  # fmt: skip
V2_TABLES: Mapping[str, str] = {
    "task_events": "instance_events",
    "task_usage": "instance_usage",
    "machine_events": "machine_events",
    "job_events": "collection_events",
}  # the names of 2011

V2_TO_V3_MACHINE: Mapping[int, MachineEventType] = {
    0: MachineEventType.ADD,
    1: MachineEventType.REMOVE,
    2: MachineEventType.UPDATE,
}
V2_PRIORITIES: Mapping[int, int] = {
    0: 0, 1: 25,
    2: 100, 3: 103, 4: 105, 5: 107, 6: 110, 7: 114,
    8: 116,
    9: 120, 10: 200,
    11: 360,
}  # fmt: skip
# Our choice, so that tiers keep their meaning: the document calls 0–1 free and 9–11 production, with monitoring on
# top; what lies between is best effort, but for the highest of them. Order is kept; distances mean nothing.
# Reason codes for made-up records (missing_type) count from 0 in 2011, where empty means none: 2019's less one.
