"""Every fault that can be put into a trace on purpose is in its files, and the truth still holds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from leadtime.domain.borg import EventType
from leadtime.simulate.borg.generate import Knobs, generate
from leadtime.simulate.borg.knobs import Trap

pytestmark = pytest.mark.slow  # every test draws traces of its own


@pytest.mark.parametrize("traps", [(Trap.T4,), (Trap.T5,), (Trap.T6,), (Trap.T3,), (Trap.T14,), (Trap.T15,)])
def test_truth_equals_the_events_under_every_trap_of_time(
    tmp_path: Path, traps: tuple[Trap, ...], reading: Any, knobs: Knobs
) -> None:
    trapped = generate(tmp_path / "c", replace(knobs, rows=8_000, traps=traps))
    rows, read = pl.read_parquet(trapped.truth_rows), reading.labelled_by_events(trapped, 15)
    assert rows["excluded_15"].equals(read["excluded"], null_equal=True)
    assert rows["y_15"].equals(read["y"], null_equal=True)


def test_t4_puts_ends_on_the_edges_of_the_horizon(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    trapped = generate(tmp_path / "c", replace(knobs, rows=8_000, traps=(Trap.T4,), on_grid=1.0))
    fails = reading.table(trapped, "instance_events").filter(pl.col("type") == int(EventType.FAIL))
    after = fails["time"] % 300_000_000
    assert (after == 0).mean() > 0.15  # at p + H of an earlier row
    assert (after == 1).mean() > 0.15  # at p + 1 us


def test_t1_leaks_the_future_into_usage(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    usage = reading.table(generate(tmp_path / "c", replace(knobs, rows=5_000, traps=(Trap.T1,))), "instance_usage")
    assert {"event_count", "final_type", "last_event_time", "max_request_cpu"} <= set(usage.columns)
    assert usage["event_count"].null_count() == 0


def test_t2_writes_one_shard_in_milliseconds(tmp_path: Path, knobs: Knobs) -> None:
    made = generate(tmp_path / "c", replace(knobs, rows=5_000, traps=(Trap.T2,)))
    lengths = [
        pl.read_parquet(path).select(pl.col("end_time") - pl.col("start_time")).to_series().mode().item()
        for path in made.files
        if path.name.startswith("instance_usage")
    ]
    assert lengths[1] == 300_000
    assert {*lengths[:1], *lengths[2:]} == {300_000_000}


def test_t8_counts_event_types_as_2011_did(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    clean = reading.table(generate(tmp_path / "a", replace(knobs, rows=5_000)), "instance_events")
    old = reading.table(generate(tmp_path / "b", replace(knobs, rows=5_000, traps=(Trap.T8,))), "instance_events")
    assert old["type"].max() <= 8
    assert (old["type"] == 3).sum() == (clean["type"] == int(EventType.FAIL)).sum()


def test_t11_hides_a_third_of_the_machines(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    usage = reading.table(generate(tmp_path / "c", replace(knobs, rows=5_000, traps=(Trap.T11,))), "instance_usage")
    assert (usage["machine_id"].is_null() | (usage["machine_id"] == -1)).mean() == pytest.approx(0.35, abs=0.03)


def test_t12_gives_two_cells_the_same_ids(tmp_path: Path, knobs: Knobs) -> None:
    def ids(cell: str, *traps: Trap) -> set[int]:
        made = generate(tmp_path / f"{cell}{len(traps)}", replace(knobs, rows=2_000, cell=cell, traps=traps))
        return set(pl.read_parquet(made.truth_rows)["collection_id"])

    assert not ids("a") & ids("b")
    assert ids("a", Trap.T12) & ids("b", Trap.T12)


def test_t15_prevents_failures_and_says_that_the_score_is_not_exact(tmp_path: Path, reading: Any, knobs: Knobs) -> None:
    acted = reading.truth(generate(tmp_path / "c", replace(knobs, rows=60_000, traps=(Trap.T15,))))
    assert acted["score_is_exact"] is False
    assert acted["horizons"]["15"]["base_rate"] < 0.97 * acted["horizons"]["15"]["mean_score"]
