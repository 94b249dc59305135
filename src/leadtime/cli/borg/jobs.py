"""``leadtime borg jobs``: a job-level trace (Slurm accounting, a pod list) → will a job fail, how long will it wait."""

from pathlib import Path
from typing import Annotated

import typer

from leadtime.cli.options import parse_folder
from leadtime.domain.jobs import DEFAULT_FAILURES, JobFormat, Outcome

EXAMPLE = (
    "\b\nExamples:\n  leadtime borg jobs sacct.txt --format sacct --time-zone Europe/Berlin --out run\n"
    "  leadtime borg jobs jobs.parquet --format mit --out run --json"
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="The accounts: sacct text, Parquet, or CSV.")]
_Format = Annotated[JobFormat, typer.Option("--format", help="Whose accounts they are.")]
_Out = Annotated[Path, typer.Option(parser=parse_folder, metavar="DIR", help="Where the run goes.")]
_Zone = Annotated[str | None, typer.Option(metavar="ZONE", help="Zone of sacct's times, such as Europe/Berlin.")]
_FAILURE_HELP = "A job that ends so has failed; may be repeated. failed, timeout and out_of_memory if left out."
_Failure = Annotated[list[Outcome] | None, typer.Option("--failure", metavar="OUTCOME", help=_FAILURE_HELP)]
_Queue = Annotated[bool, typer.Option("--queue-time/--no-queue-time", help="Also model how long a job waits.")]
_Seed = Annotated[int, typer.Option(help="Equal seeds give equal numbers.")]
_Json = Annotated[bool, typer.Option("--json", help="Print metrics.json on stdout.")]


def jobs(
    *, file: _File, form: _Format, out: _Out, time_zone: _Zone = None, failure: _Failure = None,
    queue_time: _Queue = True, seed: _Seed = 1, json: _Json = False,
) -> None:  # fmt: skip
    """Learn outcome and queue time from a job-level trace, against what each user's own past says."""
    from leadtime.cli.borg.extras import need
    from leadtime.cli.borg.progress import shown
    from leadtime.cli.console import stderr

    need("learning from jobs", "polars", "xgboost", "sklearn")
    from leadtime.training.jobs_run import run_jobs

    console = stderr()
    with shown(console) as progress:
        run = run_jobs(
            file, form, out, time_zone=time_zone, failing=frozenset(failure or DEFAULT_FAILURES),
            queue_time=queue_time, seed=seed, progress=progress,
        )  # fmt: skip
    if json:
        import json as to_text

        typer.echo(to_text.dumps(run.metrics, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        console.print(run.text, markup=False, soft_wrap=True, end="")
    console.print(f"written to {run.folder}", markup=False, soft_wrap=True)
