"""Features: leadtime beside DuckDB and pandas doing the same job in the same run, and the whole of a partition.

    python benchmarks/bench_borg_features.py [--rows 1000000] [--rounds 3] [--json]

The job: the windows of one partition, sorted as make-dataset leaves them → one Parquet file with key and the columns of
the baseline profile. Rivals are written as one would by hand: DuckDB with window functions and COPY … TO, pandas with
groupby-shift and groupby-rolling. Windows follow each other without gaps, so that "the last six rows" and "the last
30 minutes" are the same rows, and the tools need not be taught the difference. Means of all columns must agree, or
nothing is printed. Every run has a fresh process: its peak memory is its own.

``baseline part`` and ``advanced part`` are what make-forecaster-dataset does with a partition: labels, exclusions,
features, counts, hashes, and, for the advanced profile, the tables of machines, owners and the cell.

Wanted: baseline features at 0.5 M rows/s, advanced ones (at least 60 columns) at 0.15 M rows/s, 2 GB at most.
"""

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

os.environ.setdefault("POLARS_MAX_THREADS", "2")
import duckdb
import numpy as np
import pandas as pd
import polars as pl

from leadtime.domain.borg import DAY_US, TRACE_START_US, WINDOW_US, EventType
from leadtime.risk.asof import join_partition
from leadtime.risk.causes import with_causes
from leadtime.risk.features import KEY, Context, Profile, context_from, feature_frame, features_of
from leadtime.risk.runs import ordered
from leadtime.risk.windows import USAGE_SCHEMA
from leadtime.sources.borg.canonical import schema_of
from leadtime.training import forecaster_part
from leadtime.training.context_tables import build_context
from leadtime.training.executor import Local
from leadtime.training.forecaster_part import CHUNKS_AT_ONCE, FeatureJob, Settings, build_part
from leadtime.training.progress import silent

THREADS = 2
RUN_WINDOWS = 40
RUNS = 3
KEYS = [name for name in KEY if name != "cell"]
PART = "part-0000"
BASELINE = [feature.name for feature in features_of(Profile.BASELINE)]


def make_inputs(folder: Path, rows: int) -> int:
    """A cell's folder with one partition: tasks of three runs of 40 windows each; rows written."""
    rng = np.random.default_rng(7)
    tasks = max(1, rows // (RUN_WINDOWS * RUNS))
    collection = np.sort(rng.integers(1, max(2, tasks // 6), tasks)) * 7919 + 380_000_000_000
    index = np.arange(tasks) - np.searchsorted(collection, collection)
    first = TRACE_START_US + rng.integers(0, DAY_US // WINDOW_US, tasks) * WINDOW_US
    at = np.repeat(np.arange(tasks), RUN_WINDOWS * RUNS)
    start = first[at] + np.tile(np.arange(RUN_WINDOWS * RUNS), tasks) * WINDOW_US
    usage = pl.DataFrame({
        "start_time_us": start, "end_time_us": start + WINDOW_US, "collection_id": collection[at],
        "instance_index": index[at].astype(np.int32), "machine_id": rng.integers(1, 1000, tasks)[at],
        **{name: rng.random(len(at), dtype=np.float32) for name, dtype in USAGE_SCHEMA.items() if dtype == pl.Float32},
    }).with_columns(pl.lit(0).cast(dtype).alias(name) for name, dtype in USAGE_SCHEMA.items()
                    if name in ("alloc_collection_id", "alloc_instance_index", "collection_type"))  # fmt: skip
    events = ordered(_events(rng, collection, index, first).lazy())
    numbers, ids = np.arange(1, 1000), np.unique(collection)
    shape = dict.fromkeys(("capacity_cpu", "capacity_memory"), np.full(len(numbers), 0.5))
    machines = _rows("machine_events", {"machine_id": numbers, "type": np.ones(len(numbers)), **shape})
    owners = _rows("collection_events", {"collection_id": ids, "user": [f"u{one % 97}" for one in ids]})
    with_cause = with_causes(events, owners.lazy(), machines.lazy()).collect()
    windows = join_partition(usage.lazy(), with_cause.drop("cause").lazy(), owners.lazy(), machines.lazy()).collect()
    for kind, frame in (("windows", windows), ("events", with_cause)):
        (folder / kind).mkdir()
        frame.write_parquet(folder / kind / f"{PART}.parquet", compression="zstd", compression_level=1)
    owners.write_parquet(folder / "collections.parquet")
    machines.write_parquet(folder / "machines.parquet")
    return windows.height


def _events(rng: np.random.Generator, collection: np.ndarray, index: np.ndarray, first: np.ndarray) -> pl.DataFrame:
    """Each run's SCHEDULE a second before its first window, its end two seconds before that of the next."""
    parts = []
    for run in range(RUNS):
        begun = first + run * RUN_WINDOWS * WINDOW_US - 1_000_000
        kind = rng.choice([4, 5, 7], len(first))
        for time_us, code in ((begun, np.full(len(first), 3)), (begun + RUN_WINDOWS * WINDOW_US - 1_000_000, kind)):
            parts.append(_rows("instance_events", {
                "time_us": time_us, "type": code, "collection_id": collection, "instance_index": index,
                "priority": np.full(len(first), 200), "scheduling_class": np.full(len(first), 2),
                "request_cpu": 0.2 + collection % 7 / 10, "request_memory": np.full(len(first), 0.3),
            }))  # fmt: skip
    return pl.concat(parts)


def _rows(table: str, columns: dict[str, object]) -> pl.DataFrame:
    """Columns → the table's canonical schema; what is not named is 0, text null."""
    schema = schema_of(table)
    length = len(next(iter(columns.values())))  # type: ignore[arg-type]
    texts = {name: dtype for name, dtype in schema.items() if dtype == pl.String}
    blank = {name: [None] * length if name in texts else np.zeros(length) for name in schema}
    return pl.DataFrame({**blank, **columns}, schema_overrides=texts).cast(dict(schema))


def _chunks_written(folder: Path, out: str, context: Context | None, profile: Profile) -> None:
    windows = pl.read_parquet(folder / "windows" / f"{PART}.parquet")
    events = pl.read_parquet(folder / "events" / f"{PART}.parquet")

    def made(chunk: forecaster_part._Collections) -> pl.DataFrame:
        return feature_frame(chunk.windows.lazy(), chunk.events.lazy(), context, profile=profile).collect()

    with ThreadPoolExecutor(CHUNKS_AT_ONCE) as pool:
        frame = pl.concat(pool.map(made, forecaster_part._chunks(windows, events)))
    frame.write_parquet(folder / out, compression="zstd", compression_level=1)


def ours(folder: Path) -> None:
    """The baseline profile and nothing else."""
    _chunks_written(folder, "leadtime.parquet", None, Profile.BASELINE)


def ours_advanced(folder: Path) -> None:
    """The advanced profile, with the tables it needs made first."""
    windows = pl.scan_parquet(folder / "windows" / f"{PART}.parquet")
    events = pl.scan_parquet(folder / "events" / f"{PART}.parquet")
    tables = {name: pl.read_parquet(folder / f"{name}.parquet") for name in ("collections", "machines")}
    _chunks_written(folder, "advanced.parquet", context_from(windows, events, **tables), Profile.ADVANCED)


def _part(folder: Path, profile: Profile) -> None:
    out = folder / profile.value
    shutil.rmtree(out, ignore_errors=True)
    context = out / "context" if profile is Profile.ADVANCED else None
    if context is not None:
        build_context(folder, [PART], context, inputs="", run=Local(), note=silent)
    settings = Settings(
        profile=profile, horizons_min=(5, 15, 30, 45, 60), failure_types=(EventType.FAIL,), delay_us=0
    )  # fmt: skip
    build_part(
        FeatureJob(
            cell="b", part=PART, windows=folder, out=out, context=context, inputs="", observed_until_us=31 * DAY_US,
            settings=settings,
        )
    )  # fmt: skip


def baseline_part(folder: Path) -> None:
    """All of make-forecaster-dataset's work."""
    _part(folder, Profile.BASELINE)


def advanced_part(folder: Path) -> None:
    """All of make-forecaster-dataset's work, context included."""
    _part(folder, Profile.ADVANCED)


def by_duckdb(folder: Path) -> None:
    """Window functions over each run."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute("SET enable_progress_bar = false")
    over = "OVER (PARTITION BY collection_id, instance_index, run_number ORDER BY end_time_us, start_time_us"
    connection.execute(f"""
        COPY (
          WITH w AS (SELECT *, nullif(request_cpu, 0)::DOUBLE AS c, nullif(request_memory, 0)::DOUBLE AS m,
                            nullif(assigned_memory, 0)::DOUBLE AS a FROM '{folder}/windows/{PART}.parquet'),
               r AS (SELECT *, avg_cpu / c AS cpu, avg_memory / m AS mem FROM w)
          SELECT {", ".join(KEYS)}, cpu::FLOAT AS cpu_ratio, (max_cpu / c)::FLOAT AS cpu_peak_ratio,
            ((max_cpu::DOUBLE - avg_cpu) / c)::FLOAT AS cpu_burst_ratio, mem::FLOAT AS memory_ratio,
            (avg_memory / a)::FLOAT AS memory_limit_ratio, (page_cache_memory / a)::FLOAT AS page_cache_ratio,
            request_cpu AS requested_cpu, request_memory AS requested_memory, tier::FLOAT AS tier_rank,
            scheduling_class::FLOAT AS latency_class,
            CASE WHEN run_start_us > 0 THEN (end_time_us - run_start_us) / 3.6e9 END::FLOAT AS run_age_h,
            run_number::FLOAT AS runs_so_far, (lag(cpu) {over}))::FLOAT AS cpu_ratio_lag_1,
            (avg(cpu) {over} ROWS 5 PRECEDING))::FLOAT AS cpu_ratio_mean_6,
            CASE WHEN count(cpu) {over} ROWS 5 PRECEDING) > 1
                 THEN stddev_pop(cpu) {over} ROWS 5 PRECEDING) END::FLOAT AS cpu_ratio_std_6,
            (avg(cpu) {over} ROWS 11 PRECEDING))::FLOAT AS cpu_ratio_mean_12,
            (avg(mem) {over} ROWS 5 PRECEDING))::FLOAT AS memory_ratio_mean_6
          FROM r ORDER BY collection_id, instance_index, end_time_us, start_time_us
        ) TO '{folder}/duckdb.parquet' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)""")
    connection.close()


def by_pandas(folder: Path) -> None:
    """groupby-shift and groupby-rolling on the rows as they lie."""
    used = ["avg_cpu", "max_cpu", "avg_memory", "assigned_memory", "page_cache_memory", "request_cpu", "request_memory"]
    beside = ["tier", "scheduling_class", "run_start_us", "run_number"]
    rows = pd.read_parquet(folder / "windows" / f"{PART}.parquet", columns=[*KEYS, *used, *beside])
    cpu, memory = rows["request_cpu"].astype("float64"), rows["request_memory"].astype("float64")
    limit = rows["assigned_memory"].astype("float64").where(lambda value: value > 0)
    cpu, memory = cpu.where(cpu > 0), memory.where(memory > 0)
    out = rows[KEYS].copy()
    out["cpu_ratio"], out["cpu_peak_ratio"] = rows["avg_cpu"] / cpu, rows["max_cpu"] / cpu
    out["cpu_burst_ratio"] = (rows["max_cpu"].astype("float64") - rows["avg_cpu"]) / cpu
    out["memory_ratio"], out["memory_limit_ratio"] = rows["avg_memory"] / memory, rows["avg_memory"] / limit
    out["page_cache_ratio"] = rows["page_cache_memory"] / limit
    out["requested_cpu"], out["requested_memory"] = rows["request_cpu"], rows["request_memory"]
    out["tier_rank"], out["latency_class"] = rows["tier"], rows["scheduling_class"]
    out["run_age_h"] = ((rows["end_time_us"] - rows["run_start_us"]) / 3.6e9).where(rows["run_start_us"] > 0)
    out["runs_so_far"] = rows["run_number"]
    runs = [rows["collection_id"], rows["instance_index"], rows["run_number"]]
    by_run = out.groupby(runs, sort=False)
    out["cpu_ratio_lag_1"] = by_run["cpu_ratio"].shift()
    for name, source, count in (("cpu_ratio_mean_6", "cpu_ratio", 6), ("cpu_ratio_mean_12", "cpu_ratio", 12),
                                ("memory_ratio_mean_6", "memory_ratio", 6)):  # fmt: skip
        out[name] = by_run[source].rolling(count, min_periods=1).mean().to_numpy()
    out["cpu_ratio_std_6"] = by_run["cpu_ratio"].rolling(6, min_periods=2).std(ddof=0).to_numpy()
    features = dict.fromkeys(BASELINE, "float32")
    out.astype(features).to_parquet(folder / "pandas.parquet", compression="zstd", compression_level=1, index=False)


JOBS: dict[str, Callable[[Path], None]] = {
    "leadtime": ours, "duckdb": by_duckdb, "pandas": by_pandas, "advanced": ours_advanced,
    "baseline part": baseline_part, "advanced part": advanced_part,
}  # fmt: skip


def measured(name: str, folder: Path) -> tuple[float, float, float]:
    """Clock s, CPU s and peak memory (GB) of one run in this fresh process."""
    begun, cpu = time.perf_counter(), time.process_time()
    JOBS[name](folder)
    took = time.perf_counter() - begun, time.process_time() - cpu
    return *took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def means(path: Path) -> dict[str, float]:
    """Mean and missing rows of every baseline column."""
    frame = pl.read_parquet(path, columns=BASELINE)
    frame = frame.with_columns(pl.col(BASELINE).cast(pl.Float64).fill_nan(None))
    known = {f"{name} missing": float(frame[name].null_count()) for name in BASELINE}
    return known | {name: float(frame[name].mean() or 0.0) for name in BASELINE}  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-borg-features-"))
    try:
        rows = make_inputs(folder, options.rows)
        took: dict[str, list[tuple[float, float, float]]] = {name: [] for name in JOBS}
        for turn in range(options.rounds):
            for name in list(JOBS) if turn % 2 == 0 else list(reversed(JOBS)):
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    took[name].append(pool.apply(measured, (name, folder)))
        found = {name: means(folder / f"{name}.parquet") for name in ("leadtime", "duckdb", "pandas")}
        for rival in ("duckdb", "pandas"):
            wrong = {name: (value, found[rival][name]) for name, value in found["leadtime"].items()
                     if abs(value - found[rival][name]) > 1e-4 * max(1.0, abs(value))}  # fmt: skip
            if wrong:
                sys.exit(f"leadtime and {rival} do not agree: {wrong}")
        report(rows, took, as_json=options.json)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def report(rows: int, took: dict[str, list[tuple[float, float, float]]], *, as_json: bool) -> None:
    figures = {name: tuple(median(one[at] for one in times) for at in range(3)) for name, times in took.items()}
    rate = {name: rows / wall / 1e6 for name, (wall, _, _) in figures.items()}
    if as_json:
        print(json.dumps({
            "rows": rows, "million_rows_per_s": rate, "cpu_s": {name: one[1] for name, one in figures.items()},
            "peak_gb": {name: one[2] for name, one in figures.items()},
        }))  # fmt: skip
        return
    print(f"{rows:,} windows; {len(BASELINE)} baseline, {len(features_of(Profile.ADVANCED))} advanced features")
    for name, (_, cpu, peak) in figures.items():
        print(
            f"{name:>15}: {rate[name]:.2f} M rows/s, {rows / cpu / 1e6:.2f} M rows per CPU second, peak {peak:.2f} GB"
        )
    for rival in ("duckdb", "pandas"):
        print(f"{rate['leadtime'] / rate[rival]:.1f} × {rival} by the clock, "
              f"{figures[rival][1] / figures['leadtime'][1]:.1f} × by CPU seconds")  # fmt: skip


if __name__ == "__main__":
    main()
