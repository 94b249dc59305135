"""``leadtime borg generate``: a Borg-like trace with known truth, for tests of everything that reads such traces."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadtime.cli.options import parse_folder
from leadtime.domain.borg import Dialect

if TYPE_CHECKING:
    from rich.console import Console

    from leadtime.simulate.borg.generate import Generated
    from leadtime.simulate.borg.knobs import Knobs

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg generate --out borg_data/b --cell b --rows 2000000 --mu 1.5 --base-rate 0.01\n"
    "  leadtime borg generate --out trap --trap T5 --set lost=0.01 --dialect ndjson --json"
)
DATA_DIR, BESIDE, FIGURES = "LEADTIME_DATA_DIR", Path("../shared/data"), "borg-2019"

_Out = Annotated[Path | None, typer.Option(parser=parse_folder, metavar="DIR", help="Folder for shards and truth.")]
_Cell = Annotated[str | None, typer.Option(metavar="NAME", help="Which cell (default c).")]
_Rows = Annotated[int | None, typer.Option(min=1, metavar="N", help="Usage windows of tasks (default 100000).")]
_Mu = Annotated[float | None, typer.Option(help="Signal in standard deviations; 0 is the placebo (default 1.5).")]
_Rate = Annotated[
    float | None, typer.Option("--base-rate", metavar="R", help="Share of rows that fail within 15 min (default 0.01).")
]
_Dialect = Annotated[
    list[Dialect] | None, typer.Option(help="How shards are written (default parquet); several take turns.")
]
_Seed = Annotated[int | None, typer.Option(min=0, help="Which draw; equal seeds give equal bytes (default 0).")]
_Days = Annotated[int | None, typer.Option(min=1, max=31, help="Length of the trace (default 2).")]
_Shard = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Rows of a usage shard (default: at most 500000).")
]
_Trap = Annotated[list[str] | None, typer.Option(metavar="T1…T15", help="Put this fault into the trace; repeatable.")]
_Knobs = Annotated[Path | None, typer.Option(metavar="FILE.toml", help="Further knobs; options stand above it.")]
_Set = Annotated[list[str] | None, typer.Option("--set", metavar="KNOB=VALUE", help="One further knob; repeatable.")]
_Data = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Machine shapes and requests of 2019 (default: a summary).")
]
_List = Annotated[bool, typer.Option("--list-knobs", help="List every knob with its default, unit and reason.")]
_Json = Annotated[bool, typer.Option("--json", help="Print what was written as JSON on stdout.")]


def generate(
    *,
    out: _Out = None,
    cell: _Cell = None,
    rows: _Rows = None,
    mu: _Mu = None,
    base_rate: _Rate = None,
    dialect: _Dialect = None,
    seed: _Seed = None,
    days: _Days = None,
    rows_per_shard: _Shard = None,
    trap: _Trap = None,
    knobs: _Knobs = None,
    set_knobs: _Set = None,
    data: _Data = None,
    list_knobs: _List = False,
    json: _Json = False,
) -> None:
    """Write a Borg-like trace whose best possible failure forecast is known, in any dialect, with its truth."""
    from leadtime.cli.borg.extras import need

    need("generating a trace", "polars")
    if list_knobs:
        _list(json)
        return
    if out is None:
        raise typer.BadParameter("say where the trace goes with --out DIR")
    given = {
        "cell": cell, "rows": rows, "mu": mu, "base_rate": base_rate, "dialects": dialect, "seed": seed, "days": days,
        "rows_per_shard": rows_per_shard, "traps": trap,
    }  # fmt: skip
    named = {name: value for name, value in given.items() if value is not None}
    chosen = _chosen(knobs, {**_pairs(set_knobs or []), **named})
    _run(out, chosen, data, json)


def _pairs(texts: list[str]) -> dict[str, Any]:
    """``name=value`` texts; values as TOML reads them, or as text."""
    import tomllib

    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"--set {text}: write a knob as NAME=VALUE")
        try:
            found[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = value.strip()
    return found


def _chosen(path: Path | None, given: dict[str, Any]) -> "Knobs":
    """Knobs of the file with options above them."""
    from leadtime.domain.errors import BadTrace
    from leadtime.simulate.borg.knobs import from_toml

    text = ""
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise BadTrace(
                "knobs-unreadable", f"reading knobs from {path}", str(reason), "name a TOML file with --knobs"
            ) from None
    return from_toml(text, given)


def _figures(data: Path | None) -> Path | None:
    """The folder of the 2019 figures: as named, else in the data folder of the environment, else none."""
    from leadtime.domain.errors import BadTrace

    if data is not None:
        for folder in (data, data / FIGURES):
            if (folder / "machine_shapes.csv").is_file():
                return folder
        raise BadTrace(
            "shapes-unreadable", f"reading machine shapes in {data}", "there is no machine_shapes.csv",
            "name the folder that holds it, or leave --data out to draw from the built-in summary",
        )  # fmt: skip
    named = os.environ.get(DATA_DIR)
    folder = (Path(named) if named else BESIDE) / FIGURES
    return folder if folder.is_dir() else None


def _run(out: Path, knobs: "Knobs", data: Path | None, json: bool) -> None:
    from leadtime.cli.borg.progress import shown
    from leadtime.cli.console import stderr
    from leadtime.simulate.borg.generate import generate as write

    console = stderr()
    with shown(console) as progress:
        made = write(out, knobs, progress=progress, shapes_folder=_figures(data))
    truth = made.truth.read_text(encoding="utf-8")
    if json:
        import json as to_text

        found = {"folder": str(out), "files": [path.name for path in made.files], **to_text.loads(truth)}
        typer.echo(to_text.dumps(found, indent=2, allow_nan=False))
        return
    _say(console, made, truth)


def _say(console: "Console", made: "Generated", text: str) -> None:
    import json as to_text

    truth = to_text.loads(text)
    found = truth["horizons"]["15"]
    console.print(
        f"{made.rows:,} windows of tasks in {len(made.files)} files: {made.folder} (shapes: {truth['shapes']})",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    if found["average_precision"] is None:
        console.print("within 15 min: no failure in the labelled rows", markup=False)
        return
    console.print(
        f"within 15 min: {found['base_rate']:.3%} of {found['rows']:,} labelled rows fail; the best possible average "
        f"precision is {found['average_precision']:.3f} ± {found['average_precision_se']:.3f}, "
        f"from the newest window alone {found['memoryless_average_precision']:.3f}, by chance {found['base_rate']:.3f}",
        markup=False, soft_wrap=True,
    )  # fmt: skip


def _list(json: bool) -> None:
    """Every knob: on stdout as JSON, else as a table."""
    from rich.table import Table

    from leadtime.cli.console import stderr
    from leadtime.simulate.borg.knobs import described

    if json:
        import json as to_text

        rows = [dict(zip(("name", "default", "unit", "why"), row, strict=True)) for row in described()]
        typer.echo(to_text.dumps(rows, indent=2))
        return
    table = Table("knob", "default", "unit", "meaning")
    for name, default, unit, why in described():
        table.add_row(name, f"{default:g}", unit, why)
    stderr().print(table)
