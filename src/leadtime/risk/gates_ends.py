"""Sampled histories of a cell → gates on the ends of runs: what gives an end away, what comes after it, how often."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from leadtime.domain.borg import (
    HORIZONS_MIN,
    MINUTE_US,
    PRIMARY_HORIZON_MIN,
    TERMINAL,
    WINDOW_US,
    EventType,
    primary_horizon_min,
)
from leadtime.risk.gates import Gate, Standing, at_least, at_most, not_examined, reported, too_few, written
from leadtime.risk.gates_tally import INSTANCE
from leadtime.risk.labels import DEFAULT_FAILURES, labels

MIN_ROWS = 50
MOMENT_US = 60_000_000  # an end within a minute after the window
SHORT_RATIO = 0.9  # shorter than 270 s
FEW_SAMPLES = 0.8  # samples a second; real rows have ≥ 0.985 in 99 %
TELL_LIMIT = 0.25  # a quarter of short windows announces an end, where …
TELL_LIFT = 5.0  # … it is at least five times as often as among full windows
AFTER_LIMIT = 0.50  # real windows run tens of seconds past the end; cut event tables lose new beginnings too
GAP_US = 1_000_000  # windows that touch
NEAR_MIN = 15
NEGATIVE_FLOOR = 0.50  # shards lose windows by chance, near failures as often as far from them
TOO_MANY = 0.20  # share of failures within 15 min; the trace has 0.03–0.25 %, generators up to 3 %
ENOUGH_ROWS = 20_000  # with no failure among so many rows there is nothing to learn
CHANGE_LIMIT = 2.0  # factor between builds, up or down
CHANGE_SE = 4.0  # and only where it is more than chance
_STATE = [int(EventType.SCHEDULE), *(int(kind) for kind in TERMINAL)]
_ENDS = [int(kind) for kind in TERMINAL]


def windows_with_ends(windows: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Task windows + what the label contract asks of them, computed apart from make-dataset's join.

    Added: ``state``, ``run_start_us`` (type and time of the last SCHEDULE-or-terminal event at or before p; null where
    none), ``is_running``, ``next_terminal_type``, ``next_terminal_time_us`` (first end after p). p = end_time_us; at
    equal times an end comes before SCHEDULE. Sorted by p.
    """
    tasks = windows.filter(pl.col("collection_type") == 0).sort("end_time_us")
    told = events.filter(pl.col("type").is_in(_STATE)).select("time_us", "type", *INSTANCE).unique()
    told = told.with_columns(pl.col("type").is_in(_ENDS).not_().alias("tie")).sort("time_us", "tie").drop("tie")
    state = told.rename({"time_us": "run_start_us", "type": "state"})
    ends = told.filter(pl.col("type").is_in(_ENDS)).select(
        *INSTANCE, next_terminal_time_us="time_us", next_terminal_type="type"
    )
    found = tasks.join_asof(
        state, left_on="end_time_us", right_on="run_start_us", by=list(INSTANCE), check_sortedness=False, coalesce=False
    )
    after = found.with_columns(
        (pl.col("end_time_us") + 1).alias("after_us"),  # times are whole microseconds: later than p = at or after p + 1
        (pl.col("state") == EventType.SCHEDULE).fill_null(value=False).alias("is_running"),
    )
    return after.join_asof(
        ends, left_on="after_us", right_on="next_terminal_time_us", by=list(INSTANCE), strategy="forward",
        check_sortedness=False, coalesce=False,
    ).drop("after_us")  # fmt: skip


def running(found: pl.DataFrame) -> pl.DataFrame:
    """Rows whose instance runs at p."""
    return found.filter("is_running")


def terminal_timing(found: pl.DataFrame, *, cell: str) -> Gate:
    """Does a short or thinly sampled window (not its run's first) announce that the run ends within a minute?"""
    name = "terminal-timing"
    rows = running(found).filter(pl.col("start_time_us") > pl.col("run_start_us")).with_columns(
        (pl.col("next_terminal_time_us") - pl.col("end_time_us") <= MOMENT_US).fill_null(value=False).alias("ends"),
        (pl.col("end_time_us") - pl.col("start_time_us") < SHORT_RATIO * WINDOW_US).alias("short"),
        (pl.col("sample_rate") < FEW_SAMPLES).fill_null(value=False).alias("thin"),
    )  # fmt: skip
    if rows.height < MIN_ROWS:
        return too_few(name, rows.height, MIN_ROWS, of="rows inside runs", where=cell)
    full = rows.filter(~pl.col("short") & ~pl.col("thin"))["ends"]
    base = (int(full.sum()) + 1) / (full.len() + 1)  # one more, so that "never" does not make any lift infinite
    told = {mark: _tells(rows.filter(mark)["ends"]) for mark in ("short", "thin")}
    mark = max(told, key=lambda one: told[one] or 0.0)
    share = told[mark]
    figures = {"full_ratio": base, "short_ratio": told["short"], "thin_ratio": told["thin"], "rows": rows.height}
    if share is None:
        sentence = f"fewer than {MIN_ROWS} of {rows.height:,} windows inside runs are short or thinly sampled"
        return reported(name, 0.0, where=cell, sentence=sentence, figures=figures)
    limit = max(TELL_LIMIT, TELL_LIFT * base)
    kind = "shorter than 270 s" if mark == "short" else f"sampled at less than {FEW_SAMPLES} a second"
    return at_most(
        name, share, limit, where=cell, figures=figures,
        sentence=f"{written(share, 'ratio')} of windows {kind} are followed by an end within 60 s, "
        f"{written(base, 'ratio')} of full ones",
        cure="windows were cut where their run ended, so their length tells the future: rebuild them on the 300 s grid",
    )  # fmt: skip


def _tells(ends: pl.Series) -> float | None:
    return None if ends.len() < MIN_ROWS else float(ends.sum()) / ends.len()


def rows_after_end(found: pl.DataFrame, *, cell: str) -> Gate:
    """Rows whose window ends when their instance has ended: excluded as not_running, counted here."""
    told = found.drop_nulls("state")
    if told.height < MIN_ROWS:
        return too_few("rows-after-end", told.height, MIN_ROWS, of="rows with a state", where=cell)
    share = float((told["state"] != EventType.SCHEDULE).sum()) / told.height
    return at_most(
        "rows-after-end", share, AFTER_LIMIT, where=cell,
        sentence=f"{written(share, 'ratio')} of {told.height:,} task rows end after their run ended (excluded)",
        cure="events of later runs are missing, or times of usage and events are not on the same clock",
    )  # fmt: skip


def negative_sampling(found: pl.DataFrame, *, cell: str) -> Gate:
    """Windows that touch their successor in the same run: far from failures as often as near them?"""
    name = "negative-sampling"
    ordered = running(found).sort(*INSTANCE, "end_time_us")
    keys = [*INSTANCE, "run_start_us"]
    later = ordered.with_columns(pl.col("start_time_us").shift(-1).over(keys).alias("next_start_us")).drop_nulls(
        "next_start_us"
    )
    near = (pl.col("next_terminal_type") == EventType.FAIL) & (
        pl.col("next_terminal_time_us") - pl.col("end_time_us") <= NEAR_MIN * MINUTE_US
    )
    touching = later.select(
        near.fill_null(value=False).alias("near"),
        (pl.col("next_start_us") - pl.col("end_time_us") <= GAP_US).alias("touch"),
    )
    close, far = (touching.filter(pl.col("near") == side)["touch"] for side in (True, False))
    if close.len() < MIN_ROWS or far.len() < MIN_ROWS or not close.sum():
        reason = f"{close.len()} pairs of windows near failures, {far.len()} far from them, {MIN_ROWS} needed of each"
        return not_examined(name, reason, where=cell)
    shares = (float(far.sum()) / far.len(), float(close.sum()) / close.len())
    ratio = shares[0] / shares[1]
    return at_least(
        name, ratio, NEGATIVE_FLOOR, where=cell, unit="factor",
        figures={"far_ratio": shares[0], "near_ratio": shares[1]},
        sentence=f"{written(shares[0], 'ratio')} of windows touch the next one far from failures, "
        f"{written(shares[1], 'ratio')} within {NEAR_MIN} min before one",
        cure="rows without a failure were sampled before: rates and precision would be false; use the whole trace",
    )  # fmt: skip


def labelled_rows(
    found: pl.DataFrame, *, observed_until_us: int, failure_types: frozenset[EventType] = DEFAULT_FAILURES
) -> pl.DataFrame:  # fmt: skip
    """``windows_with_ends`` → the same rows with y_<m>, excluded_<m> by the label contract, for all horizons."""
    return labels(
        found.lazy(), horizons_min=HORIZONS_MIN, failure_types=failure_types, observed_until_us=observed_until_us
    ).collect()


def positive_rates(labelled: pl.DataFrame, *, cell: str, horizons: Sequence[int] = HORIZONS_MIN) -> Gate:
    """``labelled``: y_<m> (null where excluded) of a cell's rows → share of positives, by horizon."""
    name = "positive-rate"
    figures: dict[str, Any] = {}
    for horizon in horizons:
        y = labelled[f"y_{horizon}"].drop_nulls()
        figures[str(horizon)] = {"rows": y.len(), "positives": int(y.sum()), "ratio": float(y.mean() or 0.0)}  # type: ignore[arg-type]
    minutes = primary_horizon_min(horizons)
    primary = figures[str(minutes)]
    longest = figures[str(max(horizons))]
    if longest["positives"] == 0 and longest["rows"] < ENOUGH_ROWS:
        reason = f"no failure among {longest['rows']:,} rows, too few to say more"
        return not_examined(name, reason, where=cell)
    said = ", ".join(f"{horizon} min {written(one['ratio'], 'ratio')}" for horizon, one in figures.items())
    if longest["positives"] == 0:
        return Gate(
            name=name, standing=Standing.FAILED, where=cell, measured=0.0, figures=figures,
            sentence=f"no failure within {max(horizons)} min in any of {longest['rows']:,} rows",
            cure="check the failure types and the event shards: there is nothing to learn from this cell",
        )  # fmt: skip
    return at_most(
        name, primary["ratio"], TOO_MANY, where=cell, figures=figures,
        sentence=f"{said} (of {primary['rows']:,} rows at {minutes} min)",
        cure="real cells have 0.03–0.25 %: the failure types, or the rows, are not what they seem",
    )  # fmt: skip


def positive_rate_change(now: Gate, before: Mapping[str, Any] | None, *, source: str) -> Gate:
    """A cell's positive rate against the last build's (the JSON of its gate); chance alone never fails it."""
    name, horizon = "positive-rate-change", str(PRIMARY_HORIZON_MIN)
    old, new = (dict(one or {}).get(horizon) for one in ((before or {}).get("figures"), now.figures))
    if not old or not new:
        reason = "no earlier build to compare with" if not old else "no positive rate in this build"
        return not_examined(name, reason, where=now.where)
    if not old["ratio"] or not new["rows"]:
        return not_examined(name, "the earlier build had no positives", where=now.where)
    factor = new["ratio"] / old["ratio"]
    variance = old["ratio"] / max(1, old["rows"]) + old["ratio"] / max(1, new["rows"])  # ≈ p(1 - p)/n, p small
    chance = abs(new["ratio"] - old["ratio"]) <= CHANGE_SE * variance**0.5
    away = max(factor, 1 / factor) if factor > 0 else float("inf")
    sentence = (
        f"{written(new['ratio'], 'ratio')} at {horizon} min, {written(old['ratio'], 'ratio')} in {source}"
        f"{'' if not chance else '; the difference is within chance'}"
    )
    if chance:
        return reported(name, factor, where=now.where, unit="factor", sentence=sentence)
    return at_most(
        name, away, CHANGE_LIMIT, where=now.where, unit="factor", sentence=sentence, figures={"factor": factor},
        cure="find what changed (horizon, filters, repairs, shards) before comparing anything with the last build",
    )  # fmt: skip


def drift(labelled: pl.DataFrame, *, cell: str) -> Gate:
    """The positive rate at 15 min in the first and the second half of the trace: told, never failed."""
    y = f"y_{PRIMARY_HORIZON_MIN}"
    rows = labelled.drop_nulls(y)
    if rows.height < MIN_ROWS:
        return too_few("drift", rows.height, MIN_ROWS, of="labelled rows", where=cell)
    middle = (rows["end_time_us"].min() + rows["end_time_us"].max()) / 2  # type: ignore[operator]
    halves = [rows.filter(pl.col("end_time_us") <= middle)[y], rows.filter(pl.col("end_time_us") > middle)[y]]
    first, second = (float(half.mean() or 0.0) for half in halves)  # type: ignore[arg-type]
    return reported(
        "drift", second / first if first else None, where=cell, unit="factor",
        figures={"first_half_ratio": first, "second_half_ratio": second},
        sentence=f"positive at 15 min: {written(first, 'ratio')} in the first half of the trace, "
        f"{written(second, 'ratio')} in the second",
    )  # fmt: skip
