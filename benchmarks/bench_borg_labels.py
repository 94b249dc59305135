"""Label join: leadtime beside DuckDB and pandas doing the same job in the same run.

    python benchmarks/bench_borg_labels.py [--rows 5000000] [--rounds 5] [--json]

The job: a Parquet file of usage windows in the order of time, as shards have them, and one of instance events in any
order → one Parquet file, sorted by (collection, instance, window end), that says of each window whether its task is
running, the time and type of the next terminal event, and y and the reason of exclusion at 15 min, by the label
contract (docs/designs/0013). DuckDB: two ASOF joins and COPY … TO. pandas: two merge_asof. Each tool reads and writes
with its own reader and writer, zstd level 1, two threads where it can. Order alternates from round to round; figures
are medians over rounds of wall seconds, and of CPU seconds, which neighbours on the machine change less. Positives and
exclusions must be equal in number, or nothing is printed.

``leadtime partition`` is the whole work of a make-dataset partition on the same rows: all 43 columns of a window.

Wanted: at least DuckDB's rate, and three times pandas'.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

os.environ.setdefault("POLARS_MAX_THREADS", "2")
import duckdb
import numpy as np
import pandas as pd
import polars as pl

from leadtime.domain.borg import MINUTE_US, EventType
from leadtime.risk.asof import join_partition, with_runs
from leadtime.risk.labels import labels
from leadtime.risk.runs import ordered
from leadtime.risk.windows import KEY, USAGE_SCHEMA, in_order, usage_windows
from leadtime.sources.borg.canonical import schema_of

THREADS = 2
STEP_US = 300_000_000
STEPS = 600
H_US = 15 * MINUTE_US
UNTIL_US = STEPS * STEP_US
CODES = "(4, 5, 6, 7, 8)"
WRITTEN = ["is_running", "next_terminal_time_us", "next_terminal_type", "excluded_15", "y_15"]


def make_inputs(folder: Path, rows: int) -> int:
    """Canonical usage and events on disk: tasks with several runs, one event to about 20 windows; rows written."""
    rng = np.random.default_rng(7)
    tasks = max(1, rows // 120)
    collection = rng.integers(1, max(2, tasks // 6), tasks) * 7919 + 380_000_000_000
    at = np.repeat(np.arange(tasks), 120)[:rows]
    first = rng.integers(1, STEPS - 120, tasks)
    start = (first[at] + np.tile(np.arange(120), tasks)[: len(at)]) * STEP_US
    usage = pl.DataFrame({
        "start_time_us": start, "end_time_us": start + STEP_US, "collection_id": collection[at],
        "instance_index": (at % 7).astype(np.int32), "machine_id": rng.integers(1, 10_000, len(at)),
        **{name: rng.random(len(at), dtype=np.float32) for name, dtype in USAGE_SCHEMA.items() if dtype == pl.Float32},
    }).with_columns(pl.lit(0).cast(dtype).alias(name) for name, dtype in USAGE_SCHEMA.items()
                    if name in ("alloc_collection_id", "alloc_instance_index", "collection_type"))  # fmt: skip
    usage = usage.select(USAGE_SCHEMA.names()).unique([*KEY, "end_time_us"], maintain_order=True)
    usage = usage.sample(fraction=1.0, shuffle=True, seed=1).sort("start_time_us", maintain_order=True)
    usage.write_parquet(folder / "usage.parquet", compression="zstd", compression_level=1)
    _events(rng, collection, first).write_parquet(folder / "events.parquet", compression="zstd", compression_level=1)
    return usage.height


def _events(rng: np.random.Generator, collection: np.ndarray, first: np.ndarray) -> pl.DataFrame:
    """Three runs a task: SCHEDULE and an end each, shuffled."""
    tasks = len(collection)
    parts = []
    for run in range(3):
        begun = first * STEP_US + run * 40 * STEP_US + rng.integers(0, STEP_US, tasks)
        ended = begun + rng.integers(STEP_US, 39 * STEP_US, tasks)
        kind = rng.choice([4, 5, 6, 7, 8], tasks, p=[0.2, 0.3, 0.35, 0.14, 0.01])
        for time_us, code in ((begun, np.full(tasks, 3)), (ended, kind)):
            parts.append(pl.DataFrame({"time_us": time_us, "type": code, "collection_id": collection,
                                       "instance_index": np.arange(tasks) % 7}))  # fmt: skip
    schema = schema_of("instance_events")
    events = pl.concat(parts)
    others = [pl.lit(None if name.startswith(("request", "machine")) else 0).cast(dtype).alias(name)
              for name, dtype in schema.items() if name not in events.columns]  # fmt: skip
    whole = events.with_columns(*others).select(pl.col(name).cast(dtype) for name, dtype in schema.items())
    return whole.unique(["collection_id", "instance_index", "time_us"], maintain_order=True).sample(
        fraction=1.0, shuffle=True, seed=2
    )


def ours(folder: Path) -> None:
    """The part of our join that labels need: order, runs, labels."""
    events = ordered(pl.scan_parquet(folder / "events.parquet")).with_columns(cause=pl.lit(None, pl.String))
    windows = with_runs(in_order(usage_windows(pl.scan_parquet(folder / "usage.parquet"))), events)
    found = labels(windows, horizons_min=[15], observed_until_us=UNTIL_US)
    frame = found.select(*KEY, "end_time_us", *WRITTEN).collect(engine="in-memory")
    frame.write_parquet(folder / "leadtime.parquet", compression="zstd", compression_level=1)


def whole_partition(folder: Path) -> None:
    """All 43 columns of a window."""
    usage, events = pl.scan_parquet(folder / "usage.parquet"), pl.scan_parquet(folder / "events.parquet")
    empty = [pl.LazyFrame(schema=schema_of(table)) for table in ("collection_events", "machine_events")]
    frame = join_partition(usage, events, *empty).collect(engine="in-memory")
    frame.write_parquet(folder / "partition.parquet", compression="zstd", compression_level=1)


def by_duckdb(folder: Path) -> None:
    """Two ASOF joins on the sorted sides DuckDB makes itself."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute(f"""
        COPY (
          WITH u AS (SELECT collection_id, instance_index, end_time_us FROM '{folder}/usage.parquet'
                     WHERE collection_type = 0),
               e AS (SELECT DISTINCT collection_id, instance_index, time_us, type FROM '{folder}/events.parquet'
                     WHERE collection_type = 0),
               s AS (SELECT * FROM e WHERE type = 3 OR type IN {CODES}),
               t AS (SELECT * FROM e WHERE type IN {CODES}),
               a AS (SELECT u.*, s.type = 3 AS is_running FROM u ASOF LEFT JOIN s
                     ON u.collection_id = s.collection_id AND u.instance_index = s.instance_index
                     AND u.end_time_us >= s.time_us),
               b AS (SELECT a.*, t.time_us AS next_us, t.type AS next_type FROM a ASOF LEFT JOIN t
                     ON a.collection_id = t.collection_id AND a.instance_index = t.instance_index
                     AND a.end_time_us < t.time_us),
               c AS (SELECT *, CASE WHEN NOT coalesce(is_running, false) THEN 'not_running'
                     WHEN end_time_us + {H_US} > {UNTIL_US} THEN 'censored'
                     WHEN next_type = 8 AND next_us <= end_time_us + {H_US} THEN 'lost' END AS excluded_15 FROM b)
          SELECT *, CASE WHEN excluded_15 IS NULL
                    THEN coalesce(next_type = 5 AND next_us <= end_time_us + {H_US}, false)::TINYINT END AS y_15
          FROM c ORDER BY collection_id, instance_index, end_time_us
        ) TO '{folder}/duckdb.parquet' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)""")
    connection.close()


def by_pandas(folder: Path) -> None:
    """Two merge_asof on frames sorted by time, as merge_asof wants them."""
    keys = list(KEY)
    usage = pd.read_parquet(folder / "usage.parquet", columns=[*keys, "end_time_us", "collection_type"])
    usage = usage[usage["collection_type"] == 0].drop(columns="collection_type").sort_values("end_time_us")
    events = pd.read_parquet(folder / "events.parquet", columns=[*keys, "time_us", "type", "collection_type"])
    events = events[events["collection_type"] == 0].drop(columns="collection_type").drop_duplicates()
    events = events.sort_values("time_us")
    ends = events[events["type"].isin([4, 5, 6, 7, 8])]
    state = events[events["type"].isin([3, 4, 5, 6, 7, 8])]
    found = pd.merge_asof(usage, state, left_on="end_time_us", right_on="time_us", by=keys)
    found["is_running"] = found.pop("type") == EventType.SCHEDULE
    found = pd.merge_asof(
        found.drop(columns="time_us"), ends, left_on="end_time_us", right_on="time_us", by=keys, direction="forward",
        allow_exact_matches=False,
    )  # fmt: skip
    within = found["time_us"] <= found["end_time_us"] + H_US
    lost, censored = within & (found["type"] == EventType.LOST), found["end_time_us"] + H_US > UNTIL_US
    excluded = np.select([~found["is_running"], censored, lost], ["not_running", "censored", "lost"], default=None)
    found["excluded_15"] = excluded
    y = (within & (found["type"] == EventType.FAIL)).astype("Int8")
    found["y_15"] = y.mask(found["excluded_15"].notna())
    found = found.sort_values([*keys, "end_time_us"])
    found.to_parquet(folder / "pandas.parquet", compression="zstd", compression_level=1, index=False)


RIVALS: dict[str, Callable[[Path], None]] = {
    "leadtime": ours, "duckdb": by_duckdb, "pandas": by_pandas, "leadtime partition": whole_partition
}  # fmt: skip


def counts(path: Path) -> tuple[int, int, dict[str, int]]:
    """Rows, positives, exclusions by reason."""
    frame = pl.read_parquet(path, columns=["y_15", "excluded_15"])
    reasons = frame["excluded_15"].drop_nulls().value_counts().sort("excluded_15")
    return frame.height, int(frame["y_15"].sum()), dict(reasons.iter_rows())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-borg-labels-"))
    try:
        rows = make_inputs(folder, options.rows)
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in RIVALS}
        for turn in range(options.rounds):
            names = list(RIVALS) if turn % 2 == 0 else list(reversed(RIVALS))
            for name in names:
                begun, cpu = time.perf_counter(), time.process_time()
                RIVALS[name](folder)
                took[name].append((time.perf_counter() - begun, time.process_time() - cpu))
        found = {name: counts(folder / f"{name}.parquet") for name in ("leadtime", "duckdb", "pandas")}
        if len({str(one) for one in found.values()}) != 1:
            sys.exit(f"the tools do not agree: {found}")
        report(rows, took, found["leadtime"], as_json=options.json)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(
    rows: int, took: dict[str, list[tuple[float, float]]], found: tuple[int, int, dict[str, int]], *, as_json: bool
) -> None:  # fmt: skip
    rate = {name: rows / median(wall for wall, _ in times) / 1e6 for name, times in took.items()}
    cpu_s = {name: median(cpu for _, cpu in times) for name, times in took.items()}
    ratios = {name: rate["leadtime"] / rate[name] for name in ("duckdb", "pandas")}
    cpu_ratios = {name: cpu_s[name] / cpu_s["leadtime"] for name in ratios}
    if as_json:
        print(json.dumps({"rows": rows, "positives": found[1], "excluded": found[2], "million_rows_per_s": rate,
                          "cpu_s": cpu_s, "ratio_to": ratios, "cpu_ratio_to": cpu_ratios}))  # fmt: skip
        return
    print(f"{rows:,} windows, {found[1]:,} positives at 15 min, excluded {found[2]}: the same in all three")
    for name, million in rate.items():
        print(f"{name:>20}: {million:.2f} M rows/s, {cpu_s[name]:.2f} s of CPU (median of {len(took[name])} rounds)")
    for name, wanted in (("duckdb", 1), ("pandas", 3)):
        print(f"{ratios[name]:.2f} × {name} by the clock (wanted {wanted}), {cpu_ratios[name]:.2f} × by CPU seconds")


if __name__ == "__main__":
    main()
