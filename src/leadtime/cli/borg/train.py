"""``leadtime borg train``: features → a measured and published failure model, or a refusal that says why."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leadtime.cli.options import parse_folder
from leadtime.training.workspace import Track

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leadtime.training.booster import Settings
    from leadtime.training.train import Trained, TrainOptions
    from leadtime.training.workspace import Workspace

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg train --feature-profile advanced --name may\n"
    "  leadtime borg train --features features --truth trace/truth/truth_rows.parquet --defaults --seed 3"
)
NO_CELL = "none"

_FEATURES_HELP = "Folder make-forecaster-dataset wrote; BORG_XGBOOST_WORKSPACE/processed/PROFILE if left out."
_Features = Annotated[Path | None, typer.Option(parser=parse_folder, metavar="DIR", help=_FEATURES_HELP)]
_Profile = Annotated[Track, typer.Option("--feature-profile", help="Which track's folders are used.")]
_Name = Annotated[str, typer.Option(metavar="NAME", help="Name of the model and of its run folder.")]
_Settings = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A tuned.json; config/PROFILE/tuned.json if there is one.")
]
_Defaults = Annotated[bool, typer.Option("--defaults", help="Leave tuned settings aside.")]
_Negatives = Annotated[
    float | None,
    typer.Option(min=1e-6, max=1, metavar="RATIO", help="Share of negatives kept; what memory allows if left out."),
]
_UNSEEN_HELP = f"Cell kept out of training; the last of several if left out, '{NO_CELL}' for no cell."
_Unseen = Annotated[str | None, typer.Option(metavar="CELL", help=_UNSEEN_HELP)]
_TRUTH_HELP = (
    "truth_rows.parquet of a generated trace; may be repeated; those in BORG_DATA_DIR if this and --features are "
    "left out. The optimum is reported and guards against leaks."
)
_Truth = Annotated[list[Path] | None, typer.Option(metavar="FILE", help=_TRUTH_HELP)]
_Allow = Annotated[list[str] | None, typer.Option(metavar="GATE", help="Accept this failed gate; may be repeated.")]
_Horizons = Annotated[
    str | None,
    typer.Option(metavar="15,30", help="Learn these horizons alone (minutes); all of the features if left out."),
]
_Sparse = Annotated[
    bool, typer.Option("--leave-out-sparse", help="Leave out horizons with too few failures instead of refusing all.")
]
_Seed = Annotated[int, typer.Option(min=0, help="Seed of sampling, splitting and boosting.")]
_Threads = Annotated[int | None, typer.Option(min=1, help="Threads of XGBoost; all cores if left out.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the card on stdout.")]


def train(
    *, features: _Features = None, feature_profile: _Profile = Track.BASELINE, name: _Name = "forecaster",
    settings: _Settings = None, defaults: _Defaults = False, negatives: _Negatives = None, unseen_cell: _Unseen = None,
    truth: _Truth = None, allow: _Allow = None, horizons: _Horizons = None, leave_out_sparse: _Sparse = False,
    seed: _Seed = 0, threads: _Threads = None, json: _Json = False,
) -> None:  # fmt: skip
    """Train, calibrate, measure and publish a failure model for every horizon (run again to resume)."""
    import os

    from leadtime.cli.borg.extras import need
    from leadtime.cli.borg.make_forecaster_dataset import minutes_in
    from leadtime.cli.borg.progress import shown
    from leadtime.cli.borg.train_baseline import truth_beside
    from leadtime.cli.console import stderr

    need("training a failure model", "polars", "xgboost", "sklearn", "onnxmltools", "onnxruntime")
    from leadtime.training.sampling import open_features
    from leadtime.training.train import TrainOptions
    from leadtime.training.train import train as run
    from leadtime.training.workspace import workspace

    places, console = workspace(os.environ), stderr()
    folder = features or places.features(feature_profile)
    data = open_features(folder)
    known = truth or (truth_beside(places, data.cells, data.manifest) if features is None else ())
    chosen, named = _settings(settings, defaults, places, feature_profile)
    step = f"train-{name}"
    options = TrainOptions(
        features=folder, name=name, settings=chosen, settings_from=named, seed=seed, fraction=negatives,
        model_folder=places.model(feature_profile, name), run_folder=places.report(feature_profile, name),
        journal=places.journal(feature_profile, step), config=places.config(feature_profile, step),
        threads=threads or os.cpu_count() or 1, truth=tuple(known), allow=tuple(allow or ()),
        unseen_cell=_cell(unseen_cell, data.cells), horizons_min=() if horizons is None else minutes_in(horizons),
        leave_out_sparse=leave_out_sparse,
    )  # fmt: skip
    with shown(console) as progress:
        trained = run(options, progress)
    _show(options, trained)
    if json:
        _print(trained.card)


def _print(card: "Mapping[str, Any]") -> None:
    import json

    typer.echo(json.dumps(card, indent=2))


def _settings(path: Path | None, defaults: bool, places: "Workspace", track: Track) -> tuple["Settings", str]:
    """Settings and where they come from: a file, the track's tuned.json, or the defaults."""
    from leadtime.training.booster import Settings
    from leadtime.training.tune_result import read_tuned

    if path is not None and defaults:
        raise typer.BadParameter("--settings and --defaults exclude each other")
    tuned = path or places.config(track, "tuned")
    if defaults or (path is None and not tuned.exists()):
        return Settings(), "defaults"
    return read_tuned(tuned)[0], tuned.name


def _cell(asked: str | None, cells: tuple[str, ...]) -> str | None:
    if asked == NO_CELL:
        return None
    return asked or (cells[-1] if len(cells) > 1 else None)


def _show(options: "TrainOptions", trained: "Trained") -> None:
    """A line a horizon: AP beside base rate and lift; then where things lie."""
    from leadtime.cli.console import stderr
    from leadtime.training.evaluation import summary
    from leadtime.training.model_card import left_out

    console = stderr()
    for minutes in trained.metrics["horizons"]:
        console.print(summary(trained.metrics, int(minutes)), markup=False, soft_wrap=True)
    for line in left_out(trained.card):
        console.print(line, markup=False, soft_wrap=True)
    console.print(
        f"{trained.card['raised_to_stay_monotone_ratio']:.2%} of test rows were raised so that none falls with "
        f"the horizon; ONNX and XGBoost differ by at most {trained.parity.worst:.1e} on {trained.parity.rows:,} rows",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    console.print(f"model: {options.model_folder}\nrun: {options.run_folder}", markup=False, soft_wrap=True)
