"""One run's predictions and measures → a folder: sorted predictions, top alerts, metrics.json and .txt, report.html.

Files are staged beside their place and moved when all are there; ``run.json``, the manifest with the rows and the hash
of every file, comes last: who sees it sees a finished run. Files of anybody else in the folder are left alone.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.domain.borg import DAY_US, PRIMARY_HORIZON_MIN
from leadtime.domain.errors import BadTrace
from leadtime.risk import alerts
from leadtime.risk.gates import Standing
from leadtime.training.evaluation import KEY
from leadtime.training.manifest import disk_errors, file_sha256, read_json, staged_beside, write_json
from leadtime.training.progress import Progress, silent
from leadtime.training.run_report import build_html
from leadtime.training.run_report_text import metrics_text

RUN = "run.json"
METRICS = "metrics.json"
TEXT = "metrics.txt"
PAGE = "report.html"
PREDICTIONS = "validation_predictions.parquet"
ALERTS = "top_risk_alerts.parquet"
RUN_SCHEMA = "leadtime.borg-run/1"
ROW_GROUP = 131_072
SORT_ROWS = 4_000_000  # more rows than this are sorted in buckets of score: half a gigabyte at a time
ORDER = ("risk_score", "cell", "collection_id", "instance_index", "end_time_us", "start_time_us")
Explain = Callable[[pl.DataFrame], pl.DataFrame]
_DATA = (
    "data_hash",
    "windows_data_hash",
    "profile",
    "cells",
    "failure_types",
    "delay_s",
    "rows_in",
    "rows",
    "left_out",
    "positives",
    "excluded",
    "missing_ratio",
    "by_cell",
    "repairs",
    "filters",
)  # of forecaster.json: what a later run is compared by


def write_run(
    folder: Path,
    *,
    predictions: pl.DataFrame | pl.LazyFrame,
    metrics: Mapping[str, Any],
    gates: Sequence[Mapping[str, Any]] = (),
    settings: Mapping[str, Any],
    data: Mapping[str, Any],
    name: str,
    kind: str,
    allowed: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    explain: Explain | None = None,
    alerts_per_day: int = alerts.REFERENCE_PER_DAY,
    also: Mapping[str, int] | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Write a finished run; returns what metrics.json says.

    predictions: the frame of design record 0015, any order. gates: of the data and of this run, beside those in
    ``metrics``; ``allowed``: names the user let pass. data: forecaster.json. explain: alert rows → key and ``reasons``.
    extra: further entries of metrics.json. also: tables already in the folder that belong to the run, with rows.
    Raises DependencyFailed on a full or unwritable disk.
    """
    about = {"name": name, "kind": kind}
    written = _metrics(metrics, about, gates=gates, settings=settings, data=data, allowed=allowed, extra=extra or {})
    with disk_errors(f"writing the run {name}", folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / RUN).unlink(missing_ok=True)
        staged = {file: staged_beside(folder / file) for file in (PREDICTIONS, ALERTS, METRICS, TEXT, PAGE)}
        written["rows"] = write_sorted(predictions.lazy(), staged[PREDICTIONS])
        progress("writing the run", 1, 3, "files")
        top = top_alerts(pl.scan_parquet(staged[PREDICTIONS]), per_day=alerts_per_day, explain=explain)
        top.write_parquet(staged[ALERTS])
        _write_told(written, staged)
        rows = {PREDICTIONS: int(written["rows"]), ALERTS: top.height, **(also or {})}
        seal(folder, name=name, kind=kind, staged=staged, rows=rows)
        progress("writing the run", 3, 3, "files")
    return written


def _write_told(written: Mapping[str, Any], staged: Mapping[str, Path]) -> None:
    """The same content three times: for programs, for a terminal, for a browser."""
    staged[METRICS].write_text(json.dumps(written, indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")
    staged[TEXT].write_text(metrics_text(written), encoding="utf-8")
    staged[PAGE].write_text(build_html(written), encoding="utf-8")


def seal(folder: Path, *, name: str, kind: str, staged: Mapping[str, Path], rows: Mapping[str, int]) -> None:
    """Move staged files to their places, then write the manifest: hashes, and rows of tables."""
    for file, path in staged.items():
        path.replace(folder / file)
    listed = {
        file: {"sha256": file_sha256(folder / file), **({"rows": rows[file]} if file in rows else {})}
        for file in dict.fromkeys([*staged, *rows])
    }
    write_json(folder / RUN, {"schema": RUN_SCHEMA, "name": name, "kind": kind, "files": listed})


def read_run(folder: Path) -> dict[str, Any]:
    """What metrics.json says. Raises BadTrace where there is no finished run."""
    metrics = read_json(folder / METRICS) if (folder / RUN).exists() else None
    if metrics is None or "horizons" not in metrics:
        raise BadTrace(
            "run-absent", f"reading the run in {folder}", f"there is no {RUN} with a {METRICS} of leadtime",
            "name the folder that train-baseline or train wrote, and let that come to its end",
        )  # fmt: skip
    return metrics


def _metrics(
    metrics: Mapping[str, Any], about: Mapping[str, str], *, gates: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Any], data: Mapping[str, Any], allowed: Sequence[str], extra: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """metrics.json: what it is of first, then what was measured. Allowed gates say so, in every later report too."""
    judged = [_allowed(gate, allowed) for gate in [*gates, *metrics["gates"]]]
    return {
        "schema": metrics["schema"],
        **about,
        "usable": all(gate.get("standing") != Standing.FAILED for gate in judged),
        "data_hash": data.get("data_hash", ""),
        "exclusions": data.get("excluded", {}),
        "gates": judged,
        "allowed_gates": sorted({*data.get("allowed_gates", ()), *allowed}),
        **{key: value for key, value in metrics.items() if key not in {"schema", "gates", "usable"}},
        **extra,
        "data": {key: data[key] for key in _DATA if key in data} | {"features": list(data.get("features", ()))},
        "settings": dict(settings),
    }


def _allowed(gate: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    passed = gate.get("standing") == Standing.FAILED and gate.get("name") in names
    return dict(gate) | ({"standing": Standing.ALLOWED.value} if passed else {})


def write_sorted(predictions: pl.LazyFrame, path: Path, *, at_once: int = SORT_ROWS) -> int:
    """Write rows by falling ``risk_score``, then key; returns how many. More than ``at_once`` go bucket by bucket."""
    rows = int(predictions.select(pl.len()).collect(engine="streaming").item())
    falling = [name == "risk_score" for name in ORDER]
    if rows <= at_once:
        predictions.collect(engine="streaming").sort(ORDER, descending=falling).write_parquet(path, statistics=True)
        return rows
    scores = predictions.select("risk_score").collect(engine="streaming")["risk_score"]
    count = -(-rows // at_once) * 2
    cuts = sorted({float(scores.quantile(k / count) or 0.0) for k in range(1, count)}, reverse=True)
    del scores
    score, parts = pl.col("risk_score"), []
    for number, (low, high) in enumerate(zip([*cuts, None], [None, *cuts], strict=True)):
        inside = (pl.lit(value=True) if low is None else score >= low) & (
            pl.lit(value=True) if high is None else score < high
        )
        part = path.with_name(f"{path.name}.{number:04d}")
        bucket = predictions.filter(inside).collect(engine="streaming").sort(ORDER, descending=falling)
        bucket.write_parquet(part)
        parts.append(part)
    try:
        join_files(parts, path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
    return rows


def join_files(parts: Sequence[Path], path: Path) -> None:
    """Parquet files of one schema → one file, rows in the files' order, a row group at a time in memory."""
    pl.scan_parquet(list(parts)).sink_parquet(path, maintain_order=True, row_group_size=ROW_GROUP)


def top_alerts(
    predictions: pl.LazyFrame, *, per_day: int = alerts.REFERENCE_PER_DAY, explain: Explain | None = None
) -> pl.DataFrame:
    """The alerts a day's budget allows, one a run: day, rank, key, score, what came of it, and why it was raised.

    Sorted by day, then rank. ``failed_within`` is null where the label is not known; ``lead_time_s`` from the alert to
    the run's next end, of whatever cause.
    """
    names = predictions.collect_schema().names()
    label = f"y_{PRIMARY_HORIZON_MIN}" if f"y_{PRIMARY_HORIZON_MIN}" in names else None
    wanted = [*KEY, "run_number", "tier", "risk_score", "next_terminal_time_us", "next_terminal_cause", "view"]
    kept = [name for name in wanted if name in names] + ([label] if label else [])
    rows = alerts.with_runs(predictions.select(kept).collect(engine="streaming"))
    chosen = alerts.choose(rows, per_day=per_day).with_columns(
        alert_day=pl.col("day") * DAY_US,
        failed_within=pl.col(label).cast(pl.Boolean) if label else pl.lit(None, dtype=pl.Boolean),
        lead_time_s=(pl.col("next_terminal_time_us") - pl.col("end_time_us")) / 1e6,
    )
    order = ["alert_day", "rank", *(n for n in kept if n != label), "day_score", "failed_within", "lead_time_s"]
    chosen = chosen.select(order).rename({"alert_day": "day_from_us"})
    if explain is not None:
        chosen = chosen.join(explain(chosen), on=list(KEY), how="left", maintain_order="left")
    return chosen
