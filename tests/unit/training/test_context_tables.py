"""Tables beside the features hold what the rows look at, and no more; the features come out the same."""

from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.borg import WINDOW_US
from leadtime.risk.features import Profile, context_from, feature_frame
from leadtime.risk.features.context import SLOT_SUMS, SLOTS_BACK, asked_slots, newest_slots
from leadtime.testing.borg_trace import Trace, small_trace
from leadtime.training import context_tables
from leadtime.training.context_tables import build_context, narrowed, read_context
from leadtime.training.dataset import make_dataset
from leadtime.training.executor import Local
from leadtime.training.progress import silent


def slots(*keys: tuple[int, int]) -> pl.DataFrame:
    rows = [{"machine_id": machine, "slot_us": slot * WINDOW_US, **dict.fromkeys(SLOT_SUMS, slot)}
            for machine, slot in sorted(keys)]  # fmt: skip
    return pl.DataFrame(rows)


def rows(*keys: tuple[int | None, int]) -> pl.DataFrame:
    return pl.DataFrame(
        [{"machine_id": machine, "end_time_us": end} for machine, end in keys],
        schema={"machine_id": pl.Int64, "end_time_us": pl.Int64},
    )


def test_a_row_sees_the_newest_slot_that_ended_by_its_instant_if_it_is_fresh() -> None:
    there = slots((1, 10), (1, 11), (1, 14), (2, 11))
    p = 12 * WINDOW_US + 7
    seen = newest_slots(there, asked_slots(rows((1, p), (2, (11 + SLOTS_BACK) * WINDOW_US), (None, p), (-1, p))))
    assert seen.select("machine_id", "slot_us").rows() == [(1, 11 * WINDOW_US)]
    edge = newest_slots(there, asked_slots(rows((2, (11 + SLOTS_BACK) * WINDOW_US - 1))))
    assert edge.select("machine_id", "slot_us").rows() == [(2, 11 * WINDOW_US)]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return small_trace(5, collections=14)


def features(trace: Trace, ids: pl.Series, context: object) -> pl.DataFrame:
    of = pl.col("collection_id").is_in(ids.implode())
    windows, events = trace.windows().filter(of).lazy(), trace.ordered_events().filter(of).lazy()
    return feature_frame(windows, events, context, profile=Profile.ADVANCED).collect()  # type: ignore[arg-type]


def test_features_do_not_change_when_the_context_is_narrowed_to_a_chunk(trace: Trace) -> None:
    windows = trace.windows()
    whole = context_from(
        windows.lazy(), trace.ordered_events().lazy(), collections=trace.collections, machines=trace.machines
    )
    narrower = 0
    for ids in windows["collection_id"].unique().sort().to_frame().iter_slices(3):
        chunk = windows.filter(pl.col("collection_id").is_in(ids["collection_id"].implode()))
        kept = narrowed(whole, chunk)
        narrower += kept.machine_slots.height < whole.machine_slots.height
        assert features(trace, ids["collection_id"], kept).equals(features(trace, ids["collection_id"], whole))
    assert narrower > 0


def test_tables_on_disk_are_the_same_in_pieces_of_any_length_and_give_the_same_features(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace.write(tmp_path / "raw")
    made = make_dataset(tmp_path / "raw", tmp_path / "windows", rows_per_partition=100, allow=("null-rate",))
    parts = [f"part-{number:04d}" for number in range(len(made.cells[0].partitions))]
    assert len(parts) > 1
    written = []
    for pieces in (1, 24):
        monkeypatch.setattr(context_tables, "PIECE_US", 24 * 3_600_000_000 // pieces)
        out = tmp_path / f"context-{pieces}"
        build_context(tmp_path / "windows" / "cell=b", parts, out, inputs="x", run=Local(), note=silent)
        written.append({path.name: path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()})
    assert written[0] == written[1]
    windows = trace.windows()
    whole = context_from(
        windows.lazy(), trace.ordered_events().lazy(), collections=trace.collections, machines=trace.machines
    )
    ids = windows["collection_id"].unique()
    assert features(trace, ids, read_context(out, windows)).equals(features(trace, ids, whole))
