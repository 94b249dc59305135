"""Bad files through the command itself: one line on stderr, exit 2, and nothing written, not even the folder."""

from pathlib import Path

import pytest

from leadtime.cli import entry

HEAD = "t,v\n2026-03-02T00:00:00Z,1\n"


def replay(tmp_path: Path, *more: str) -> int:
    """Replay demand.csv into out."""
    line = ["replay", "--demand", str(tmp_path / "demand.csv"), "--time-column", "t", "--value-column", "v"]
    line += ["--capacity-per-pod", "20", "--scenario", "gpu-40min", "--out", str(tmp_path / "out"), *more]
    return entry.run(line)


@pytest.mark.parametrize(
    ("text", "more", "slug"),
    [
        ("t,w\n1,2\n", (), "demand-column-missing"),
        (HEAD + "2026-03-02T00:01:00Z,many\n", (), "demand-not-a-number"),
        (HEAD + "soon,1\n", (), "demand-time-unreadable"),
        ("", (), "demand-empty"),
        ("t,v\n", (), "demand-header-only"),
        (HEAD + "2026-03-02T00:01:00Z,-1\n", (), "demand-negative"),
        ("t,v\n\0\n", (), "demand-not-text"),
        (HEAD + "2026-03-01T00:01:00Z,1\n", (), "demand-time-order"),
        (HEAD + "2026-03-02T00:00:00Z,1\n", (), "demand-time-twice"),
        (HEAD, ("--time-zone", "Mars"), "demand-time-zone"),
        (HEAD, ("--warm-up", "7d"), "demand-shorter-than-warm-up"),
        (HEAD, ("--scenario", "nowhere"), "scenario-not-found"),
        (HEAD, ("--policy", "nowhere.yaml"), "policy-file-absent"),
        (HEAD, ("--risk-model", "nowhere"), "risk-model-without-failures"),
        (HEAD, ("--scenario", "gpu-failures", "--risk-model", "nowhere"), "risk-model-absent"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.count("-") and "\n" not in value else "",
)
def test_a_bad_file_is_one_line_exit_2_and_nothing_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, text: str, more: tuple[str, ...], slug: str
) -> None:
    (tmp_path / "demand.csv").write_text(text)
    assert replay(tmp_path, *more) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith(f"[{slug}]\n")
    assert [path.name for path in tmp_path.iterdir()] == ["demand.csv"]


def test_the_cure_for_a_long_warm_up_is_one_that_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"2026-03-02T00:{minute:02}:00Z,1\n" for minute in range(30))
    (tmp_path / "demand.csv").write_text("t,v\n" + rows)
    assert replay(tmp_path, "--warm-up", "1h") == 2
    assert "covers 30m and the warm-up takes 1h; shorten it, for example --warm-up 10m" in capsys.readouterr().err
