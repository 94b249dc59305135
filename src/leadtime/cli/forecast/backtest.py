"""``leadtime forecast backtest``: a demand series → a scoreboard of models. The work is in ``backtest_run``."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from leadtime.cli import demand_options
from leadtime.cli.forecast import demand_source, model_options
from leadtime.cli.forecast.demand_source import ServerQuery
from leadtime.cli.options import parse_duration, parse_folder
from leadtime.sources.demand_file_options import DemandFileOptions, OnDuplicate, ValueUnit

EXAMPLE = (
    "\b\nExamples:\n  leadtime forecast backtest mongo-01.csv --time-column timestamp \\\n"
    "    --value-column value --horizon 10m --lead 40m --out out\n"
    "  leadtime forecast backtest rps.csv --time-column t --value-column rps --models ets --json\n"
    "  leadtime forecast backtest --prometheus http://prometheus:9090 \\\n"
    "    --query 'sum(rate(http_requests_total[2m]))' --lead 40m"
)
FIVE_MINUTES, TEN_MINUTES, FORTY_MINUTES = timedelta(minutes=5), timedelta(minutes=10), timedelta(minutes=40)

_Horizon = Annotated[
    timedelta | None, typer.Option(parser=parse_duration, metavar="DURATION", help="Judged so far ahead; 10m.")
]
_LEAD_HELP = "Time from asking to a ready pod: cost is judged so far ahead; 40m."
_Lead = Annotated[timedelta | None, typer.Option(parser=parse_duration, metavar="DURATION", help=_LEAD_HELP)]
_CAPACITY_HELP = "Demand one pod serves; a hundredth of the peak if left out."
_Capacity = Annotated[float | None, typer.Option(metavar="RPS", help=_CAPACITY_HELP)]
_TestShare = Annotated[
    float, typer.Option(min=0.05, max=0.95, metavar="RATIO", help="The last share of the time is the test.")
]
_LSTM_HELP = "With the recurrent network bi_lstm, which takes minutes (extra lstm)."
_Lstm = Annotated[bool, typer.Option("--lstm", help=_LSTM_HELP)]
_Budget = Annotated[
    timedelta | None, typer.Option(parser=parse_duration, metavar="DURATION", help="Most time for one fit; 5m.")
]
_LABELS_HELP = "Surges a person marked: CSV with columns start and end."
_Labels = Annotated[Path | None, typer.Option(metavar="FILE", help=_LABELS_HELP)]
_LabelColumn = Annotated[str | None, typer.Option(metavar="COL", help="... or a column of FILE, 1 where labelled.")]
_Out = Annotated[
    Path | None, typer.Option(parser=parse_folder, metavar="DIR", help="Folder for backtest.json and backtest.html.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print backtest.json on stdout.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRequest:
    """The command line as typed values; ``capacity_per_pod`` None: peak/100. ``server`` None: ``path`` is read."""

    path: Path | None
    file: DemandFileOptions | None
    server: ServerQuery | None
    horizon: timedelta
    lead: timedelta
    capacity_per_pod: float | None
    test_share: float
    models: tuple[str, ...] | None
    lstm: bool
    labels: Path | None
    label_column: str | None
    fit_budget: timedelta
    seed: int
    out: Path | None
    json: bool


def backtest(
    *,
    file: demand_source.File = None, prometheus: demand_source.Prometheus = None,
    query: demand_source.Query = None, time_column: demand_options.OptionalTimeColumn = None,
    value_column: demand_options.OptionalValueColumn = None, horizon: _Horizon = None, lead: _Lead = None,
    capacity_per_pod: _Capacity = None, test_share: _TestShare = 0.4, models: model_options.Models = None,
    lstm: _Lstm = False, labels: _Labels = None, label_column: _LabelColumn = None, fit_budget: _Budget = None,
    time_unit: demand_options.TimeUnit = None, start: demand_source.Start = None,
    end: demand_source.End = None, token_file: demand_source.TokenFile = None,
    time_zone: demand_options.TimeZone = None, group_by: demand_options.GroupBy = None,
    aggregate: demand_options.Aggregate = None, on_duplicate: demand_options.OnDuplicate = OnDuplicate.ERROR,
    value_unit: demand_options.ValueUnit = ValueUnit.RPS, where: demand_options.Where = None,
    seed: model_options.Seed = 0, out: _Out = None, json: _Json = False,
) -> None:  # fmt: skip
    """Judge every model on a demand series, beside naive and ceiling, and pick a champion or none."""
    from leadtime.cli.forecast import backtest_run

    _refuse_senseless(capacity_per_pod, labels, label_column)
    server = demand_source.server_query(
        file=file, prometheus=prometheus, query=query, token_file=token_file, start=start, end=end,
        columns=(time_column, value_column),
    )  # fmt: skip
    options = None
    if time_column is not None and value_column is not None:
        options = demand_options.file_options(
            time_column=time_column, value_column=value_column, time_unit=time_unit, start=start, time_zone=time_zone,
            group_by=group_by, aggregate=aggregate, on_duplicate=on_duplicate, value_unit=value_unit, where=where,
        )  # fmt: skip
    elif label_column is not None:
        raise typer.BadParameter("--label-column is a column of FILE; with --prometheus use --labels")
    asked = BacktestRequest(
        path=file, file=options, server=server, horizon=TEN_MINUTES if horizon is None else horizon,
        lead=FORTY_MINUTES if lead is None else lead,
        capacity_per_pod=capacity_per_pod, test_share=test_share, models=model_options.model_names(models),
        lstm=lstm, labels=labels, label_column=label_column, seed=seed, out=out, json=json,
        fit_budget=FIVE_MINUTES if fit_budget is None else fit_budget,
    )  # fmt: skip
    backtest_run.run(asked)


def _refuse_senseless(capacity_per_pod: float | None, labels: Path | None, label_column: str | None) -> None:
    """Raise typer.BadParameter for a pod that serves nothing or all, and for two kinds of labels at once."""
    demand_options.refuse_capacity(capacity_per_pod)
    if labels is not None and label_column is not None:
        raise typer.BadParameter("--labels and --label-column exclude each other")
