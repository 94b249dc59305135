"""Declarations → the feature dictionary that lies beside the data: features.json and features.md."""

from collections.abc import Sequence
from typing import Any

from leadtime.risk.features.declare import Feature, Profile

DICTIONARY_SCHEMA = "leadtime.borg-features/1"
RULES = (
    "p is the end (open) of the row's usage window [start, end).",
    "A feature is made from events with time ≤ p and windows with end ≤ p only; a missing value is null, never 0.",
    "A run is (collection, instance, run number): lags and averages never cross its start.",
    "The last k windows are the last k rows of the run that end within (p − k · 5 min, p].",
    "Lag k is missing where that row ends (k + 1) · 5 min before p or earlier; exponential averages fade by age.",
    "A window with average 0 is an observation of 0. A short window counts as one observation.",
    "The machine's platform is left out: its name is an identifier without an order.",
)


def dictionary(features: Sequence[Feature], profile: Profile) -> dict[str, Any]:
    """Content of features.json: one entry a column, in the order of columns."""
    return {
        "schema": DICTIONARY_SCHEMA,
        "profile": profile.value,
        "rules": list(RULES),
        "features": [
            {
                "name": feature.name, "unit": feature.unit, "dtype": "Float32", "formula": feature.formula,
                "known_at_p": feature.known, "profiles": [each.value for each in feature.profiles],
            }
            for feature in features
        ],
    }  # fmt: skip


def page(features: Sequence[Feature], profile: Profile) -> str:
    """Content of features.md: the same for a reader."""
    lines = [f"# Features of the {profile.value} profile", "", f"{len(features)} columns, each Float32.", ""]
    lines += [f"- {rule}" for rule in RULES]
    lines += ["", "| feature | unit | formula | known at p from |", "|---|---|---|---|"]
    lines += [f"| `{each.name}` | {each.unit} | {each.formula} | {each.known} |" for each in features]
    return "\n".join(lines) + "\n"
