"""A backtest → the JSON of ``leadtime forecast backtest --json``. The keys of issue 5's contract stay stable."""

import json
from typing import Any

from leadtime.training.backtest.run import Backtest
from leadtime.training.backtest.score import ModelScore

SCHEMA = "leadtime.report/backtest-1"


def to_json(result: Backtest) -> dict[str, Any]:
    """The report as plain values; None where something cannot be said."""
    options = result.options
    return {
        "schema": SCHEMA,
        "series": result.series.name,
        "step_s": result.series.step_s,
        "horizon_s": options.horizon_s,
        "lead_s": options.lead_s,
        "capacity_per_pod": result.plan.capacity.per_pod,
        "target_utilisation_ratio": options.target_ratio,
        "level_ratio": options.level_ratio,
        "test_share": options.test_share,
        "seed": options.seed,
        "origins": int(result.test.sum()),
        "naive": result.naive.name,
        "naive_within_10pct_ratio": result.naive.within_10pct_ratio,
        "ceiling_within_10pct_ratio": result.naive.ceiling_within_10pct_ratio,
        "models": {line.name: _line(line) for line in result.scores},
        "champion": result.chosen.champion,
        "lead_champion": result.chosen.lead_champion,
        "reason": result.chosen.reason,
        "acts": result.chosen.acts,
        "better_naive": result.chosen.better_naive,
        "served": _line(result.served.score) | {"stepped_down_ratio": result.served.stepped_down_ratio},
        "surges": {
            "caught": result.surges.caught,
            "total": result.surges.total,
            "lead_s": result.surges.lead_s,
            "false_alarms_per_day": result.surges.false_alarms_per_day,
        },
    }


def encode(fields: dict[str, Any]) -> str:
    """The report as text, one line break at the end."""
    return json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _line(line: ModelScore) -> dict[str, Any]:
    above = line.hits_above_naive
    return {
        "within_10pct_ratio": line.within_10pct_ratio,
        "skill": line.skill,
        "coverage_ratio": line.coverage_ratio,
        "mean_interval_width_ratio": line.mean_interval_width_ratio,
        "weighted_quantile_loss": line.weighted_quantile_loss,
        "relative_quantile_loss": line.relative_quantile_loss,
        "shortfall_minutes": line.shortfall_minutes,
        "pod_hours": line.pod_hours,
        "strained_minutes": line.strained_minutes,
        "unscaled_shortfall_minutes": line.unscaled_shortfall_minutes,
        "unscaled_pod_hours": line.unscaled_pod_hours,
        "hits_above_naive_ratio": above.mean if above else None,
        "hits_above_naive_error": above.error if above else None,
        "origins": line.scored,
        "fit_s": line.fit_s,
        "refused": line.refused,
    }
