"""Page's sum: against itself written as a loop, and against what it must not see."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.domain.borg import INSTANCE_EVENTS, WINDOW_US
from leadtime.risk.features import change
from leadtime.risk.features.block import Block
from leadtime.risk.features.context import empty_context
from leadtime.risk.features.steps import lowest_before

STEPS = st.lists(st.integers(-50, 50), min_size=1, max_size=120)


@given(STEPS, st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_the_lowest_before_is_the_minimum_of_each_span(steps: list[int], rows: int, seed: int) -> None:
    total = np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)
    rng = np.random.default_rng(seed)
    oldest = np.array([max(0, i - int(rng.integers(0, rows))) for i in range(len(steps))])

    found = lowest_before(total, oldest, rows=rows)

    assert found.tolist() == [int(total[first : i + 2].min()) for i, first in enumerate(oldest)]


def block_of(ratios: list[float]) -> Block:
    """One task whose windows follow each other without a gap."""
    count = len(ratios)
    end = 600_000_000 + WINDOW_US * np.arange(1, count + 1)
    windows = pl.DataFrame(
        {
            "collection_id": [7] * count, "instance_index": [0] * count, "start_time_us": end - WINDOW_US,
            "end_time_us": end, "run_number": [1] * count, "is_running": [True] * count,
            "avg_cpu": [ratio / 2 for ratio in ratios], "request_cpu": [0.5] * count,
        }
    )  # fmt: skip
    events = pl.DataFrame(schema={column.name: getattr(pl, column.dtype) for column in INSTANCE_EVENTS})
    return Block(windows, events, empty_context())


def test_the_sum_is_pages_recursion_beside_the_level_of_each_moment() -> None:
    rng = np.random.default_rng(3)
    ratios = [0.5 + 0.1 * rng.standard_normal() for _ in range(30)] + [0.8] * 6
    expected, total = [], 0.0
    for at, ratio in enumerate(ratios):
        seen = np.array(ratios[: at + 1])
        away = np.clip((ratio - seen.mean()) / seen.std(), -4, 4) if len(seen) >= change.FEWEST_WINDOWS else None
        total = total if away is None else max(0.0, total + away - 1.0)
        expected.append(min(total, 16.0))

    found = change.cumulative("cpu", 1.0)(block_of(ratios))

    assert found == pytest.approx(expected, abs=0.01)


def test_a_level_that_has_moved_rises_and_noise_alone_hardly_does() -> None:
    rng = np.random.default_rng(4)
    noise = [0.5 + 0.1 * rng.standard_normal() for _ in range(100)]
    fast = change.cumulative("cpu", 1.0)

    assert fast(block_of([*noise, *([0.75] * 6)]))[-1] > change.HIGH
    assert (fast(block_of(noise)) >= change.HIGH).mean() < 0.02


def test_what_is_not_yet_known_adds_nothing() -> None:
    assert change.cumulative("cpu", 0.5)(block_of([0.1, 0.9, 0.9])).tolist() == [0.0, 0.0, 0.0]
