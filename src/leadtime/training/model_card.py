"""What a run knows of its model → the model's card, for programs (JSON) and for people (Markdown).

A card says what the model was made from, how good it was on rows it never saw, what it has seen, what it is not for.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from leadtime.sources.risk_model import CARD_SCHEMA
from leadtime.training.booster import gains
from leadtime.training.sampling import FeatureSet
from leadtime.training.train_fit import FittedSet, Recipe
from leadtime.training.train_horizons import Failures

NOT_FOR = (
    "saying why a task fails: its reasons are what moved the score, not causes",
    "tasks, cells or node types unlike those named under 'seen'",
    "failures of other types than 'failure_types', evictions and kills among them",
    "acting without a budget: most alerts at a low base rate are false, see precision at k",
    "judging rows on which something already acted because of a score: they need a part left alone",
)
_MEASURES = (
    "average_precision", "base_rate", "lift", "ece", "brier", "mean_probability", "bayes_average_precision",
)  # fmt: skip

_TABLE = ("base_rate", "average_precision", "lift", "ece", "bayes_average_precision")


def seen_by(data: FeatureSet, recipe: Recipe) -> dict[str, Any]:
    """Cells, tiers, time and failures of the rows the model was fitted on."""
    labels = [pl.col(f"y_{m}") for m in data.horizons_min]
    parts = [data.scan(path).filter(recipe.plan.fit) for path in data.partitions]
    wanted = ("cell", "tier", "end_time_us", "collection_id", *(f"y_{m}" for m in data.horizons_min))
    rows = pl.concat([part.select(wanted) for part in parts])
    facts = rows.select(
        pl.len().alias("rows"), pl.col("cell").cast(pl.String).unique().sort().implode().alias("cells"),
        pl.col("tier").drop_nulls().unique().sort().implode().alias("tiers"),
        pl.struct("cell", "collection_id").n_unique().alias("collections"),
        pl.min("end_time_us").alias("from_us"), pl.max("end_time_us").alias("to_us"),
        *(label.sum().alias(f"positives_{m}") for m, label in zip(data.horizons_min, labels, strict=True)),
    ).collect(engine="streaming").row(0, named=True)  # fmt: skip
    positives = {str(m): int(facts.pop(f"positives_{m}") or 0) for m in data.horizons_min}
    return {**facts, "cells": list(facts["cells"]), "tiers": [int(t) for t in facts["tiers"]], "positives": positives}


def build(
    *, name: str, data: FeatureSet, recipe: Recipe, fitted: FittedSet, metrics: Mapping[str, Any],
    base_rates: Mapping[int, float], monotone_ratio: float, allowed: Sequence[str] = (),
    left_out: Sequence[Failures] = (),
) -> dict[str, Any]:  # fmt: skip
    """The card but for ``files`` and ``parity``, which publishing adds. No time of day: equal runs, equal bytes."""
    first = fitted.fitted[min(fitted.fitted)].booster
    manifest = data.manifest
    return {
        "schema": CARD_SCHEMA, "name": name, "profile": data.profile, "data_hash": data.data_hash,
        "horizons_min": list(data.horizons_min), "horizons_left_out": [one.as_json() for one in left_out],
        "failure_types": manifest.get("failure_types"),
        "features": list(data.features), "dictionary_sha256": data.dictionary_hash,
        "features_sha256": hashlib.sha256("\n".join(data.features).encode()).hexdigest(),
        "gates": gates_of(manifest), "allowed_gates": sorted({*manifest.get("allowed_gates", ()), *allowed}),
        "training": recipe.as_json(),
        "fitted": {
            str(m): {
                "rounds": one.rounds, "watched_average_precision": one.watched, "rows": one.rows,
                "positives": one.positives,
            }
            for m, one in fitted.fitted.items()
        },
        "base_rates": {str(m): rate for m, rate in base_rates.items()},
        "metrics": _shortened(metrics), "raised_to_stay_monotone_ratio": monotone_ratio,
        "seen": seen_by(data, recipe), "minimum_history": "none: features of windows not yet seen are missing values",
        "gain": {**dict(list(gains(first, data.features).items())[:20])},
        "reference": [None if np.isnan(v) else v for v in fitted.reference],
        "not_for": list(NOT_FOR),
    }  # fmt: skip


def gates_of(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The data's own gates, as a list whether the manifest holds a list or a whole check report."""
    gates = manifest.get("gates") or []
    return list(gates.get("gates", ()) if isinstance(gates, Mapping) else gates)


def _shortened(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Headline measures by horizon with their intervals; the whole lies in the run's metrics.json."""
    horizons = {}
    for m, found in metrics["horizons"].items():
        own = {name: found[name] for name in _MEASURES if name in found}
        spread = {name: value for name, value in found.get("intervals", {}).items() if name in own}
        horizons[m] = {**own, "precision_at_k": found.get("precision_at_k"), "intervals": spread}
    return {"horizons": horizons, "views": metrics.get("views"), "gates": metrics.get("gates")}


def as_markdown(card: Mapping[str, Any]) -> str:
    """The card for a person."""
    seen, training = card["seen"], card["training"]
    lines = [
        f"# Failure model {card['name']}", "",
        f"P(the run's next end is one of {card['failure_types']} within the horizon), told at a usage window's end.",
        "", f"- data `{card['data_hash']}`, profile {card['profile']}, {len(card['features'])} features",
        f"- fitted on {seen['rows']:,} rows of {seen['collections']:,} collections",
        f"- cells {', '.join(seen['cells'])}; tiers {seen['tiers']}",
        f"- negatives kept: {training['negatives_kept_ratio']:.4g} of all, each weighing its inverse",
        f"- gates allowed though they failed: {', '.join(map(str, card['allowed_gates'])) or 'none'}",
        f"- test rows raised so that none falls with the horizon: {card['raised_to_stay_monotone_ratio']:.2%}",
        f"- ONNX from XGBoost: at most {card['parity']['largest_difference']:.1e} on {card['parity']['rows']:,} rows",
        "",
        "| horizon (min) | base rate | average precision (95 %) | lift | ECE | optimum |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    lines += [_row(m, found) for m, found in card["metrics"]["horizons"].items()]
    lines += ["", *(f"- {line}" for line in told)] if (told := left_out(card)) else []
    lines += ["", "## Features that brought most gain (shortest horizon)", ""]
    lines += [f"- {name}: {share:.1%}" for name, share in list(card["gain"].items())[:10]]
    lines += ["", "## Not for", "", *(f"- {text}" for text in card["not_for"]), ""]
    return "\n".join(lines)


def left_out(card: Mapping[str, Any]) -> list[str]:
    """A line a horizon that had too few failures to be learnt."""
    found = card.get("horizons_left_out") or ()
    told = (Failures(horizon_min=one["horizon_min"], blocks=one["failures"]).words() for one in found)
    return [f"left out, too few failures: {line}" for line in told]


def _row(m: str, found: Mapping[str, Any]) -> str:
    spread = found["intervals"].get("average_precision") or {}
    low, high = _number(spread.get("low")), _number(spread.get("high"))
    base, ap, lift, ece, best = (_number(found.get(name)) for name in _TABLE)
    return f"| {m} | {base} | {ap} ({low} to {high}) | {lift} | {ece} | {best} |"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
