"""Scores and comparisons → fields of the report: rounded, finite, and never null without a reason beside it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from leadtime.scorecard.compare import Comparison
from leadtime.scorecard.forecasts import ForecastScore
from leadtime.scorecard.measures import WorkloadScore
from leadtime.simulate.report_instants import instant

DECIMALS = 6
_NOT_FIELDS = ("world", "workload", "forecasts", "reasons", "scored_from_s", "scored_until_s")
_FORECAST_FIELDS = tuple(
    field.name for field in fields(ForecastScore) if field.name not in ("horizon_s", "scored", "reasons")
)
_NO_FORECASTS = "nobody forecasts in this world"


def rounded(value: float) -> float | None:
    """Six decimals; None for NaN and ±Inf; -0.0 is 0.0, so that equal numbers have equal text."""
    return round(value, DECIMALS) + 0.0 if math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Plain JSON of ``value``: floats rounded, tuples as lists, mappings as dicts in their order."""
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    raise TypeError(f"writing a report: {type(value).__name__} has no JSON form")


def with_reasons(values: Mapping[str, Any], reasons: Mapping[str, str]) -> dict[str, Any]:
    """``values`` in their order, and after each null its ``<field>_reason``."""
    written: dict[str, Any] = {}
    for name, value in values.items():
        written[name] = plain(value)
        if written[name] is None:
            written[f"{name}_reason"] = reasons.get(name) or "not known"
    return written


def of_score(scored: WorkloadScore) -> dict[str, Any]:
    """Every field of a score, forecast fields beside the others."""
    values: dict[str, Any] = {
        "scored_from": instant(scored.scored_from_s),
        "scored_until": instant(scored.scored_until_s),
    }
    reasons = dict(scored.reasons)
    values |= {field.name: getattr(scored, field.name) for field in fields(scored) if field.name not in _NOT_FIELDS}
    if scored.forecasts is None:
        values |= dict.fromkeys(("forecast_horizon_s", "forecasts_scored", *_FORECAST_FIELDS))
        reasons |= dict.fromkeys(("forecast_horizon_s", "forecasts_scored", *_FORECAST_FIELDS), _NO_FORECASTS)
    else:
        values |= {"forecast_horizon_s": scored.forecasts.horizon_s, "forecasts_scored": scored.forecasts.scored}
        values |= {name: getattr(scored.forecasts, name) for name in _FORECAST_FIELDS}
        reasons |= scored.forecasts.reasons
    return with_reasons(values, reasons)


def of_comparison(compared: Comparison) -> dict[str, Any]:
    """Every field of a comparison."""
    values = {field.name: getattr(compared, field.name) for field in fields(compared)}
    return with_reasons({k: v for k, v in values.items() if k not in ("workload", "reasons")}, compared.reasons)


_OWN = ("early_warning_s", "learned_lead_p90_s", "ready_ahead_s", "first_request_ahead_s", "oracle_gap_closed")


def of_own_comparison(compared: Comparison, world: str) -> dict[str, Any]:
    """The fields of DESIGN §6 that compare leadtime with another world; null in every world but leadtime's."""
    if world == "leadtime":
        return with_reasons({name: getattr(compared, name) for name in _OWN}, compared.reasons)
    return with_reasons(dict.fromkeys(_OWN), dict.fromkeys(_OWN, "it is about leadtime's world only"))


def all_null(fields: Mapping[str, Any], why: str) -> dict[str, Any]:
    """The same fields for a world that was not played: each null with ``why`` beside it, no minutes."""
    names = [name for name in fields if not name.endswith("_reason")]
    empty: dict[str, Any] = {name: None for name in names if name != "minutes"}
    found = with_reasons(empty, dict.fromkeys(empty, why))
    return found | ({"minutes": [], "minutes_reason": why} if "minutes" in names else {})
