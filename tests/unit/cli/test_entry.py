"""The command line: every mistake is one line and an exit code; help is light and has examples."""

import subprocess
import sys
from importlib.metadata import version

import pytest
import typer

from leadtime.cli import demo_run, entry, replay_run
from leadtime.cli.app import app
from leadtime.domain.errors import DependencyFailed, WrongUse

REPLAY = ["replay", "--demand", "d.csv", "--time-column", "t", "--value-column", "v", "--capacity-per-pod", "20"]
REPLAY += ["--scenario", "gpu-40min", "--out", "out"]


def command_lines() -> list[list[str]]:
    """Every command and group, as typed."""
    found = [[]]
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        found.append([name])
        found.extend([name, sub] for sub in getattr(command, "commands", {}))
    return found


def leaf_command_lines() -> list[list[str]]:
    """Every command that does something."""
    lines = command_lines()
    return [line for line in lines if line and not any(other[:-1] == line for other in lines if len(other) > 1)]


@pytest.mark.parametrize("line", command_lines(), ids=" ".join)
def test_help_exits_0(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run([*line, "--help"]) == 0
    assert "Usage: leadtime" in capsys.readouterr().out


@pytest.mark.parametrize("line", leaf_command_lines(), ids=" ".join)
def test_the_help_of_every_command_has_an_example_of_itself(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    entry.run([*line, "--help"])
    _, found, example = capsys.readouterr().out.partition("Example")
    assert found
    assert f"leadtime {' '.join(line)}" in example


@pytest.mark.parametrize("line", leaf_command_lines(), ids=" ".join)
def test_the_example_in_the_help_is_accepted_by_the_parser(
    line: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry.run([*line, "--help"])
    example = capsys.readouterr().out.partition("Example")[2].partition("\n")[2].replace("\\\n", " ")
    for text in filter(None, (one.strip() for one in example.splitlines())):
        words = text.split()
        assert words[0] == "leadtime"
        typer.main.get_command(app).make_context("leadtime", list(words[1:]), resilient_parsing=False)
        group = typer.main.get_command(app).commands[line[0]]  # type: ignore[attr-defined]
        leaf = group if len(line) == 1 else group.commands[line[1]]
        with leaf.make_context(line[-1], words[1 + len(line) :]) as context:
            assert context.params


def test_help_loads_neither_numpy_nor_the_simulator_nor_a_server() -> None:
    script = (
        "import sys\nfrom leadtime.cli import entry\n"
        "for line in (['--help'], ['demo', '--help'], ['replay', '--help'], ['policy', 'check', '--help']):\n"
        "    entry.run(line)\n"
        "heavy = {'numpy', 'polars', 'sqlalchemy', 'fastapi', 'starlette', 'uvicorn', 'jinja2', 'yaml', 'rich.console',"
        " 'cel_expr_python', 'leadtime.policy.schema', 'leadtime.simulate'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["replay"], "Missing option '--demand'"),
        (["nonsense"], "No such command 'nonsense'"),
        (["demo", "--nonsense"], "No such option"),
        (["demo", "--form", "steady"], "--form"),
        (["demo", "--port", "70000"], "--port"),
        (["demo", "--port", "8o"], "'--port': it must be a whole number;"),
        (["demo", "--speed", "0"], "'--speed': it must be at least 1;"),
        (["demo", "--form", "steady"], "'--form': 'steady' is not one of"),
        (["demo", "--headless"], "--out DIR"),
        (["demo", "--headless", "--out", ""], "'--out': it is empty; name a folder"),
        ([*REPLAY[:-1], ""], "'--out': it is empty; name a folder"),
        ([*REPLAY, "--start", "2026-03-02"], "say the numbers' unit with --time-unit"),
        ([*REPLAY, "--warm-up", "7 days"], "'7 days' is not a duration; write 7d"),
        ([*REPLAY, "--warm-up", "99999999d"], "longer than ten years"),
        ([*REPLAY, "--kill-at", "noon"], "'noon' is not a time; write it as 2026-03-02T06:05:00Z"),
        ([*REPLAY, "--where", "kind"], "'kind' is not COL=VALUE"),
        ([*REPLAY, "--capacity-per-pod", "0"], "must be above 0"),
        ([*REPLAY, "--capacity-per-pod", "nan"], "must be above 0"),
        ([*REPLAY, "--time-unit", "h"], "--time-unit"),
        (["policy", "check", "x.yaml", "--min", "9", "--max", "8"], "swap them"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else "",
)
def test_wrong_use_of_an_option_is_one_line_and_exit_2(
    line: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(line) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("leadtime: ")
    assert err.endswith("--help' [usage]\n")
    assert err.count("\n") == 1
    assert says in err


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["--version"]) == 0
    assert capsys.readouterr().out == f"leadtime {version('leadtime')}\n"


@pytest.mark.parametrize("line", [[], ["policy"]], ids=["leadtime", "leadtime policy"])
def test_without_a_command_the_help_is_shown(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(line) == 2
    assert "Commands:" in capsys.readouterr().err


def failing(error: BaseException):
    """A command body that raises."""

    def run(_options: object) -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (WrongUse("some-slug", "reading a\nfile", "it is bad", "mend it"), 2,
         "leadtime: reading a file: it is bad; mend it [some-slug]\n"),
        (DependencyFailed("far", "asking", "no answer", "wait"), 3, "leadtime: asking: no answer; wait [far]\n"),
        (KeyboardInterrupt(), 130, "leadtime: stopped [interrupted]\n"),
        (ZeroDivisionError("1/0"), 3,
         ("leadtime: a defect in leadtime: ZeroDivisionError: 1/0; "
          "please report it, with LEADTIME_DEBUG=1 set [defect]\n")),
    ],
    ids=["wrong use", "a dependency", "Ctrl-C", "a defect"],
)  # fmt: skip
def test_errors_become_one_line(
    error: BaseException, code: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("LEADTIME_DEBUG", raising=False)
    monkeypatch.setattr(demo_run, "run", failing(error))
    assert entry.run(["demo"]) == code
    assert capsys.readouterr().err == line


def test_a_defect_shows_its_traceback_when_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADTIME_DEBUG", "1")
    monkeypatch.setattr(demo_run, "run", failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        entry.run(["demo"])


def test_replay_hands_on_every_option(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(replay_run, "run", seen.append)
    more = (
        "--time-unit ms --start 2026-03-02 --time-zone Europe/Berlin --group-by g --aggregate mean --on-duplicate first"
    )
    last = "--value-unit per_minute --kill-at 2026-03-02T06:05:00+02:00 --warm-up 1h30m --seed 7 --where a=b=c --json"
    assert entry.run([*REPLAY, *more.split(), *last.split(), "--where", "kind=Generative Requests"]) == 0
    (options,) = seen
    assert options.file.where == (("a", "b=c"), ("kind", "Generative Requests"))
    assert (options.file.start.isoformat(), options.kill_at.isoformat()) == (
        "2026-03-02T00:00:00+00:00",
        "2026-03-02T04:05:00+00:00",
    )
    assert (options.warm_up.total_seconds(), options.seed, options.json) == (5400, 7, True)
    assert (options.file.time_unit, options.file.aggregate, options.file.on_duplicate) == ("ms", "mean", "first")
    assert (options.file.value_unit, options.capacity_per_pod_rps) == ("per_minute", 20)


def test_replay_warms_up_a_week_and_demo_plays_all_forms_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(replay_run, "run", seen.append)
    monkeypatch.setattr(demo_run, "run", seen.append)
    assert entry.run(REPLAY) == 0
    assert entry.run(["demo", "--headless", "--json"]) == 0
    assert seen[0].warm_up.days == 7
    assert seen[1].forms == ("recurring", "ramp", "sudden")
