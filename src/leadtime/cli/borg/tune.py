"""``leadtime borg tune``: features → settings better than the defaults, or "no gain"."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadtime.cli.options import parse_duration, parse_folder
from leadtime.training.workspace import Track

if TYPE_CHECKING:
    from leadtime.training.tune_result import Tuned

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg tune --feature-profile advanced --trials 40\n"
    "  leadtime borg tune --features features --trials 200 --timeout 2h --seed 3"
)
_FEATURES_HELP = "Folder make-forecaster-dataset wrote; BORG_XGBOOST_WORKSPACE/processed/PROFILE if left out."
_Features = Annotated[Path | None, typer.Option(parser=parse_folder, metavar="DIR", help=_FEATURES_HELP)]
_Profile = Annotated[Track, typer.Option("--feature-profile", help="Which track's folders are used.")]
_Trials = Annotated[
    int, typer.Option(min=2, help="Finished trials there are to be in the end; the first is the defaults.")
]
_Timeout = Annotated[
    timedelta | None, typer.Option(parser=parse_duration, metavar="DURATION", help="Begin no trial after this time.")
]
_HORIZON_HELP = "Horizon (minutes) that is tuned for; its settings serve all."
_Horizon = Annotated[int, typer.Option(min=1, metavar="MINUTES", help=_HORIZON_HELP)]
_Rows = Annotated[int, typer.Option(min=1000, help="Negatives kept of the training block, by a stable hash.")]
_Allow = Annotated[list[str] | None, typer.Option(metavar="GATE", help="Accept this failed gate; may be repeated.")]
_Seed = Annotated[int, typer.Option(min=0, help="Seed of the search, the sampling and the split.")]
_Threads = Annotated[int | None, typer.Option(min=1, help="Threads of XGBoost; all cores if left out.")]
_Json = Annotated[bool, typer.Option("--json", help="Print what was found on stdout.")]


def tune(
    *, features: _Features = None, feature_profile: _Profile = Track.BASELINE, trials: _Trials = 40,
    timeout: _Timeout = None, horizon: _Horizon = 15, negatives: _Rows = 300_000, allow: _Allow = None,
    seed: _Seed = 0, threads: _Threads = None, json: _Json = False,
) -> None:  # fmt: skip
    """Search for better training settings on rolling folds (run again to continue where it stopped)."""
    import os

    from leadtime.cli.borg.extras import need
    from leadtime.cli.borg.progress import shown
    from leadtime.cli.console import stderr

    need("tuning a failure model", "polars", "xgboost", "optuna")
    from leadtime.training.tune import TuneOptions, tune_features
    from leadtime.training.tune_result import as_json
    from leadtime.training.workspace import workspace

    places, console = workspace(os.environ), stderr()
    options = TuneOptions(
        features=features or places.features(feature_profile), allow=tuple(allow or ()),
        journal=places.journal(feature_profile, "tune") / "journal.log", out=places.config(feature_profile, "tuned"),
        trials=trials, timeout_s=None if timeout is None else timeout.total_seconds(), seed=seed,
        threads=threads or os.cpu_count() or 1, horizon_min=horizon, most_negatives=negatives,
    )  # fmt: skip
    with shown(console) as progress:
        tuned = tune_features(options, progress)
    console.print(_sentence(tuned), markup=False, soft_wrap=True)
    console.print(f"written: {options.out}", markup=False, soft_wrap=True)
    if json:
        import json as to_text

        typer.echo(to_text.dumps(as_json(tuned), indent=2))


def _sentence(tuned: "Tuned") -> str:
    gain = tuned.gain
    said = f"{gain.mean:+.4f} average precision over the defaults (95 %: {gain.low:+.4f} to {gain.high:+.4f})"
    counted = f"{tuned.finished} trials finished, {tuned.pruned} stopped early"
    if tuned.better:
        return f"gain: {said} on the block no fold has seen; trial {tuned.best_trial} of {counted}"
    return f"no gain: {said}; the defaults are kept; {counted}"
