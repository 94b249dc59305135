"""Label join: leadtime beside DuckDB and pandas doing the same job in the same run.

    python benchmarks/bench_borg_labels.py [--rows 5000000] [--rounds 5] [--json]

The job: a Parquet file of usage windows in the order of time, as shards have them, and one of instance events in any
order → one Parquet file, sorted by (collection, instance, window end), that says of each window whether its task is
running, the time and type of the next terminal event, and y and the reason of exclusion at 5, 15, 30, 45 and 60 min,
by the label contract (docs/designs/0013): 16 columns. All start from the same two files and write the same columns.

- leadtime orders and de-duplicates the events by all their columns, makes states of them, orders the windows, joins
  once, and derives all horizons from the next end.
- DuckDB makes two ASOF joins (newest SCHEDULE or end; next end), CASE for each horizon, and COPY … TO.
- pandas sorts both sides by time, as merge_asof wants them, and makes two merge_asof; reasons are picked from an array
  of three strings, which is several times faster than numpy.select over strings.

Rivals read four or five columns of the events and keep different rows of these apart; leadtime reads them all. Each
tool reads and writes with its own reader and writer, zstd level 1, two threads where it can. Order alternates from
round to round; figures are medians over rounds of wall seconds, and of CPU seconds, which neighbours on the machine
change less. Positives and exclusions by reason must be equal for every horizon, or nothing is printed.

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

from leadtime.domain.borg import HORIZONS_MIN, MINUTE_US, EventType, Excluded
from leadtime.risk.asof import join_partition, with_runs
from leadtime.risk.labels import labels
from leadtime.risk.runs import ordered
from leadtime.risk.windows import KEY, USAGE_SCHEMA, in_order, usage_windows
from leadtime.sources.borg.canonical import schema_of

THREADS = 2
STEP_US = 300_000_000
STEPS = 600
UNTIL_US = STEPS * STEP_US
CODES = "(4, 5, 6, 7, 8)"
LABELS = [f"{kind}_{m}" for m in HORIZONS_MIN for kind in ("excluded", "y")]
WRITTEN = ["is_running", "next_terminal_time_us", "next_terminal_type", *LABELS]
REASONS = [Excluded.NOT_RUNNING.value, Excluded.CENSORED.value, Excluded.LOST.value]


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
    found = labels(windows, horizons_min=HORIZONS_MIN, observed_until_us=UNTIL_US)
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
               c AS (SELECT collection_id, instance_index, end_time_us, coalesce(is_running, false) AS is_running,
                     next_us AS next_terminal_time_us, next_type AS next_terminal_type FROM b),
               d AS (SELECT *, {", ".join(_excluded_sql(m) for m in HORIZONS_MIN)} FROM c)
          SELECT collection_id, instance_index, end_time_us, is_running, next_terminal_time_us, next_terminal_type,
                 {", ".join(f"excluded_{m}, {_y_sql(m)}" for m in HORIZONS_MIN)}
          FROM d ORDER BY collection_id, instance_index, end_time_us
        ) TO '{folder}/duckdb.parquet' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)""")
    connection.close()


def _excluded_sql(minutes: int) -> str:
    last = f"end_time_us + {minutes * MINUTE_US}"
    return (
        f"CASE WHEN NOT is_running THEN 'not_running' WHEN {last} > {UNTIL_US} THEN 'censored' "
        f"WHEN next_terminal_type = 8 AND next_terminal_time_us <= {last} THEN 'lost' END AS excluded_{minutes}"
    )


def _y_sql(minutes: int) -> str:
    last = f"end_time_us + {minutes * MINUTE_US}"
    within = f"coalesce(next_terminal_type = 5 AND next_terminal_time_us <= {last}, false)::TINYINT"
    return f"CASE WHEN excluded_{minutes} IS NULL THEN {within} END AS y_{minutes}"


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
    found = found.rename(columns={"time_us": "next_terminal_time_us", "type": "next_terminal_type"})
    end, next_us, kind = (found[name] for name in ("end_time_us", "next_terminal_time_us", "next_terminal_type"))
    running, reasons = found["is_running"], np.array([*REASONS, None], dtype=object)
    for minutes in HORIZONS_MIN:
        last = end + minutes * MINUTE_US
        within = next_us <= last
        why = np.select([~running, last > UNTIL_US, within & (kind == EventType.LOST)], [0, 1, 2], default=3)
        found[f"excluded_{minutes}"] = reasons[why]
        found[f"y_{minutes}"] = (within & (kind == EventType.FAIL)).astype("Int8").mask(why < len(REASONS))
    found = found.astype({"next_terminal_time_us": "Int64", "next_terminal_type": "Int8"})
    found = found.sort_values([*keys, "end_time_us"])
    found.to_parquet(folder / "pandas.parquet", compression="zstd", compression_level=1, index=False)


RIVALS: dict[str, Callable[[Path], None]] = {
    "leadtime": ours, "duckdb": by_duckdb, "pandas": by_pandas, "leadtime partition": whole_partition
}  # fmt: skip


def counts(path: Path) -> dict[str, object]:
    """Rows, columns, and by horizon positives and exclusions by reason."""
    frame = pl.read_parquet(path)
    found: dict[str, object] = {"rows": frame.height, "columns": frame.columns}
    for minutes in HORIZONS_MIN:
        reasons = frame[f"excluded_{minutes}"].cast(pl.String).drop_nulls().value_counts().sort(f"excluded_{minutes}")
        found[f"{minutes} min"] = int(frame[f"y_{minutes}"].sum()), dict(reasons.iter_rows())
    return found


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
    rows: int, took: dict[str, list[tuple[float, float]]], found: dict[str, object], *, as_json: bool
) -> None:  # fmt: skip
    rate = {name: rows / median(wall for wall, _ in times) / 1e6 for name, times in took.items()}
    cpu_s = {name: median(cpu for _, cpu in times) for name, times in took.items()}
    ratios = {name: rate["leadtime"] / rate[name] for name in ("duckdb", "pandas")}
    cpu_ratios = {name: cpu_s[name] / cpu_s["leadtime"] for name in ratios}
    if as_json:
        print(json.dumps({"rows": rows, "found": found, "million_rows_per_s": rate,
                          "cpu_s": cpu_s, "ratio_to": ratios, "cpu_ratio_to": cpu_ratios}))  # fmt: skip
        return
    print(f"{rows:,} windows; positives and exclusions, the same in all three:")
    for minutes in HORIZONS_MIN:
        print(f"{minutes:>6} min: {found[f'{minutes} min']}")
    for name, million in rate.items():
        print(f"{name:>20}: {million:.2f} M rows/s, {cpu_s[name]:.2f} s of CPU (median of {len(took[name])} rounds)")
    for name, wanted in (("duckdb", 1), ("pandas", 3)):
        print(f"{ratios[name]:.2f} × {name} by the clock (wanted {wanted}), {cpu_ratios[name]:.2f} × by CPU seconds")


if __name__ == "__main__":
    main()
