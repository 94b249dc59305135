"""``leadtime forecast explain``: why the newest forecast of a series is what it is. The work is in ``explain_run``."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from leadtime.cli import demand_options
from leadtime.cli.forecast import model_options
from leadtime.cli.options import parse_duration, parse_instant
from leadtime.sources.demand_file_options import DemandFileOptions, OnDuplicate, ValueUnit

EXAMPLE = (
    "\b\nExample:\n  leadtime forecast explain mongo-01.csv --time-column timestamp \\\n"
    "    --value-column value --at 2018-05-04T05:50:00Z"
)

_File = Annotated[Path, typer.Argument(metavar="FILE", help="CSV or Parquet; at most 200 MB and 5,000,000 rows.")]
_AT_HELP = "Nothing later is read; the end of the file if left out."
_At = Annotated[datetime | None, typer.Option(parser=parse_instant, metavar="TIME", help=_AT_HELP)]
_Horizon = Annotated[
    timedelta | None, typer.Option(parser=parse_duration, metavar="DURATION", help="So far ahead; 10m if left out.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print the explanation as JSON on stdout.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRequest:
    """The command line as typed values; ``at`` None: the end of the file."""

    path: Path
    file: DemandFileOptions
    at: datetime | None
    horizon: timedelta
    models: tuple[str, ...] | None
    seed: int
    json: bool


def explain(
    *,
    file: _File,
    time_column: demand_options.TimeColumn,
    value_column: demand_options.ValueColumn,
    at: _At = None,
    horizon: _Horizon = None,
    models: model_options.Models = None,
    time_unit: demand_options.TimeUnit = None,
    start: demand_options.Start = None,
    time_zone: demand_options.TimeZone = None,
    group_by: demand_options.GroupBy = None,
    aggregate: demand_options.Aggregate = None,
    on_duplicate: demand_options.OnDuplicate = OnDuplicate.ERROR,
    value_unit: demand_options.ValueUnit = ValueUnit.RPS,
    where: demand_options.Where = None,
    seed: model_options.Seed = 0,
    json: _Json = False,
) -> None:
    """Say why the forecast at a time is what it is, and what would have to be true for more."""
    from leadtime.cli.forecast import explain_run

    options = demand_options.file_options(
        time_column=time_column, value_column=value_column, time_unit=time_unit, start=start, time_zone=time_zone,
        group_by=group_by, aggregate=aggregate, on_duplicate=on_duplicate, value_unit=value_unit, where=where,
    )  # fmt: skip
    asked = ExplainRequest(
        path=file, file=options, at=at, horizon=timedelta(minutes=10) if horizon is None else horizon,
        models=model_options.model_names(models), seed=seed, json=json,
    )  # fmt: skip
    explain_run.run(asked)
