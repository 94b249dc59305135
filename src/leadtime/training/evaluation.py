"""Predictions (and, of generated data, the truth) → what metrics.json says of them, the alarms included.

Reads the frame of ``validation_predictions.parquet`` (design record 0015). Nothing here fits anything.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from leadtime.domain.borg import PRIMARY_HORIZON_MIN
from leadtime.risk import alerts, bootstrap
from leadtime.risk.gates import Gate, Standing
from leadtime.training import evaluation_alarms as alarms
from leadtime.training import evaluation_groups as parts
from leadtime.training.evaluation_horizon import Asked, horizon, number

METRICS_SCHEMA = "leadtime.borg-metrics/1"
KEY = ("cell", "collection_id", "instance_index", "start_time_us", "end_time_us")
ALERTS_PER_DAY = (10, 100, 1000)
_KEPT = (*KEY, "run_number", "tier", "next_terminal_time_us", "next_terminal_cause", "view")
_WORDS = ("cell", "next_terminal_cause", "view")  # few different texts in many rows: kept as codes


def evaluate(
    predictions: pl.DataFrame | pl.LazyFrame,
    *,
    horizons_min: Sequence[int],
    primary_min: int = PRIMARY_HORIZON_MIN,
    truth: pl.DataFrame | pl.LazyFrame | None = None,
    alerts_per_day: tuple[int, ...] = ALERTS_PER_DAY,
    seed: int,
    draws: int = bootstrap.DRAWS,
    failure_is_self: bool = True,
) -> dict[str, Any]:
    """Measure each horizon, the primary one also by tier, cell, cause and view.

    predictions: key, run_number, tier, next_terminal_*, view, y_<m> (null: excluded), risk_<m> in [0, 1]; ``weight``
    where negatives were sampled (then nothing is said of alerts). truth: key, y_<m>, score_<m>. Returns ``horizons``
    (minutes → measures, ``intervals`` beside), ``by_tier``, ``by_cell``, ``by_cause``, ``views``, ``gates``,
    ``usable``. ``failure_is_self``: FAIL alone counts as failure, so that the cause tells it (what scores that arrive
    late are worth is computed from it). Raises ValueError when a horizon has no column or no labelled row.
    """
    asked = Asked(alerts_per_day=alerts_per_day, draws=draws, seed=seed, failure_is_self=failure_is_self)
    primary = primary_min if primary_min in horizons_min else horizons_min[0]
    found, gates = _measured(predictions.lazy(), horizons_min, primary, truth, asked)
    return {
        "schema": METRICS_SCHEMA,
        "primary_min": primary,
        "seed": seed,
        "draws": draws,
        "alerts_per_day": list(alerts_per_day),
        **found,
        "gates": [gate.to_json() for gate in gates],
        "usable": all(gate.standing is not Standing.FAILED for gate in gates),
    }


def _measured(
    frame: pl.LazyFrame, horizons_min: Sequence[int], primary: int, truth: pl.DataFrame | pl.LazyFrame | None,
    asked: Asked,
) -> tuple[dict[str, Any], list[Gate]]:  # fmt: skip
    """Horizon by horizon, so that one horizon's rows are in memory at a time."""
    measured: dict[str, Any] = {}
    found: dict[str, Any] = {}
    gates: list[Gate] = []
    for minutes in horizons_min:
        rows = horizon_rows(frame, minutes, truth)
        measured[str(minutes)] = horizon(rows, minutes, asked)
        gates += alarms.against_truth(minutes, measured[str(minutes)], rows)
        if minutes == primary:
            found = parts.by_part(rows, minutes, asked)
        del rows
    gates.append(alarms.horizons_in_order(frame, horizons_min))
    return {"horizons": measured, **found}, gates


def horizon_rows(
    predictions: pl.DataFrame | pl.LazyFrame, minutes: int, truth: pl.DataFrame | pl.LazyFrame | None = None
) -> pl.DataFrame:
    """The labelled rows of one horizon as ``evaluation_horizon.horizon`` takes them, the truth joined by key.

    Raises ValueError when there is none, or a column is missing.
    """
    frame = predictions.lazy()
    names = frame.collect_schema().names()
    missing = [name for name in (*KEY, "run_number", f"y_{minutes}", f"risk_{minutes}") if name not in names]
    if missing:
        raise ValueError(f"the predictions have no column {', '.join(missing)}")
    weight = pl.col("weight") if "weight" in names else pl.lit(1.0)
    rows = frame.filter(pl.col(f"y_{minutes}").is_not_null()).select(
        *(name for name in _KEPT if name in names),
        pl.col(f"y_{minutes}").cast(pl.Int8).alias("y"),
        pl.col(f"risk_{minutes}").alias("p"),
        weight.cast(pl.Float64).alias("weight"),
    )
    if truth is not None:
        rows = _with_truth(rows, minutes, truth.lazy())
    words = [pl.col(name).cast(pl.Categorical) for name in _WORDS if name in rows.collect_schema().names()]
    collected = rows.with_columns(words).collect(engine="streaming")
    if collected.is_empty():
        raise ValueError(f"no row has a label for {minutes} min")
    return alerts.with_runs(collected)


def _with_truth(rows: pl.LazyFrame, minutes: int, truth: pl.LazyFrame) -> pl.LazyFrame:
    """Add ``bayes`` (and ``memoryless``) and ``y_true``; rows the truth does not know have nulls there."""
    names = truth.collect_schema().names()
    wanted = {"bayes": f"score_{minutes}", "memoryless": f"memoryless_{minutes}", "y_true": f"y_{minutes}"}
    columns = [pl.col(theirs).alias(ours) for ours, theirs in wanted.items() if theirs in names]
    key = [pl.col(name).cast(pl.String) if name == "cell" else pl.col(name) for name in KEY]
    rows = rows.with_columns(pl.col("cell").cast(pl.String))
    return rows.join(truth.select(*key, *columns), on=list(KEY), how="left", maintain_order="left")


def summary(metrics: Mapping[str, Any], minutes: int) -> str:
    """One line: AP never without the base rate and the lift beside it."""
    said = metrics["horizons"][str(minutes)]
    error = (said["intervals"]["average_precision"] or {}).get("se")
    ap, base, lift = (number(said[name]) for name in ("average_precision", "base_rate", "lift"))
    if ap is None or base is None or lift is None:
        return f"{minutes} min: no failure among {said['rows']:,} rows, so nothing can be said"
    spread = "" if error is None else f" ± {error:.4f}"
    return f"{minutes} min: AP {ap:.4f}{spread}, base rate {base:.4%}, lift {lift:.1f}×"
