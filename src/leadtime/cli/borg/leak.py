"""``leadtime borg leak``: does anything in a forecaster data set know the future?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadtime.cli.options import parse_folder

if TYPE_CHECKING:
    from rich.console import Console

    from leadtime.training.leak_battery import LeakReport

EXAMPLE = "\b\nExamples:\n  leadtime borg leak\n  leadtime borg leak features --in windows --horizon 60 --json"
FOUND_EXIT = 1
SHOWN = 5

_FEATURES_HELP = "Folder make-forecaster-dataset wrote; BORG_XGBOOST_WORKSPACE/processed/baseline if left out."
_Features = Annotated[Path | None, typer.Argument(parser=parse_folder, metavar="[FEATURES]", help=_FEATURES_HELP)]
_IN_HELP = "Folder of the windows they were made from; BORG_PROCESSED_DIR if left out."
_In = Annotated[Path | None, typer.Option("--in", parser=parse_folder, metavar="DIR", help=_IN_HELP)]
_HORIZON_HELP = "Minutes, of the probes that learn; 15 if left out."
_Horizon = Annotated[int | None, typer.Option(min=1, metavar="MINUTES", help=_HORIZON_HELP)]
_Seed = Annotated[int, typer.Option(min=0, help="Which draw; equal seeds find the same.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON on stdout.")]


def leak(
    *, features: _Features = None, source: _In = None, horizon: _Horizon = None, seed: _Seed = 0, json: _Json = False
) -> None:
    """Look for the future in a forecaster data set (exit 1 when something is found, each finding by name)."""
    import os

    from leadtime.cli.borg.extras import need
    from leadtime.cli.console import stderr

    need("looking for leaks", "polars", "xgboost")
    from leadtime.cli.borg.progress import shown
    from leadtime.training.leak_battery import run_battery
    from leadtime.training.workspace import Track, workspace

    places, console = workspace(os.environ), stderr()
    with shown(console) as progress:
        report = run_battery(
            features or places.features(Track.BASELINE), source or places.windows, horizon_min=horizon, seed=seed,
            progress=progress,
        )  # fmt: skip
    if json:
        import json as to_text

        typer.echo(to_text.dumps(report.to_json(), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _show(console, report)
    if report.findings:
        raise typer.Exit(FOUND_EXIT)


def _show(console: "Console", report: "LeakReport") -> None:
    """Findings first, a line each; then what every probe looked at."""
    for finding in report.findings:
        console.print(f"found {finding}", markup=False, soft_wrap=True)
    future, again, learned = (report.probes[name] for name in ("future", "reproduced", "learning"))
    lines = [
        f"future: {future['rows']:,} windows, everything after {len(future['instants_us'])} instants made up anew",
        f"reproduced: {again['rows']:,} rows made again from the windows",
    ]
    if learned["examined"]:
        best = ", ".join(f"{name} {ap:.4f}" for name, ap in list(learned["single_feature_ap"].items())[:SHOWN])
        found, shuffled = learned["all_features"]["ap"], learned["label_shuffle"]
        base, placebo = learned["base_rate"], learned["placebo"]["ap"]
        lines.append(
            f"{report.horizon_min} min: AP of all features {found:.4f}, base rate {base:.4f}, other collections"
        )
        lines.append(f"best alone: {best}")
        lines.append(
            f"labels shuffled in collections: {shuffled['ap']:.4f}; their own rates find {shuffled['most']:.4f}"
        )
        lines.append(f"a random column: {placebo:.4f}")
    else:
        lines.append(f"{report.horizon_min} min: too few failures in {learned['rows']:,} rows to learn from")
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    verdict = f"{len(report.findings)} found" if report.findings else "nothing found"
    console.print(f"{report.profile} features, data hash {report.data_hash}: {verdict}", markup=False, soft_wrap=True)
