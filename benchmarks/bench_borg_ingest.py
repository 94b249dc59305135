"""How fast JSON shards of instance_usage become canonical Parquet, beside DuckDB doing the same in the same run.

Run: python benchmarks/bench_borg_ingest.py [rows]. Two threads each, a process of its own for every measurement, in
turn, three times. Printed are the best seconds of CPU a million rows (neighbours on the machine do not count), rows a
second at the clock, and peak memory. The aims: 0.25 M rows/s, and no slower than DuckDB.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THREADS = 2
ROUNDS = 3
TABLE = "instance_usage"


def write_shard_of(folder: Path, rows: int) -> Path:
    """A shard like the public ones: a third without CPI, 4 % without vectors, 12 % with no CPU used."""
    import numpy as np
    import polars as pl

    from leadtime.domain.borg import Dialect
    from leadtime.simulate.borg.dialects.shards import write_shard
    from leadtime.sources.borg.canonical import schema_of

    rng = np.random.default_rng(7)
    start = 600_000_000 + 300_000_000 * rng.integers(0, 8000, rows)
    share = (rng.integers(1, 2**16, (rows, 8)) / 2**18).astype(np.float32)
    some = [rng.random(rows) for _ in range(3)]
    vector = np.sort(rng.integers(1, 2**16, (rows, 20)) / 2**18, axis=1).astype(np.float32)
    full = {
        "start_time_us": start, "end_time_us": start + 300_000_000, "collection_id": rng.integers(2**37, 2**39, rows),
        "instance_index": rng.integers(0, 5000, rows), "machine_id": rng.integers(2**27, 2**39, rows),
        "alloc_collection_id": np.where(some[0] < 0.09, 2**38, 0), "alloc_instance_index": np.full(rows, -1),
        "collection_type": np.zeros(rows, dtype=np.int8), "avg_cpu": np.where(some[1] < 0.12, 0, share[:, 0]),
        "avg_memory": share[:, 1], "max_cpu": share[:, 2], "max_memory": share[:, 3], "sample_cpu": share[:, 4],
        "assigned_memory": share[:, 5], "page_cache_memory": share[:, 6], "cycles_per_instruction": share[:, 7] * 8,
        "memory_accesses_per_instruction": share[:, 7], "sample_rate": np.ones(rows),
        "cpu_usage_distribution": vector[:, :11], "tail_cpu_usage_distribution": vector[:, 11:],
    }  # fmt: skip
    missing = {"cycles_per_instruction": 0.31, "memory_accesses_per_instruction": 0.31}
    gaps = missing | {"cpu_usage_distribution": 0.04, "tail_cpu_usage_distribution": 0.04}
    frame = pl.DataFrame(full).with_columns(chance=pl.Series(some[2]))
    frame = frame.with_columns(
        pl.when(pl.col("chance") >= ratio).then(name).alias(name) for name, ratio in gaps.items()
    )
    return write_shard(folder, TABLE, 0, frame.drop("chance").cast(dict(schema_of(TABLE))), Dialect.NDJSON)


def by_leadtime(shard: Path, out: Path) -> None:
    from leadtime.sources.borg.reading import read_shard
    from leadtime.sources.borg.shards import find_shards

    (found,) = find_shards(shard)
    for number, batch in enumerate(read_shard(found)):
        batch.frame.write_parquet(out / f"{number}.parquet", compression="zstd")


def by_duckdb(shard: Path, out: Path) -> None:
    import duckdb

    from leadtime.domain.borg import TABLES, Omitted

    kinds = {"Int64": "BIGINT", "Int32": "INTEGER", "Int8": "TINYINT", "Float32": "FLOAT", "List(Float32)": "FLOAT[]"}
    outer: dict[str, str] = {}
    picked = []
    for column in TABLES[TABLE]:
        name, _, field = column.path.partition(".")
        outer[name] = "STRUCT(cpus FLOAT, memory FLOAT)" if field else kinds[column.dtype]
        value = f"{name}.{field}" if field else name
        filled = {Omitted.ZERO: f"coalesce({value}, 0)", Omitted.NULL: f"nullif({value}, 0)", Omitted.KEPT: value}
        picked.append(f"{filled[column.omitted]}::{kinds[column.dtype]} as {column.name}")
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in outer.items())
    source = f"read_json('{shard}', format='newline_delimited', columns={{{columns}}})"
    connection = duckdb.connect()
    connection.execute(f"set threads = {THREADS}")
    connection.execute(f"copy (select {', '.join(picked)} from {source}) to '{out / '0.parquet'}' (compression zstd)")


CONTENDERS = {"leadtime": by_leadtime, "duckdb": by_duckdb}


def in_its_own_process(*arguments: str) -> str:
    """This program with ``arguments``; what it printed. Its peak memory is then its own."""
    told = subprocess.run(
        [sys.executable, __file__, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "POLARS_MAX_THREADS": str(THREADS)},
    )
    return told.stdout


def alone(name: str, shard: Path) -> None:
    """The measured part: read the shard, write Parquet."""
    import duckdb  # noqa: F401 - imports are not part of the work
    import polars  # noqa: F401, ICN001

    with tempfile.TemporaryDirectory() as out:
        begun, cpu = time.perf_counter(), time.process_time()
        CONTENDERS[name](shard, Path(out))
        took = {"wall_s": time.perf_counter() - begun, "cpu_s": time.process_time() - cpu}
    print(json.dumps({**took, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--only", choices=[*CONTENDERS, "write"], help="one part, in this process")
    parser.add_argument("--shard", type=Path)
    asked = parser.parse_args()
    if asked.only == "write":
        print(write_shard_of(asked.shard, asked.rows))
        return
    if asked.only is not None:
        alone(asked.only, asked.shard)
        return
    with tempfile.TemporaryDirectory() as folder:
        shard = Path(in_its_own_process(str(asked.rows), "--only", "write", "--shard", folder).strip())
        print(f"{asked.rows:,} rows of {TABLE}, {shard.stat().st_size / asked.rows:.0f} bytes a row in gzip")
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
        for _ in range(ROUNDS):
            for name, runs in rounds.items():
                runs.append(json.loads(in_its_own_process("--only", name, "--shard", str(shard))))
    best = {name: {key: min(run[key] for run in runs) for key in runs[0]} for name, runs in rounds.items()}
    for name, found in best.items():
        print(
            f"{name:>9}: {found['cpu_s'] / asked.rows * 1e6:5.2f} s of CPU a million rows, "
            f"{asked.rows / found['wall_s'] / 1e6:.3f} M rows/s, peak {found['peak_mb']:,.0f} MB"
        )
    for key, what in (("wall_s", "clock"), ("cpu_s", "CPU")):
        print(f"DuckDB's {what} time / leadtime's: {best['duckdb'][key] / best['leadtime'][key]:.2f}")


if __name__ == "__main__":
    main()
