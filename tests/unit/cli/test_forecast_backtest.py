"""``leadtime forecast backtest``: a file or a server, one of the two, with what belongs to it."""

from pathlib import Path

import pytest

from leadtime.cli import entry

SERVER = ["--prometheus", "http://127.0.0.1:9", "--query", "sum(rps)"]
COLUMNS = ["--time-column", "t", "--value-column", "v"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "exactly one of the two"),
        (["demand.csv", *SERVER], "exactly one of the two"),
        (["demand.csv"], "FILE needs --time-column and --value-column"),
        (["demand.csv", "--time-column", "t"], "FILE needs --time-column and --value-column"),
        (["demand.csv", *COLUMNS, "--query", "sum(rps)"], "give --prometheus"),
        (["demand.csv", *COLUMNS, "--end", "2026-03-02T00:00:00Z"], "give --prometheus"),
        (["--prometheus", "http://127.0.0.1:9"], "--prometheus needs --query"),
        ([*SERVER, "--value-column", "v"], "are about a FILE"),
        ([*SERVER, "--label-column", "v"], "use --labels"),
        ([*SERVER, "--start", "2026-03-02T00:00:00Z", "--end", "2026-03-01T00:00:00Z"], "swap them"),
    ],
)
def test_options_that_do_not_go_together_are_named(
    capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert entry.run(["forecast", "backtest", *options]) == 2
    told = capsys.readouterr().err
    assert said in " ".join(told.split())


@pytest.mark.parametrize("option", ["--horizon", "--lead"])
def test_a_duration_of_zero_is_refused_and_not_taken_for_the_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    file = tmp_path / "demand.csv"
    rows = (f"2026-03-{2 + i // 1440:02d}T{i % 1440 // 60:02d}:{i % 60:02d}:00Z,{100 + i % 7}" for i in range(3 * 1440))
    file.write_text("t,v\n" + "\n".join(rows) + "\n", encoding="utf-8")
    assert entry.run(["forecast", "backtest", str(file), *COLUMNS, option, "0m"]) == 2
    assert f"{option} is 0 s" in capsys.readouterr().err
