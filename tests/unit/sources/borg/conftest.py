"""Small canonical tables, and shards written by hand."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest

from leadtime.sources.borg.canonical import schema_of

ROWS = 12


def usage(rows: int) -> pl.DataFrame:
    """Windows of 300 s of a few instances; every third without a machine, every fourth without vectors."""
    at = range(rows)
    return pl.DataFrame(
        {
            "start_time_us": [600_000_000 + 300_000_000 * i for i in at],
            "end_time_us": [900_000_000 + 300_000_000 * i for i in at],
            "collection_id": [2**52 - i for i in at],
            "instance_index": [i % 3 for i in at],
            "machine_id": [None if i % 3 == 0 else 7 + i for i in at],
            "alloc_collection_id": [0] * rows,
            "alloc_instance_index": [-1] * rows,
            "collection_type": [0] * rows,
            "avg_cpu": [0.1 * (i % 4) for i in at],
            "avg_memory": [0.25] * rows,
            "max_cpu": [0.5] * rows,
            "max_memory": [None if i % 5 == 0 else 0.5 for i in at],
            "sample_cpu": [0.125] * rows,
            "assigned_memory": [0.3] * rows,
            "page_cache_memory": [0.01] * rows,
            "cycles_per_instruction": [None if i % 2 else 1.7 for i in at],
            "memory_accesses_per_instruction": [None if i % 2 else 0.01 for i in at],
            "sample_rate": [1.0] * rows,
            "cpu_usage_distribution": [None if i % 4 == 0 else [0.1 * k for k in range(11)] for i in at],
            "tail_cpu_usage_distribution": [None if i % 4 == 0 else [0.9 + 0.01 * k for k in range(9)] for i in at],
        },
        schema=schema_of("instance_usage"),
    )


def instance_events(rows: int) -> pl.DataFrame:
    """Submits, schedules and failures in turn."""
    at = range(rows)
    return pl.DataFrame(
        {
            "time_us": [0 if i == 0 else 600_000_000 + i for i in at],
            "type": [(0, 3, 5)[i % 3] for i in at],
            "collection_id": [2**52 - i for i in at],
            "scheduling_class": [i % 4 for i in at],
            "missing_type": [0] * rows,
            "collection_type": [0] * rows,
            "priority": [103] * rows,
            "alloc_collection_id": [0] * rows,
            "instance_index": [i % 3 for i in at],
            "machine_id": [None if i % 3 == 0 else 7 + i for i in at],
            "alloc_instance_index": [-1] * rows,
            "request_cpu": [None if i == 4 else 0.0 if i == 5 else 0.5 for i in at],
            "request_memory": [None if i == 4 else 0.25 for i in at],
        },
        schema=schema_of("instance_events"),
    )


@pytest.fixture
def usage_frame() -> pl.DataFrame:
    return usage(ROWS)


@pytest.fixture
def events_frame() -> pl.DataFrame:
    return instance_events(ROWS)


@pytest.fixture
def usage_lines() -> list[str]:
    """Rows of instance_usage as the public export writes them."""
    return [
        f'{{"start_time":"600000000","end_time":"900000000","collection_id":"{i + 1}","average_usage":{{"cpus":0.5}}}}'
        for i in range(ROWS)
    ]


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., Path]:
    """Lines → tmp_path/<name>, gzip unless told otherwise."""

    def write(lines: Sequence[str], name: str = "instance_usage-0.json.gz", *, packed: bool = True) -> Path:
        text = "".join(f"{line}\n" for line in lines).encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(text) if packed else text)
        return path

    return write


@pytest.fixture
def declare() -> Callable[..., None]:
    """Put a trace.json into a folder."""

    def write(folder: Path, **said: object) -> None:
        declared = {"schema": "leadtime.borg-trace/1", **said}
        (folder / "trace.json").write_text(json.dumps(declared), encoding="utf-8")

    return write
