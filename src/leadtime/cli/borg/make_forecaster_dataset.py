"""``leadtime borg make-forecaster-dataset``: joined windows → labels, exclusions and features of one profile."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadtime.cli.borg.make_dataset import Where, executor_of, names_in
from leadtime.cli.options import parse_duration, parse_folder
from leadtime.training.workspace import Track

if TYPE_CHECKING:
    from rich.console import Console

    from leadtime.domain.borg import EventType
    from leadtime.training.forecaster_dataset import ForecasterDataset
    from leadtime.training.workspace import Workspace

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg make-forecaster-dataset --feature-profile baseline\n"
    "  leadtime borg make-forecaster-dataset --in windows --out features --cells b,c --feature-profile advanced"
)
HORIZONS = "5,15,30,45,60"
LONGEST_MIN = 1440

_IN_HELP = "Folder make-dataset wrote; BORG_PROCESSED_DIR if left out."
_In = Annotated[Path | None, typer.Option("--in", parser=parse_folder, metavar="DIR", help=_IN_HELP)]
_OUT_HELP = "Folder for the features; BORG_XGBOOST_WORKSPACE/processed/PROFILE if left out."
_Out = Annotated[Path | None, typer.Option(parser=parse_folder, metavar="DIR", help=_OUT_HELP)]
_Cells = Annotated[str | None, typer.Option(metavar="b,c", help="These cells only; all that are there if left out.")]
_PROFILE_HELP = "baseline: some of the task's own run; advanced: everything known at the window's end."
_Profile = Annotated[Track, typer.Option("--feature-profile", help=_PROFILE_HELP)]
_Horizons = Annotated[str, typer.Option(metavar="5,15", help="Minutes from the window's end.")]
_TYPES_HELP = "What counts as failure: FAIL, EVICT, FINISH, KILL, by name."
_Types = Annotated[str, typer.Option(metavar="FAIL", help=_TYPES_HELP)]
_DELAY_HELP = "Metrics arrive so late: labels count from the window's end + this; 0s if left out."
_Delay = Annotated[timedelta | None, typer.Option(parser=parse_duration, metavar="DURATION", help=_DELAY_HELP)]
_Executor = Annotated[Where, typer.Option(help="Where partitions are built.")]
_Workers = Annotated[int, typer.Option(min=1, help="Processes; each needs the memory of one partition.")]
_RAY_HELP = "Head node of a Ray cluster that shares both folders; a cluster of this machine if left out."
_Ray = Annotated[str | None, typer.Option(metavar="HOST:PORT", help=_RAY_HELP)]
_Allow = Annotated[list[str] | None, typer.Option(metavar="GATE", help="Accept this failed gate; may be repeated.")]
_Json = Annotated[bool, typer.Option("--json", help="Print forecaster.json on stdout.")]


def make_forecaster_dataset(
    *, source: _In = None, out: _Out = None, cells: _Cells = None, feature_profile: _Profile = Track.BASELINE,
    horizons: _Horizons = HORIZONS, failure_types: _Types = "FAIL", delay: _Delay = None,
    executor: _Executor = Where.LOCAL, workers: _Workers = 2, ray_address: _Ray = None, allow: _Allow = None,
    json: _Json = False,
) -> None:  # fmt: skip
    """Turn windows into labels and features of one profile (run again to resume)."""
    import os

    from leadtime.cli.borg.extras import need
    from leadtime.cli.console import stderr

    need("making features", "polars", *(["ray"] if executor is Where.RAY else []))
    from leadtime.cli.borg.progress import shown
    from leadtime.risk.features import Profile
    from leadtime.training.forecaster_dataset import make_forecaster_dataset as make
    from leadtime.training.workspace import workspace

    places, console = workspace(os.environ), stderr()
    with shown(console) as progress:
        made = make(
            source or places.windows, out or places.features(feature_profile), profile=Profile(feature_profile.value),
            cells=names_in(cells), horizons_min=minutes_in(horizons), failure_types=_event_types(failure_types),
            delay_us=0 if delay is None else int(delay.total_seconds()) * 1_000_000, allow=tuple(allow or ()),
            executor=executor_of(executor, workers, ray_address), progress=progress,
        )  # fmt: skip
    if out is None:
        _keep(places, feature_profile, made)
    _show(console, made)
    if json:
        import json as to_text

        typer.echo(to_text.dumps(made.manifest, indent=2, allow_nan=False))


def _keep(places: "Workspace", track: Track, made: "ForecasterDataset") -> None:
    """The run's settings, resolved, on the track's side of the workspace."""
    from leadtime.training.layout import keep_settings

    told = ("profile", "cells", "horizons_min", "failure_types", "delay_s", "allowed_gates", "data_hash")
    settings = {"command": "borg make-forecaster-dataset", **{name: made.manifest[name] for name in told}}
    keep_settings(places, "make-forecaster-dataset", settings, track)


def minutes_in(text: str) -> tuple[int, ...]:
    """``5,15`` → minutes, rising. Raises typer.BadParameter."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and 1 <= int(part) <= LONGEST_MIN for part in parts):
        raise typer.BadParameter(
            f"--horizons {text!r}: write whole minutes from 1 to {LONGEST_MIN}, such as {HORIZONS}"
        )
    return tuple(sorted({int(part) for part in parts}))


def _event_types(text: str) -> tuple["EventType", ...]:
    """``FAIL,EVICT`` → event types. Raises typer.BadParameter for what ends no run, or ends it in an unknown way."""
    from leadtime.domain.borg import TERMINAL, EventType

    known = {kind.name: kind for kind in sorted(TERMINAL - {EventType.LOST})}
    names = [name.strip().upper() for name in text.split(",") if name.strip()]
    if not names or any(name not in known for name in names):
        raise typer.BadParameter(f"--failure-types {text!r}: write one or more of {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names))


def _show(console: "Console", made: "ForecasterDataset") -> None:
    """Rows, exclusions and base rate by horizon, a line each."""
    told = made.manifest
    left = ", ".join(f"{count:,} {reason}" for reason, count in told["left_out"].items()) or "none"
    console.print(
        f"{told['rows']:,} rows of {told['rows_in']:,} windows in {len(told['partitions'])} partitions, "
        f"{len(told['features'])} features ({told['profile']}); left out: {left}",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    for minutes, positives in told["positives"].items():
        excluded = told["excluded"][minutes]
        labelled = told["rows_in"] - sum(excluded.values())
        why = "".join(f", {count:,} {reason}" for reason, count in excluded.items())
        rate = positives / labelled if labelled else 0.0
        console.print(
            f"{minutes} min: {positives:,} of {labelled:,} rows positive ({rate:.4%}){why}",
            markup=False,
            soft_wrap=True,
        )
    kept = f", {made.kept} partitions kept from an earlier run" if made.kept else ""
    console.print(f"{made.folder}: data hash {told['data_hash']}{kept}", markup=False, soft_wrap=True)
