"""``leadtime borg score``: a published model and rows of features → scores; a folder at once, or a stream."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from leadtime.sources.risk_model import OnnxRiskModel
    from leadtime.training.score import Scored

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg score models/advanced/may features --out scores.parquet\n"
    "  leadtime borg score models/advanced/may - --drivers 3"
)
STREAM = "-"

_Model = Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="A published model's folder.")]
_From = Annotated[
    str, typer.Argument(metavar="FEATURES", help="A features folder, one of its files, or - for JSON lines on stdin.")
]
_OUT_HELP = (
    "Parquet, or JSON lines of a stream; "
    "scores.parquet or .ndjson in BORG_XGBOOST_WORKSPACE/runtime/PROFILE if left out."
)
_Out = Annotated[Path | None, typer.Option(metavar="FILE", help=_OUT_HELP)]
_Single = Annotated[bool, typer.Option("--one-at-a-time", help="Score row after row, as a live loop does.")]
_Drivers = Annotated[int, typer.Option(min=0, help="Leading features to name for each row of a stream.")]
_Threads = Annotated[int, typer.Option(min=1, help="Threads of onnxruntime.")]
_Json = Annotated[bool, typer.Option("--json", help="Print a summary on stdout.")]


def score(
    *, model_dir: _Model, features: _From, out: _Out = None, one_at_a_time: _Single = False, drivers: _Drivers = 0,
    threads: _Threads = 2, json: _Json = False,
) -> None:  # fmt: skip
    """Score rows of features with a published model.

    The base rate told beside scores is the model's own: the share of failures, within the horizon risk_score means, in
    the block it was calibrated on; not that of the rows scored.
    """
    import time

    from leadtime.cli.borg.extras import need
    from leadtime.cli.borg.progress import shown
    from leadtime.cli.console import stderr

    need("scoring", "polars", "onnxruntime")
    from leadtime.sources.risk_model import load_risk_model
    from leadtime.training.score import score_files, score_stream, sources_of

    stream, console = features == STREAM, stderr()
    model = load_risk_model(model_dir, threads=1 if stream or one_at_a_time else threads)
    target = out or _target(model, stream)
    begun = time.monotonic()
    if stream:
        scored = score_stream(model, sys.stdin, target, drivers=drivers)
    else:
        with shown(console) as progress:
            scored = score_files(
                model, sources_of(Path(features)), target, one_at_a_time=one_at_a_time, progress=progress
            )
    rate = scored.rows / max(time.monotonic() - begun, 1e-9)
    console.print(
        f"{scored.rows:,} rows scored with {model.name}, {rate:,.0f} rows/s; highest {scored.highest:.4f} "
        f"(base rate of the model's calibration block {scored.base_rate:.4%}); written: {target}",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    if json:
        _print(model.name, scored, target)


def _print(name: str, scored: "Scored", target: Path) -> None:
    import json

    said = {"model": name, "rows": scored.rows, "highest": scored.highest, "base_rate": scored.base_rate}
    typer.echo(json.dumps({**said, "out": str(target)}, indent=2))


def _target(model: "OnnxRiskModel", stream: bool) -> Path:
    """Live scores lie in the runtime folder of the model's track."""
    import os

    from leadtime.training.workspace import Track, workspace

    track = Track(str(model.card.get("profile", Track.BASELINE.value)))
    return workspace(os.environ).part("runtime", track) / ("scores.ndjson" if stream else "scores.parquet")
