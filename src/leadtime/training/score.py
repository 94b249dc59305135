"""A published model and rows of features → scores: a folder or a file at once, or a stream one window at a time.

The same files and the same code as the loop's (``sources.risk_model``), so a score here is a score there. Neither
XGBoost nor the training extra is needed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import primary_horizon_min
from leadtime.domain.errors import BadTrace
from leadtime.sources.risk_model import OnnxRiskModel
from leadtime.training.manifest import disk_errors, staged_beside
from leadtime.training.progress import Progress, silent
from leadtime.training.sampling import KEY, Array, matrix_of

BATCH_ROWS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Rows scored, and the highest primary score. ``base_rate``: share of failures within that horizon in the block the
    model was calibrated on, not of the rows scored."""

    rows: int
    highest: float
    base_rate: float


def sources_of(path: Path) -> tuple[Path, ...]:
    """Parquet files of ``path``: a features folder's partitions, or the file itself. Raises BadTrace where none is."""
    found = tuple(sorted(path.glob("cell=*/part-*.parquet"))) if path.is_dir() else (path,) if path.is_file() else ()
    if not found:
        raise BadTrace(
            "score-nothing", f"scoring {path}", "there is no Parquet file of features",
            "name a features folder, one of its files, or - for JSON lines on stdin",
        )  # fmt: skip
    return found


def score_files(
    model: OnnxRiskModel, paths: Iterable[Path], out: Path, *, one_at_a_time: bool = False, progress: Progress = silent
) -> Scored:
    """Score every row of ``paths`` into the Parquet file ``out``: key, ``risk_<m>``, ``risk_score``; rows in order.

    ``one_at_a_time`` scores row after row, as a live loop does; the numbers are the same within 1e-7. The file appears
    when it is finished. Raises BadTrace naming a feature the rows lack.
    """
    parts: list[pl.DataFrame] = []
    rows, primary = 0, primary_horizon_min(model.horizons_min)
    for path in paths:
        frame = _read(path, model)
        for at in range(0, max(frame.height, 1), BATCH_ROWS):
            part = frame.slice(at, BATCH_ROWS)
            x = matrix_of(part, model.features)
            parts.append(_with_scores(part, singly(model, x) if one_at_a_time else model.scores(x), primary))
            rows += part.height
            progress("scoring", rows, None)
    whole = pl.concat(parts)
    with disk_errors(f"scoring into {out}", out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
        staged = staged_beside(out)
        whole.write_parquet(staged)
        staged.replace(out)
    highest = float(whole["risk_score"].max() or 0.0) if rows else 0.0  # type: ignore[arg-type]
    return Scored(rows=rows, highest=highest, base_rate=model.base_rates[primary])


def singly(model: OnnxRiskModel, x: Array) -> dict[int, Array]:
    """The scores of ``x``, one call a row."""
    each = [model.scores(x[row : row + 1]) for row in range(len(x))]
    return {m: np.concatenate([one[m] for one in each]) if each else np.zeros(0) for m in model.horizons_min}


def score_lines(model: OnnxRiskModel, lines: Iterable[str], *, drivers: int = 0) -> Iterator[dict[str, Any]]:
    """JSON lines of windows (key and features by name; left out or null = missing) → one scored record a line, at once.

    ``drivers``: how many leading features to name (occlusion against the training medians). Raises BadTrace naming the
    line when it is no JSON object, knows none of the model's features, or holds something else than a number.
    """
    primary = primary_horizon_min(model.horizons_min)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = _row(model, number, line)
        values = [row.get(name) for name in model.features]
        x = np.asarray([[np.nan if value is None else value for value in values]], dtype=np.float32)
        scores = {m: float(p[0]) for m, p in model.scores(x).items()}
        record = {name: row.get(name) for name in KEY} | {f"risk_{m}": p for m, p in scores.items()}
        record |= {"risk_score": scores[primary], "base_rate": model.base_rates[primary], "model": model.name}
        if drivers:
            found = model.drivers(x[0].tolist(), primary, most=drivers)
            record["drivers"] = [{"feature": d.feature, "value": d.value, "log_odds": d.effect} for d in found]
        yield record


def score_stream(model: OnnxRiskModel, lines: Iterable[str], out: Path, *, drivers: int = 0) -> Scored:
    """Append a JSON line to ``out`` for every line of the stream, flushed before the next is read."""
    rows, highest = 0, 0.0
    with disk_errors(f"scoring into {out}", out.parent):
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("a", encoding="utf-8") as file:
            for record in score_lines(model, lines, drivers=drivers):
                file.write(json.dumps(record) + "\n")
                file.flush()
                rows, highest = rows + 1, max(highest, record["risk_score"])
    return Scored(rows=rows, highest=highest, base_rate=model.base_rates[primary_horizon_min(model.horizons_min)])


def _row(model: OnnxRiskModel, number: int, line: str) -> Mapping[str, Any]:
    doing, cure = f"scoring line {number} of the stream", "write one JSON object a line: key and features by name"
    try:
        row = json.loads(line)
    except ValueError:
        raise BadTrace("score-line", doing, f"it is no JSON ({line[:60]!r})", cure) from None
    if not isinstance(row, dict) or not set(row) & set(model.features):
        raise BadTrace("score-line", doing, "it names none of the model's features", cure)
    wrong = [
        n for n in model.features if not isinstance(row.get(n), int | float | None) or isinstance(row.get(n), bool)
    ]
    if wrong:
        raise BadTrace("score-line", doing, f"{wrong[0]} is {row[wrong[0]]!r}, not a number", cure)
    return row


def _read(path: Path, model: OnnxRiskModel) -> pl.DataFrame:
    try:
        names = pl.read_parquet_schema(path)
        lacking = [name for name in (*KEY, *model.features) if name not in names]
        if not lacking:
            return pl.read_parquet(path, columns=[*KEY, *model.features])
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BadTrace(
            "score-unreadable", f"scoring {path}", f"it cannot be read ({str(error).splitlines()[0]})",
            "name a features file of 'leadtime borg make-forecaster-dataset'",
        ) from None  # fmt: skip
    raise BadTrace(
        "score-features", f"scoring {path} with {model.name}", f"it lacks {len(lacking)} columns, {lacking[0]} first",
        f"make features of the profile {model.card.get('profile')!r}",
    )  # fmt: skip


def _with_scores(part: pl.DataFrame, scores: Mapping[int, Array], primary: int) -> pl.DataFrame:
    risks = [pl.Series(f"risk_{m}", p, dtype=pl.Float64) for m, p in scores.items()]
    return part.select(KEY).with_columns(*risks, pl.Series("risk_score", scores[primary], dtype=pl.Float64))
