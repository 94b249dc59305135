"""Two run folders → what changed: on the same rows, with a paired interval, and in the data they were made from.

A run may look better because other rows were scored. So the measures are taken on the rows both scored (joined by key),
where the labels agree; and what differs between the data sets is listed beside them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.risk import bootstrap, measures
from leadtime.training.evaluation import KEY
from leadtime.training.evaluation_horizon import number, written
from leadtime.training.run_differences import differences
from leadtime.training.run_folder import PREDICTIONS, read_run
from leadtime.training.run_report_text import share

DESCRIBED = (
    "profile", "cells", "failure_types", "delay_s", "rows_in", "rows", "left_out", "excluded", "repairs", "filters",
)  # fmt: skip
NO_HORIZON = "The runs have no horizon in common, so nothing can be compared."
COVERAGE_STEP = 0.01  # a missing share that moved by less is left out of the list


def compare(folder: Path, against: Path, *, seed: int = 0, draws: int = bootstrap.DRAWS) -> dict[str, Any]:
    """``folder`` beside ``against``, the run before: ``sentence``, ``horizons``, ``data``, and ``differences``: a line
    for each thing that is not the same.

    Raises BadTrace where one of them is no finished run. Horizons that only one has are left out.
    """
    now, before = read_run(folder), read_run(against)
    shared = [m for m in now["horizons"] if m in before["horizons"]]
    ours, theirs = pl.scan_parquet(folder / PREDICTIONS), pl.scan_parquet(against / PREDICTIONS)
    found = {m: _horizon(ours, theirs, int(m), seed=seed, draws=draws) for m in shared}
    rows = _rows(ours, theirs)
    primary = str(now["primary_min"])
    told = primary if primary in found else next(iter(found), None)
    data = differing_data(now, before)
    return {
        "against": f"{before['name']} ({str(before['data_hash'])[:16]})",
        "sentence": NO_HORIZON if told is None else _sentence(found[told], told, rows),
        "horizons": found,
        "differences": differences(now, before, data),
        "data": rows | data,
    }


def _horizon(ours: pl.LazyFrame, theirs: pl.LazyFrame, minutes: int, *, seed: int, draws: int) -> dict[str, Any]:
    """Both scores on the shared rows; rows whose labels differ are counted and left out."""
    y, risk = f"y_{minutes}", f"risk_{minutes}"
    left = ours.select(*_key(), pl.col(y).alias("y"), pl.col(risk).alias("now"))
    right = theirs.select(*_key(), pl.col(y).alias("y_before"), pl.col(risk).alias("before"))
    both = left.join(right, on=list(KEY), how="inner", maintain_order="left").collect(engine="streaming")
    other = int((both["y"].ne_missing(both["y_before"])).sum())
    rows = both.filter(pl.col("y").is_not_null() & pl.col("y").eq_missing(pl.col("y_before"))).sort(KEY)
    groups, labels = bootstrap.groups_of(rows), rows["y"].to_numpy()
    now, before = (measures.ranked(labels, rows[name].to_numpy(), group=groups.code) for name in ("now", "before"))
    spread = bootstrap.by_group(
        lambda times: now.average_precision(times) - before.average_precision(times), groups.count, n=draws, seed=seed
    )
    base = measures.base_rate(labels)
    ap, ap_before = now.average_precision(), before.average_precision()
    return {
        "rows": rows.height,
        "labels_differ": other,
        "base_rate": number(base),
        "average_precision": number(ap),
        "average_precision_before": number(ap_before),
        "lift": number(ap / base) if base > 0 else None,
        "lift_before": number(ap_before / base) if base > 0 else None,
        "difference": number(ap - ap_before),
        "interval": written(spread),
    }


def _key() -> list[pl.Expr]:
    return [pl.col(name).cast(pl.String) if name == "cell" else pl.col(name) for name in KEY]


def _rows(ours: pl.LazyFrame, theirs: pl.LazyFrame) -> dict[str, int]:
    """Rows in both, and in one only."""

    def only(one: pl.LazyFrame, other: pl.LazyFrame) -> int:
        left = one.select(_key()).join(other.select(_key()), on=list(KEY), how="anti")
        return int(left.select(pl.len()).collect(engine="streaming").item())

    shared = ours.select(_key()).join(theirs.select(_key()), on=list(KEY), how="semi")
    return {
        "rows_in_both": int(shared.select(pl.len()).collect(engine="streaming").item()),
        "rows_only_now": only(ours, theirs),
        "rows_only_before": only(theirs, ours),
    }


def _sentence(fields: Mapping[str, Any], primary: str, rows: Mapping[str, int]) -> str:
    if fields["average_precision"] is None or fields["average_precision_before"] is None:
        return "The runs share no row with a label, so nothing can be compared."
    low, high = fields["interval"]["low"], fields["interval"]["high"]
    chance = low is None or low <= 0 <= high
    verdict = "no difference beyond chance" if chance else ("better" if fields["difference"] > 0 else "worse")
    others = rows["rows_only_now"] + rows["rows_only_before"]
    left = f"; {others:,} rows are in one run only and were left out" if others else ""
    return (
        f"On the {fields['rows']:,} rows both scored, {primary} min ahead, base rate {share(fields['base_rate'])}: "
        f"AP {fields['average_precision_before']:.4f} (lift {fields['lift_before']:.1f}×) before, "
        f"{fields['average_precision']:.4f} (lift {fields['lift']:.1f}×) now: {verdict}{left}."
    )


def differing_data(now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Both runs' metrics.json → what differs between their data and settings; equal things are left out, but for the
    hash that says so, the positive rates, and empty lists."""
    ours, theirs = now["data"], before["data"]
    found: dict[str, Any] = {"data_hash": _change(now["data_hash"], before["data_hash"])}
    for name in DESCRIBED:
        if ours.get(name) != theirs.get(name):
            found[name] = _change(ours.get(name), theirs.get(name))
    found["features_only_now"] = [name for name in ours["features"] if name not in theirs["features"]]
    found["features_only_before"] = [name for name in theirs["features"] if name not in ours["features"]]
    found["positive_rate"] = {
        m: _change(now["horizons"][m]["base_rate"], before["horizons"][m]["base_rate"])
        for m in now["horizons"]
        if m in before["horizons"]
    }
    found["coverage_by_cell"] = _coverage(ours, theirs)
    if now.get("allowed_gates") != before.get("allowed_gates"):
        found["allowed_gates"] = _change(now.get("allowed_gates"), before.get("allowed_gates"))
    settings = {
        name: _change(now["settings"].get(name), before["settings"].get(name))
        for name in sorted({*now["settings"], *before["settings"]})
        if now["settings"].get(name) != before["settings"].get(name)
    }
    return found | {"settings": settings}


def _change(now: Any, before: Any) -> dict[str, Any]:
    return {"before": before, "now": now}


def _coverage(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Cell → feature → share of rows that lack it, where that moved by COVERAGE_STEP; cells that came or went."""
    cells_now, cells_before = ours.get("by_cell") or {}, theirs.get("by_cell") or {}
    found: dict[str, Any] = {}
    for cell in sorted({*cells_now, *cells_before}):
        now = (cells_now.get(cell) or {}).get("missing_ratio") or {}
        before = (cells_before.get(cell) or {}).get("missing_ratio") or {}
        moved = {
            name: _change(now.get(name), before.get(name))
            for name in sorted({*now, *before})
            if name in now and name in before and abs(now[name] - before[name]) >= COVERAGE_STEP
        }
        if cell not in cells_now or cell not in cells_before:
            found[cell] = "only now" if cell in cells_now else "only before"
        elif moved:
            found[cell] = moved
    return found


def compared_text(comparison: Mapping[str, Any]) -> str:
    """The comparison as a terminal shows it."""
    lines = [f"against {comparison['against']}", comparison["sentence"]]
    for minutes, fields in comparison["horizons"].items():
        if fields["difference"] is None:
            continue
        low, high = fields["interval"]["low"], fields["interval"]["high"]
        spread = "" if low is None else f" ({low:+.4f} to {high:+.4f})"
        lines.append(
            f"{minutes + ' min':>8} AP {fields['average_precision_before']:.4f} → {fields['average_precision']:.4f}, "
            f"base rate {share(fields['base_rate'])}, lift {fields['lift_before']:.1f}× → {fields['lift']:.1f}×, "
            f"difference {fields['difference']:+.4f}{spread}"
        )
    lines.append("what differs (before → now):" if comparison["differences"] else "nothing else differs")
    lines += [f"  {line}" for line in comparison["differences"]]
    return "\n".join(lines) + "\n"
