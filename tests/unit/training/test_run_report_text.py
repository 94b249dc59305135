"""What the text of a run says when more alerts a day find fewer failing runs."""

import pytest

from leadtime.training.run_report_text import recall_falls


@pytest.mark.parametrize(
    ("recall", "falls"),
    [
        ({"10": 0.1, "100": 0.4, "1000": 0.2}, True),
        ({"10": 0.1, "100": 0.4, "1000": 0.4}, False),
        ({"10": None, "100": 0.4, "1000": None}, False),
        ({}, False),
    ],
)
def test_recall_that_falls_is_noticed(recall: dict[str, float | None], falls: bool) -> None:
    assert recall_falls({"recall_at_k": recall}) is falls
