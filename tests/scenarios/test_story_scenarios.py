"""Every scenario file is played; a failed expectation is told in the file's own words."""

from pathlib import Path

import pytest

from leadtime.domain.errors import BadScenario
from leadtime.testing import scenario_runner

FILES = sorted(Path(__file__).parent.glob("*.scenario"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_scenario_holds(file: Path) -> None:
    assert scenario_runner.run(file.read_text(encoding="utf-8")) == []


def test_the_three_questions_of_story_b_are_among_them() -> None:
    assert {"risk_before_failure", "low_demand", "queue_before_power_saving"} <= {file.stem for file in FILES}


def test_an_expectation_that_does_not_hold_is_told_with_what_was_decided() -> None:
    text = FILES[0].read_text(encoding="utf-8").split("\nat ")[0]
    failed = scenario_runner.run(text + "\nat 04:30: expect decision workload:serving/chat SetFloor\n")
    assert len(failed) == 1
    assert "decided nothing because" in failed[0]


def test_a_line_that_is_no_statement_is_named() -> None:
    with pytest.raises(BadScenario, match="line 2 of the scenario: 'at noon: lunch' is no statement"):
        scenario_runner.parse("# comment\nat noon: lunch\n")
