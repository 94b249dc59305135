"""The options that say how a demand file is to be read, shared by every command that takes one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from leadtime.cli.options import parse_instant, parse_where
from leadtime.sources import demand_file_options as kinds
from leadtime.sources.demand_file_options import DemandFileOptions

_ZONE_HELP = "Zone of times without an offset, such as Europe/Berlin; else UTC."

TimeColumn = Annotated[str, typer.Option(metavar="COL", help="Column of times.")]
ValueColumn = Annotated[str, typer.Option(metavar="COL", help="Column of demand.")]
OptionalTimeColumn = Annotated[str | None, typer.Option(metavar="COL", help="Column of times.")]
OptionalValueColumn = Annotated[str | None, typer.Option(metavar="COL", help="Column of demand.")]
TimeUnit = Annotated[kinds.TimeUnit | None, typer.Option(help="Times are numbers in this unit.")]
Start = Annotated[datetime | None, typer.Option(parser=parse_instant, metavar="TIME", help="The instant of number 0.")]
TimeZone = Annotated[str | None, typer.Option(metavar="ZONE", help=_ZONE_HELP)]
GroupBy = Annotated[str | None, typer.Option(metavar="COL", help="One series a value of this column ...")]
Aggregate = Annotated[kinds.Aggregate | None, typer.Option(help="... put together as their sum (if left out) or mean.")]
OnDuplicate = Annotated[kinds.OnDuplicate, typer.Option(help="Rows with equal times.")]
ValueUnit = Annotated[kinds.ValueUnit, typer.Option(help="Requests per second, or counted per minute.")]
Where = Annotated[list[str] | None, typer.Option(metavar="COL=VALUE", help="Keep such rows only; repeatable.")]


def file_options(
    *, time_column: str, value_column: str, time_unit: kinds.TimeUnit | None, start: datetime | None,
    time_zone: str | None, group_by: str | None, aggregate: kinds.Aggregate | None, on_duplicate: kinds.OnDuplicate,
    value_unit: kinds.ValueUnit, where: Sequence[str] | None,
) -> DemandFileOptions:  # fmt: skip
    """The options as one value. Raises typer.BadParameter for those that make no sense together."""
    if start is not None and time_unit is None:
        raise typer.BadParameter("--start is the instant of number 0: say the numbers' unit with --time-unit s or ms")
    return DemandFileOptions(
        time_column=time_column, value_column=value_column, time_unit=time_unit, start=start, time_zone=time_zone,
        group_by=group_by, aggregate=aggregate, on_duplicate=on_duplicate, value_unit=value_unit,
        where=parse_where(where or ()),
    )  # fmt: skip


def refuse_capacity(per_pod: float | None, unit: str = "") -> None:
    """Raise typer.BadParameter for a pod that serves nothing, or endlessly much: it cannot be scaled."""
    if per_pod is not None and not 0 < per_pod < float("inf"):
        raise typer.BadParameter(f"--capacity-per-pod is {per_pod:g}{unit and f' {unit}'}, must be above 0 and finite")
