"""Rows scored for the primary horizon → the same measures by tier, cell, cause of end, and view of the split."""

from typing import Any

import numpy as np
import polars as pl

from leadtime.domain.borg import MINUTE_US, Cause, Tier
from leadtime.risk import alerts, bootstrap, measures
from leadtime.training.evaluation_horizon import Asked, number, reference, written

DRAWS = 100  # of a part's interval: these are read side by side, not to the last digit


def by_part(rows: pl.DataFrame, minutes: int, asked: Asked) -> dict[str, Any]:
    """``by_tier``, ``by_cell``, ``by_cause``, ``views`` of labelled rows (as ``horizon_rows`` returns them)."""
    per_day = reference(asked.alerts_per_day)
    full_stream = bool((rows["weight"] == 1).all())
    chosen = alerts.choose(rows, per_day=per_day, score="p") if full_stream else rows.clear()
    found: dict[str, Any] = {}
    for name, column in (("by_tier", "tier"), ("by_cell", "cell"), ("views", "view")):
        if column not in rows.columns:
            continue
        raised = {key[0]: part for key, part in chosen.group_by(column)}
        found[name] = {
            _named(column, key[0]): _measured(part, raised.get(key[0]), asked)
            for key, part in sorted(rows.group_by(column), key=lambda item: str(item[0][0]))
        }
    found["by_cause"] = (
        _by_cause(rows, chosen, minutes) if full_stream and "next_terminal_cause" in rows.columns else {}
    )
    return found


def _named(column: str, value: object) -> str:
    if column != "tier" or not isinstance(value, int):
        return str(value)
    return Tier(value).name.lower() if value in set(Tier) else f"tier {value}"


def _measured(part: pl.DataFrame, raised: pl.DataFrame | None, asked: Asked) -> dict[str, Any]:
    """AP with its interval, base rate and lift, and what the alerts at the reference budget were worth here."""
    y, p, weight = (part[name].cast(pl.Float64).to_numpy() for name in ("y", "p", "weight"))
    groups = bootstrap.groups_of(part)
    rows = measures.ranked(y, p, weight, groups.code)
    ap, base = rows.average_precision(), measures.base_rate(y, weight)
    spread = bootstrap.by_group(rows.average_precision, groups.count, n=min(DRAWS, asked.draws), seed=asked.seed)
    failing = part.filter(pl.col("y") == 1)["run"].n_unique()
    alerted = 0 if raised is None else raised.height
    true = 0 if raised is None else int((raised["y"] == 1).sum())
    found = {
        "rows": part.height,
        "positives": int(y.sum()),
        "average_precision": number(ap),
        "base_rate": number(base),
        "lift": number(ap / base) if base > 0 else None,
        "mean_probability": number(float(np.average(p, weights=weight))),
        "alerts": alerted,
        "precision_at_k": number(true / alerted) if alerted else None,
        "recall_at_k": number(true / failing) if failing else None,
        "intervals": {"average_precision": written(spread)},
    }
    if "bayes" in part.columns and part["bayes"].null_count() == 0:
        found["bayes_average_precision"] = number(measures.average_precision(y, part["bayes"].to_numpy(), weight))
    return found


def _by_cause(rows: pl.DataFrame, chosen: pl.DataFrame, minutes: int) -> dict[str, Any]:
    """Cause of end → runs that ended so within the horizon of a scored row, and how many of them had been alerted.

    Only ``self`` is what the model foretells; the others show what else an alert catches or mistakes for it.
    """
    soon = (pl.col("next_terminal_time_us") - pl.col("end_time_us")) <= minutes * MINUTE_US
    cause = pl.col("next_terminal_cause").cast(pl.String)
    ended = (
        rows.filter(soon & cause.is_not_null()).group_by(cause.alias("cause")).agg(pl.n_unique("run").alias("ended"))
    )
    caught = chosen.filter(soon & cause.is_not_null()).group_by(cause.alias("cause")).agg(pl.len().alias("alerted"))
    table = ended.join(caught, on="cause", how="left").with_columns(pl.col("alerted").fill_null(0)).sort("cause")
    return {
        row["cause"]: {
            "ended_runs": row["ended"],
            "alerted": row["alerted"],
            "recall_at_k": number(row["alerted"] / row["ended"]),
            "share_of_alerts": number(row["alerted"] / chosen.height) if chosen.height else None,
            "foretold": row["cause"] == Cause.SELF.value,
        }
        for row in table.iter_rows(named=True)
    }
