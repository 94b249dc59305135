"""A file's own words for its events against its codes, and what a joined slice can and cannot tell."""

from typing import Any

import polars as pl

from leadtime.domain.borg import EventType
from leadtime.risk.gates import Gate, Standing, not_examined, reported, written


def text_contradiction(codes: pl.DataFrame, *, where: str) -> Gate:
    """A file's own words against its codes. ``codes``: type (int), text (name of the event as the file has it).

    Names are compared in upper case; rows without text say nothing. One contradiction is enough: a name column is
    written by a program, so it is wrong in all rows of a code or in none.
    """
    name = "enum-proof"
    names = {kind.value: kind.name for kind in EventType}
    told = codes.drop_nulls().with_columns(
        pl.col("text").str.strip_chars().str.to_uppercase(),
        pl.col("type").replace_strict(names, default="?", return_dtype=pl.String).alias("name"),
    )
    if told.height == 0:
        return not_examined(name, "the text column is empty", where=where)
    wrong = told.filter(pl.col("text") != pl.col("name"))
    share = wrong.height / told.height
    figures: dict[str, Any] = {"rows": told.height, "contradicting_ratio": share}
    if wrong.height == 0:
        sentence = f"the event names agree with the v3 codes in all {told.height:,} rows"
        return reported(name, share, where=where, sentence=sentence, figures=figures)
    pairs = wrong.group_by("type", "name", "text").len().sort("len", "type", "text", descending=[True, False, False])
    said = ", ".join(
        f"code {code} ({right}) is called {text} in {rows:,} rows"
        for code, right, text, rows in pairs.head(8).iter_rows()
    )
    return Gate(
        name=name, standing=Standing.FAILED, where=where, measured=share, sentence=
        f"the event names contradict the codes in {written(share, 'ratio')} of {told.height:,} rows: {said}",
        cure="do not train on this file: neither its names nor what was derived from them can be trusted",
        figures=figures | {"pairs": pairs.rows()},
    )  # fmt: skip


def slice_evidence(rows: pl.DataFrame) -> tuple[str, dict[str, float]]:
    """How a joined slice behaves under its codes and under its names, in words and figures.

    ``rows``: type, text, time_us, start_time_us, end_time_us. If names were right, FAIL would end usage; if codes are
    right, usage ends before FINISH.
    """
    share = {
        "fail_at_time_0_ratio": _share(rows, pl.col("text") == "FAIL", pl.col("time_us") == 0),
        "usage_after_fail_ratio": _share(rows, pl.col("text") == "FAIL", pl.col("start_time_us") > pl.col("time_us")),
        "usage_ends_before_code_6_ratio": _share(
            rows, pl.col("type") == EventType.FINISH, pl.col("end_time_us") < pl.col("time_us")
        ),
        "event_inside_window_ratio": _share(
            rows, pl.lit(value=True), pl.col("time_us").is_between("start_time_us", "end_time_us", closed="left")
        ),
    }
    figures = {name: value for name, value in share.items() if value is not None}
    words = {
        "fail_at_time_0_ratio": "of rows called FAIL have time 0 (the state at the start)",
        "usage_after_fail_ratio": "of rows called FAIL have their usage after the event",
        "usage_ends_before_code_6_ratio": "of rows with code 6 (FINISH) have their usage before the event",
    }
    return ", ".join(
        f"{written(figures[name], 'ratio')} {said}" for name, said in words.items() if name in figures
    ), figures


def _share(rows: pl.DataFrame, among: pl.Expr, hit: pl.Expr) -> float | None:
    chosen = rows.filter(among)
    return None if chosen.height == 0 else float(chosen.select(hit.mean()).item() or 0.0)


def separate_events(rows: pl.DataFrame, *, where: str) -> Gate:
    """A joined slice holds one event a row and no table of events: it cannot carry a label. Always fails."""
    _, figures = slice_evidence(rows)
    inside = figures.get("event_inside_window_ratio", 0.0)
    return Gate(
        name="separate-events", standing=Standing.FAILED, where=where, measured=inside, figures=figures, sentence=
        f"one joined table of {rows.height:,} rows: the event of a row lies inside its window in "
        f"{written(inside, 'ratio')}, and what the next end is cannot be known from it",
        cure="use the trace's own instance_events and instance_usage shards; a slice cannot be labelled",
    )  # fmt: skip
