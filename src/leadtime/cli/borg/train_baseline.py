"""``leadtime borg train-baseline``: features → a logistic regression beside its floors, in a run folder."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadtime.cli.options import parse_folder
from leadtime.training.workspace import Track

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leadtime.training.workspace import Workspace

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg train-baseline --clusters b,c,d,e,f,g --feature-profile baseline\n"
    "  leadtime borg train-baseline --features features --out run --unseen-cell none"
)
FOUND_EXIT = 1
NAME = "baseline"

_CLUSTERS_HELP = "Cells to train and test on; all that are there if left out."
_Clusters = Annotated[str | None, typer.Option("--clusters", "--cells", metavar="b,c", help=_CLUSTERS_HELP)]
_Profile = Annotated[Track, typer.Option("--feature-profile", help="Which track of features and folders.")]
_IN_HELP = "Folder make-forecaster-dataset wrote; the workspace's processed/PROFILE if left out."
_Features = Annotated[
    Path | None, typer.Option("--features", "--in", parser=parse_folder, metavar="DIR", help=_IN_HELP)
]
_OUT_HELP = "Folder for the run; the workspace's reports/PROFILE/baseline if left out."
_Out = Annotated[Path | None, typer.Option(parser=parse_folder, metavar="DIR", help=_OUT_HELP)]
_UNSEEN_HELP = "Cell held out of training; the last of several if left out, none: no cell is."
_Unseen = Annotated[str | None, typer.Option("--unseen-cell", metavar="CELL", help=_UNSEEN_HELP)]
_TRUTH_HELP = "truth_rows.parquet of a generated trace, or a folder with some below; BORG_DATA_DIR's if left out."
_Truth = Annotated[Path | None, typer.Option(metavar="PATH", help=_TRUTH_HELP)]
_Seed = Annotated[int, typer.Option(min=0, help="Equal seeds give equal numbers.")]
_Allow = Annotated[list[str] | None, typer.Option(metavar="GATE", help="Accept this failed gate; may be repeated.")]
_Json = Annotated[bool, typer.Option("--json", help="Print metrics.json on stdout.")]


def train_baseline(
    *, clusters: _Clusters = None, feature_profile: _Profile = Track.BASELINE, features: _Features = None,
    out: _Out = None, unseen_cell: _Unseen = None, truth: _Truth = None, seed: _Seed = 0, allow: _Allow = None,
    json: _Json = False,
) -> None:  # fmt: skip
    """Train and measure the baseline (exit 1 when a gate failed)."""
    import os

    from leadtime.cli.borg.extras import need
    from leadtime.cli.console import stderr

    need("training the baseline", "polars", "sklearn")
    from leadtime.cli.borg.progress import shown
    from leadtime.training.baseline import BaselineOptions, of_cells
    from leadtime.training.baseline import train_baseline as train
    from leadtime.training.layout import lay_out
    from leadtime.training.run_report_text import metrics_text
    from leadtime.training.sampling import open_features
    from leadtime.training.workspace import workspace

    places, console = workspace(os.environ), stderr()
    folder = features or places.features(feature_profile)
    data = open_features(folder)
    cells = of_cells(data, names(clusters)).cells
    options = BaselineOptions(
        features=folder, out=out or places.report(feature_profile, NAME), cells=cells,
        model_folder=(out / "model") if out else places.model(feature_profile, NAME),
        config=(out / "settings.json") if out else places.config(feature_profile, NAME),
        unseen_cell=_unseen(unseen_cell, cells), seed=seed, allow=tuple(allow or ()),
        truth=_truth(truth, places, cells, data.manifest),
    )  # fmt: skip
    if out is None:
        lay_out(places)
    with shown(console) as progress:
        metrics = train(options, progress)
    console.print(metrics_text(metrics), markup=False, soft_wrap=True, end="")
    console.print(f"\nwritten: {options.out}", markup=False, soft_wrap=True)
    _finish(metrics, json)


def names(text: str | None) -> tuple[str, ...]:
    """``b,c`` → cells, each once, in the order given."""
    return tuple(dict.fromkeys(part.strip() for part in (text or "").split(",") if part.strip()))


def _unseen(asked: str | None, cells: tuple[str, ...]) -> str | None:
    if asked is None:
        return cells[-1] if len(cells) > 1 else None
    return None if asked == "none" else asked


def _truth(
    asked: Path | None, places: "Workspace", cells: tuple[str, ...], data: "Mapping[str, Any]"
) -> tuple[Path, ...]:  # fmt: skip
    """Truth files: as asked for, else those beside the shards of these cells (generated data have them)."""
    if asked is not None and asked.is_file():
        return (asked,)
    if asked is not None:
        found = tuple(sorted(asked.rglob("truth_rows.parquet")))
        if not found:
            raise typer.BadParameter(f"--truth {asked}: there is no truth_rows.parquet below it")
        return found
    return truth_beside(places, cells, data)


def truth_beside(places: "Workspace", cells: tuple[str, ...], data: "Mapping[str, Any]") -> tuple[Path, ...]:
    """Truth files beside the shards of ``cells``; none where ``data`` (forecaster.json) has other labels than they."""
    if data.get("delay_s") or data.get("failure_types", ["FAIL"]) != ["FAIL"]:
        return ()
    folders = [places.data, *(places.data / cell for cell in cells)]
    files = (folder / "truth" / "truth_rows.parquet" for folder in folders)
    return tuple(file for file in files if file.exists())


def _finish(metrics: "Mapping[str, Any]", json: bool) -> None:
    if json:
        import json as to_text

        typer.echo(to_text.dumps(metrics, indent=2, allow_nan=False))
    if not metrics["usable"]:
        raise typer.Exit(FOUND_EXIT)
