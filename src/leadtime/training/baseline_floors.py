"""Scored rows with the floors beside them → what each floor reaches, and one sentence on what the model adds."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from leadtime.risk import bootstrap, floors, measures
from leadtime.training.evaluation_horizon import number, written

DRAWS = 100
BARELY = 1.1  # a model with less than this times the best floor's AP is hardly worth its upkeep
KNOWN = (floors.STATIC, floors.CRASH_LOOP, floors.LAST_WINDOW)


def columns(scored: pl.LazyFrame) -> list[str]:
    """Floors that the scored rows carry."""
    there = set(scored.collect_schema().names())
    return [name for name in KNOWN if name in there]


def measure(scored: pl.LazyFrame, minutes: int, metrics: Mapping[str, Any], *, seed: int) -> dict[str, Any]:
    """Floor → rows, AP, base rate, lift, interval; ``lead`` = the model's AP minus its, with the paired interval.

    Last comes the model itself, as "logistic regression", on the same rows.
    """
    model, names = f"risk_{minutes}", columns(scored)
    rows = (
        scored.filter(pl.col(f"y_{minutes}").is_not_null())
        .select(pl.col("cell").cast(pl.Categorical), "collection_id", pl.col(f"y_{minutes}").alias("y"), model, *names)
        .collect(engine="streaming")
    )
    groups, y = bootstrap.groups_of(rows), rows["y"].to_numpy()
    sampled = list(bootstrap.draws(groups.count, n=DRAWS, seed=seed))
    ours = measures.ranked(y, rows[model].to_numpy(), group=groups.code)
    drawn = np.asarray([ours.average_precision(times) for times in sampled])
    base = measures.base_rate(y)
    flat = np.zeros(rows.height)
    found = {}
    for name in (floors.BASE_RATE, *names):
        rank = measures.ranked(y, flat if name == floors.BASE_RATE else rows[name].to_numpy(), group=groups.code)
        reached = np.asarray([rank.average_precision(times) for times in sampled])
        ap = rank.average_precision()
        found[name] = {
            "rows": rows.height, "average_precision": number(ap), "base_rate": number(base),
            "lift": number(ap / base) if base > 0 else None, "lead": number(ours.average_precision() - ap),
            "intervals": {
                "average_precision": written(bootstrap.interval(reached.tolist())),
                "lead": written(bootstrap.interval((drawn - reached).tolist())),
            },
        }  # fmt: skip
    main = metrics["horizons"][str(minutes)]
    spread = {"average_precision": main["intervals"]["average_precision"]}
    kept = {name: main[name] for name in ("rows", "average_precision", "base_rate", "lift")}
    return found | {"logistic regression": {**kept, "intervals": spread}}


def best(found: Mapping[str, Any]) -> str:
    """The floor with the largest AP."""
    names = [name for name in found if name != "logistic regression"]
    return max(names, key=lambda name: found[name]["average_precision"] or 0.0)


def best_lift(found: Mapping[str, Any]) -> float:
    """Its AP over the base rate."""
    return float(found[best(found)]["lift"] or 1.0)


def sentence(found: Mapping[str, Any], minutes: int) -> str:
    """One sentence: what the model adds to the best floor, and to "crash loop"."""
    ours, name = found["logistic regression"], best(found)
    if ours["average_precision"] is None:
        return f"No task fails within {minutes} min in the last block, so nothing can be said."
    floor = found[name]
    said = (
        f"AP {ours['average_precision']:.4f} (base rate {100 * ours['base_rate']:.3g} %, lift {ours['lift']:.1f}×) at "
        f"{minutes} min"
    )
    against = f"“{name}” (AP {floor['average_precision']:.4f}, lift {floor['lift']:.1f}×)"
    if hardly(ours["average_precision"], floor):
        return f"The model hardly beats {against}: {said}."
    beaten = [f"“{one}”" for one in found if one in KNOWN and hardly(ours["average_precision"], found[one])]
    return f"{said}, above the best floor, {against}" + (f"; hardly above {', '.join(beaten)}." if beaten else ".")


def hardly(average_precision: float, floor: Mapping[str, Any]) -> bool:
    """The lead over ``floor`` may be chance, or is below BARELY times."""
    low = floor["intervals"]["lead"]["low"]
    return low is None or low <= 0 or average_precision < BARELY * (floor["average_precision"] or 0.0)
