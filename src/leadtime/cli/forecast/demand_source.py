"""Where the demand to judge comes from: a file, or a query to a Prometheus server → a backtest's series.

Numpy and the client are imported when something is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadtime.cli.options import parse_instant, parse_server_url
from leadtime.sources.demand_file_options import DemandFileOptions

if TYPE_CHECKING:
    from leadtime.sources.prometheus_grid import Grid
    from leadtime.training.backtest.series import BacktestSeries

BUDGET_S = 300.0
_START_HELP = "The instant of number 0; with --prometheus the first minute, 28 days before --end if left out."

File = Annotated[Path | None, typer.Argument(metavar="[FILE]", help="CSV or Parquet; at most 200 MB, 5,000,000 rows.")]
Prometheus = Annotated[
    str | None,
    typer.Option(parser=parse_server_url, metavar="URL", help="Instead of FILE: a Prometheus server ..."),
]
Query = Annotated[str | None, typer.Option(metavar="PROMQL", help="... and the query of one demand series.")]
Start = Annotated[datetime | None, typer.Option(parser=parse_instant, metavar="TIME", help=_START_HELP)]
End = Annotated[
    datetime | None, typer.Option(parser=parse_instant, metavar="TIME", help="With --prometheus: now if left out.")
]
TokenFile = Annotated[Path | None, typer.Option(metavar="FILE", help="With --prometheus: sent as bearer token.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerQuery:
    """One series of a server, minutes of [start, end). ``end`` None: now; ``start`` None: as far as models look."""

    url: str
    query: str
    token_file: Path | None
    start: datetime | None
    end: datetime | None


def server_query(
    *, file: Path | None, prometheus: str | None, query: str | None, token_file: Path | None, start: datetime | None,
    end: datetime | None, columns: tuple[str | None, str | None],
) -> ServerQuery | None:  # fmt: skip
    """The server's series that was asked for, None for a file's. Raises typer.BadParameter for neither or both."""
    if (file is None) == (prometheus is None):
        raise typer.BadParameter("give a FILE, or --prometheus URL with --query: exactly one of the two")
    if prometheus is None:
        if None in columns:
            raise typer.BadParameter("FILE needs --time-column and --value-column")
        if query is not None or end is not None or token_file is not None:
            raise typer.BadParameter("--query, --end and --token-file are about a server: give --prometheus")
        return None
    if query is None:
        raise typer.BadParameter("--prometheus needs --query, such as --query 'sum(rate(http_requests_total[2m]))'")
    if columns != (None, None):
        raise typer.BadParameter("--time-column and --value-column are about a FILE")
    if start is not None and end is not None and end <= start:
        raise typer.BadParameter("--end is not after --start; swap them")
    return ServerQuery(url=prometheus, query=query, token_file=token_file, start=start, end=end)


def read_series(path: Path | None, file: DemandFileOptions | None, server: ServerQuery | None) -> "BacktestSeries":
    """The series of whichever was asked for.

    Raises BadDemandFile for a file that cannot be read; for a server WrongUse (promql-refused, promql-no-series,
    promql-raw-counter, backtest-no-series) and DependencyFailed (prometheus-unreachable, -denied, …).
    """
    if server is not None:
        return _of_server(server)
    from leadtime.sources.demand_file import read_demand
    from leadtime.training.backtest.series import from_file

    assert path is not None
    assert file is not None
    return from_file(read_demand(path, file), path.stem)


def _of_server(asked: ServerQuery) -> "BacktestSeries":
    from leadtime.domain.errors import WrongUse
    from leadtime.domain.refs import WorkloadRef
    from leadtime.domain.series import Unit
    from leadtime.domain.time_window import TimeWindow, rfc3339
    from leadtime.policy.schema import ForecastPolicy
    from leadtime.sources.prometheus import Ask
    from leadtime.sources.prometheus_demand import LAG_S, own_query
    from leadtime.sources.prometheus_options import PrometheusOptions
    from leadtime.sources.prometheus_sync import PrometheusDoor
    from leadtime.sources.prometheus_wire import TickBudget

    end = datetime.now(UTC) if asked.end is None else asked.end
    start = asked.start or end - timedelta(days=ForecastPolicy().max_history_days)
    lag_s = LAG_S if asked.end is None else 0.0  # a time the user names has passed
    query = own_query(WorkloadRef(namespace="query", name="1"), asked.query, Unit.REQUESTS_PER_S).query
    grid = Ask(query=query, window=TimeWindow(start=start, end=end), unit=Unit.REQUESTS_PER_S, lag_s=lag_s).grid(end)
    options = PrometheusOptions(url=asked.url, token_file=asked.token_file)
    with PrometheusDoor(options) as door:
        answer = door.run(door.server.range(query, grid, TickBudget(BUDGET_S), non_negative=True))
    for _, failure in answer.failed:  # of half a history nobody would know which half was judged
        raise failure.error(asked.url)
    lines = [line for line in answer.lines if line.known]
    if len(lines) == 1:
        return _trimmed(lines[0].values, grid, asked.query)
    wrong = f"it has {len(lines)} series" if lines else f"no series has a value from {rfc3339(start)} to {rfc3339(end)}"
    raise WrongUse(
        "backtest-no-series", f"reading {asked.query} at {options.shown}", wrong,
        "ask for one series that has values in the span, such as sum(rate(http_requests_total[2m]))",
    )  # fmt: skip


def _trimmed(given: Sequence[float | None], grid: "Grid", name: str) -> "BacktestSeries":
    """From the first known minute to the last; gaps between stay. A value at t is of the minute that ends there."""
    import numpy as np

    from leadtime.training.backtest.series import BacktestSeries

    values = np.array([np.nan if value is None else value for value in given], dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    first, last = int(known[0]), int(known[-1])
    return BacktestSeries(
        name=name, start_s=int(grid.start_s) + (first - 1) * grid.step_s, step_s=grid.step_s,
        values=values[first : last + 1],
    )  # fmt: skip
