"""Measures → gates that stop a run whose numbers are too good, or not numbers of what they claim to be.

A gate that failed makes the run unusable. The limits are those of the reference: AP above the optimum + 3 SE is a leak
(borg-trace §0.4, §6.5), one feature that carries the model alone is a suspect (§2.3).
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import polars as pl

from leadtime.risk import gates
from leadtime.risk.gates import Gate

ABOVE_OPTIMUM_SE = 3.0
ALONE_FACTOR = 8.0  # one feature's lift over the best floor's; smoothing a signal gives up to 6 (borg-trace §6.1)
LEFT = 0.6  # of the AP without the strongest feature: a leaked count leaves 0.35–0.6, a signal with lags far more


def against_truth(minutes: int, measured: Mapping[str, Any], rows: pl.DataFrame) -> list[Gate]:
    """Gates that need the generator's truth; none where there is no truth.

    ``labels-equal-truth``: labels and exclusions are the truth's, row by row. ``above-optimum``: no function of the
    past has an AP above the Bayes score's, beyond chance.
    """
    where, found = f"{minutes} min", []
    if "y_true" in rows.columns:
        wrong = rows.filter(pl.col("y") != pl.col("y_true").fill_null(-1)).height
        found.append(
            gates.at_most(
                "labels-equal-truth", wrong, 0, where=where, unit="rows",
                sentence="labelled rows whose label is not the generator's",
                cure="compare these rows' events with truth_rows.parquet: a label is wrong, or a row was made up",
            )
        )  # fmt: skip
    best, ours = measured.get("bayes_average_precision"), measured["average_precision"]
    error = (measured["intervals"].get("bayes_average_precision") or {}).get("se")
    if best is not None and ours is not None and error is not None:
        found.append(
            gates.at_most(
                "above-optimum", ours, best + ABOVE_OPTIMUM_SE * error, where=where, unit="AP",
                sentence="average precision against the best possible one plus 3 standard errors",
                cure="a feature knows the future: find it by leaving out the strongest ones, and build anew",
                figures={"bayes_average_precision": best, "se": error},
            )
        )  # fmt: skip
    return found


def horizons_in_order(predictions: pl.LazyFrame, horizons_min: Sequence[int]) -> Gate:
    """``monotone-horizons``: no row's probability falls as its horizon grows."""
    pairs = list(pairwise(sorted(horizons_min)))
    if not pairs:
        return gates.not_examined("monotone-horizons", "there is one horizon only")
    falls = [pl.col(f"risk_{late}") < pl.col(f"risk_{early}") for early, late in pairs]
    wrong = predictions.select(pl.any_horizontal(falls).sum()).collect(engine="streaming").item()
    return gates.at_most(
        "monotone-horizons", int(wrong or 0), 0, unit="rows",
        sentence="rows whose probability falls as the horizon grows",
        cure="raise each probability to the largest one of a shorter horizon before writing it",
    )  # fmt: skip


def alone(single: Mapping[str, float], best_floor: float, *, factor: float = ALONE_FACTOR) -> Gate:
    """``one-feature``: no feature alone ranks failures ``factor`` times as well as the best floor does.

    ``single``: feature → lift (AP over base rate) of its better direction; ``best_floor``: the best floor's lift.
    """
    if not single:
        return gates.not_examined("one-feature", "no feature has two different values")
    name = max(single, key=lambda feature: single[feature])
    return gates.at_most(
        "one-feature", single[name], factor * best_floor, where=name, unit="factor",
        sentence=f"lift of the strongest single feature against {factor:g} times the best floor's",
        cure=f"find out what {name} knows at the prediction instant; leave it out, or allow this gate by name",
    )  # fmt: skip


def carried(feature: str, with_it: float, without_it: float) -> Gate:
    """``feature-removal``: without the strongest feature most of the average precision is left."""
    return gates.at_least(
        "feature-removal", without_it, LEFT * with_it, where=feature, unit="AP",
        sentence="average precision left when the strongest feature is left out, against 60 % of that with it",
        cure=f"find out what {feature} knows at the prediction instant; leave it out, or allow this gate by name",
    )  # fmt: skip
