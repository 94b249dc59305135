"""One trace for all tests of this folder, and ways to read a written trace without the readers under test."""

import hashlib
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from leadtime.domain.borg import AFTER_TRACE_US, TERMINAL, EventType
from leadtime.simulate.borg.generate import Generated, Knobs, generate

KEY = ["collection_id", "instance_index"]


class Reading:
    """Functions on written traces (Parquet with structs)."""

    @staticmethod
    def table(trace: Generated, name: str) -> pl.DataFrame:
        return pl.concat([pl.read_parquet(path) for path in trace.files if path.name.startswith(name)])

    @staticmethod
    def truth(trace: Generated) -> dict[str, Any]:
        return json.loads(trace.truth.read_text())

    @staticmethod
    def digest(folder: Path) -> dict[str, str]:
        return {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    @staticmethod
    def trace_end(trace: Generated) -> int:
        return int(json.loads((trace.folder / "trace.json").read_text())["observed_until_us"])

    @staticmethod
    def labelled_by_events(trace: Generated, minutes: int) -> pl.DataFrame:
        """The contract (0013) read off the written events alone."""
        until = Reading.trace_end(trace)
        events = (
            Reading.table(trace, "instance_events")
            .filter(pl.col("collection_type") == 0, pl.col("time") < AFTER_TRACE_US)
            .select("collection_id", pl.col("instance_index").cast(pl.Int32), "time", "type")
            .unique()
        )
        ends = events.filter(pl.col("type").is_in([int(one) for one in TERMINAL]))
        starts = events.filter(pl.col("type") == int(EventType.SCHEDULE))
        rows = pl.read_parquet(trace.truth_rows).select(*KEY, "start_time_us", "end_time_us").sort("end_time_us")
        last_start = starts.sort("time").select(*KEY, pl.col("time").alias("started"), "time")
        last_end = ends.sort("time").select(*KEY, pl.col("time").alias("ended"), "time")
        next_end = ends.sort("time").with_columns(pl.col("time").alias("next"), before=pl.col("time") - 1)
        joined = rows
        for frame, on, strategy in (
            (last_start, "time", "backward"), (last_end, "time", "backward"),
            (next_end.select(*KEY, "next", pl.col("type").alias("next_type"), "before"), "before", "forward"),
        ):  # fmt: skip
            joined = joined.join_asof(
                frame,
                left_on="end_time_us",
                right_on=on,
                by=KEY,
                strategy=strategy,
                check_sortedness=False,
                coalesce=True,
            )
        h = pl.col("end_time_us") + minutes * 60_000_000
        running = pl.col("started").is_not_null() & (pl.col("ended").is_null() | (pl.col("ended") <= pl.col("started")))
        soon = pl.col("next") <= h
        excluded = (
            pl.when(~running).then(pl.lit("not_running"))
            .when(h > until).then(pl.lit("censored"))
            .when(soon & (pl.col("next_type") == int(EventType.LOST))).then(pl.lit("lost"))
        )  # fmt: skip
        y = (soon & (pl.col("next_type") == int(EventType.FAIL))).fill_null(value=False).cast(pl.Int8)
        return (
            joined.with_columns(excluded=excluded)
            .with_columns(y=pl.when(pl.col("excluded").is_null()).then(y))
            .sort(*KEY, "end_time_us", "start_time_us")
        )


@pytest.fixture(scope="session")
def reading() -> type[Reading]:
    """Ways to read a written trace."""
    return Reading


@pytest.fixture(scope="session")
def knobs() -> Knobs:
    """Many failures, many lost ends, a short trace."""
    return Knobs(rows=80_000, seed=3, base_rate=0.02, lost=0.02, days=1, largest_share=0.01)


@pytest.fixture(scope="session")
def trace(tmp_path_factory: pytest.TempPathFactory, knobs: Knobs) -> Generated:
    """A clean trace of these knobs."""
    return generate(tmp_path_factory.mktemp("trace") / "c", knobs)
