"""``leadtime forecast explain``: what it says where little is known, and what it refuses in its own options."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from leadtime.cli import entry

START = datetime(2026, 3, 2, tzinfo=UTC)
STEP, DAY = timedelta(minutes=10), 144


def explained(folder: Path, values: list[str], capsys: pytest.CaptureFixture[str], *options: str, code: int = 0) -> str:
    """What the command said on a file with one value every ten minutes."""
    rows = [f"{(START + number * STEP).isoformat()},{value}" for number, value in enumerate(values)]
    path = folder / "rps.csv"
    path.write_text("\n".join(["t,v", *rows, ""]), encoding="utf-8")
    columns = ["--time-column", "t", "--value-column", "v", "--models", "last_value"]
    assert entry.run(["forecast", "explain", str(path), *columns, *options]) == code
    return " ".join(capsys.readouterr().err.split())


def day_of_work() -> list[str]:
    return [str(100 + number % 7) for number in range(3 * DAY)]


def test_a_level_that_is_hours_old_is_not_called_the_last_hours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = explained(tmp_path, [*day_of_work(), *[""] * 12], capsys)
    assert "the last value known; nothing is known of the last 2h" in told
    assert "in the last hour" not in told


def test_from_a_level_of_zero_no_share_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = explained(tmp_path, [*day_of_work(), *["0"] * 12], capsys)
    assert "demand must rise from 0, so no share can be given" in told
    assert "inf" not in told


def test_a_horizon_of_zero_is_refused_and_not_taken_for_the_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = explained(tmp_path, day_of_work(), capsys, "--horizon", "0m", code=2)
    assert "--horizon is 0 s" in told


def test_too_short_a_series_is_told_in_the_options_of_this_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = explained(tmp_path, day_of_work()[:20], capsys, code=2)
    assert "3h20m of history are too short" in told
    assert "--test-share" not in told
