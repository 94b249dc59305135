"""The floor an on-call person would guess by: known at p, per collection, for an hour."""

import polars as pl
import pytest

from leadtime.risk import floors

FAILED_AT = 5_000_000_000
HOUR = floors.HOUR_US


def at(p: int, *, collection: int = 1, cell: str = "b", cause: str = "self") -> float:
    """The floor of a sibling's row at p, of a collection whose other task failed at FAILED_AT."""
    rows = pl.DataFrame(
        {
            "cell": ["b", cell], "collection_id": [1, collection], "instance_index": [0, 1],
            "start_time_us": [0, 0], "end_time_us": [FAILED_AT - 7, p],
            "next_terminal_time_us": [FAILED_AT, None], "next_terminal_cause": [cause, None],
        }
    )  # fmt: skip
    return float(floors.failed_in_last_hour(rows)[1])


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        pytest.param(FAILED_AT - 1, 0.0, id="a failure after p is not known"),
        pytest.param(FAILED_AT, 1.0, id="one at exactly p is"),
        pytest.param(FAILED_AT + HOUR - 1, 1.0, id="for an hour"),
        pytest.param(FAILED_AT + HOUR, 0.0, id="and no longer"),
    ],
)
def test_a_failure_counts_from_its_instant_for_an_hour(p, expected):
    assert at(p) == expected


def test_only_failures_of_the_same_collection_in_the_same_cell_count():
    assert at(FAILED_AT + 1, collection=2) == 0.0
    assert at(FAILED_AT + 1, cell="c") == 0.0
    assert at(FAILED_AT + 1, cause="preemption") == 0.0


def test_rows_keep_their_order():
    rows = pl.DataFrame(
        {
            "cell": "b", "collection_id": [2, 1, 1], "instance_index": [0, 0, 1],
            "end_time_us": [FAILED_AT + 5, FAILED_AT + 9, FAILED_AT - 7],
            "next_terminal_time_us": [None, None, FAILED_AT], "next_terminal_cause": [None, None, "self"],
        }
    )  # fmt: skip
    assert floors.failed_in_last_hour(rows).to_list() == [0.0, 1.0, 0.0]
