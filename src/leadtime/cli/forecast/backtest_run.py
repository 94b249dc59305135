"""What ``leadtime forecast backtest`` does: file or query → backtest → table, JSON, and two files in ``--out``."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leadtime.cli import console
from leadtime.cli.borg.progress import shown
from leadtime.cli.forecast.backtest import BacktestRequest
from leadtime.cli.forecast.demand_source import read_series
from leadtime.cli.output import OutputFolder
from leadtime.policy.schema import Policy
from leadtime.scorecard.surge_episodes import Episode
from leadtime.sources.demand_file import ValueUnit, read_demand
from leadtime.training.backtest import labels
from leadtime.training.backtest.field import field
from leadtime.training.backtest.plan import BacktestOptions
from leadtime.training.backtest.report import encode, to_json
from leadtime.training.backtest.run import Backtest, backtest
from leadtime.training.backtest.series import from_file
from leadtime.training.demand_lstm.trainee import NAME as LSTM

PRODUCTS = ("backtest.json", "backtest.html")


def run(asked: BacktestRequest) -> None:
    """Judge the file's series and say what came of it; files appear when everything is there, or not at all."""
    out = console.stderr()
    with nullcontext() if asked.out is None else OutputFolder(asked.out, products=PRODUCTS) as staged:
        result = _judge(asked, out)
        fields = to_json(result)
        if staged is not None:
            from leadtime.training.backtest.page import build_html

            (staged / "backtest.html").write_text(build_html(result, fields), encoding="utf-8")
            (staged / "backtest.json").write_text(encode(fields), encoding="utf-8")
    if asked.json:
        typer.echo(encode(fields), nl=False)
    else:
        _show(out, fields)
    if asked.out is not None:
        out.print(f"written: {asked.out}/{', '.join(PRODUCTS)}", markup=False, soft_wrap=True)


def _judge(asked: BacktestRequest, out: Console) -> Backtest:
    policy = Policy()
    series = read_series(asked.path, asked.file, asked.server)
    models, lstm = _models(asked)
    options = BacktestOptions(
        horizon_s=int(asked.horizon.total_seconds()), lead_s=int(asked.lead.total_seconds()),
        per_pod=asked.capacity_per_pod, target_ratio=policy.scaling.target_utilisation_ratio,
        level_ratio=policy.forecast.level_ratio, test_share=asked.test_share, models=models, seed=asked.seed,
        fit_budget_s=asked.fit_budget.total_seconds(),
    )  # fmt: skip
    with shown(out) as progress:
        return backtest(series, field(policy.forecast, lstm=lstm), options, progress, _labels(asked))


def _models(asked: BacktestRequest) -> tuple[tuple[str, ...] | None, bool]:
    """The models asked for, None for all; and whether the recurrent network is one of them."""
    if asked.models is None:
        return None, asked.lstm
    models = (*asked.models, *((LSTM,) if asked.lstm else ()))
    return models, LSTM in models


def _labels(asked: BacktestRequest) -> tuple[Episode, ...] | None:
    """The surges somebody marked; None: the definition counts."""
    if asked.labels is not None:
        return labels.from_csv(asked.labels)
    if asked.label_column is None or asked.path is None or asked.file is None:
        return None
    marked = read_demand(asked.path, replace(asked.file, value_column=asked.label_column, value_unit=ValueUnit.RPS))
    return labels.from_series(from_file(marked, asked.label_column))


def _show(out: Console, fields: dict[str, Any]) -> None:
    """The scoreboard and the verdict."""
    out.print(
        f"\n[bold]{escape(fields['series'])}[/bold]: {fields['origins']:,} origins, {fields['horizon_s']} s ahead; "
        f"naive {fields['naive_within_10pct_ratio']:.1%} within ±10 % ({fields['naive']}), "
        f"ceiling {fields['ceiling_within_10pct_ratio']:.1%}"
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("model", no_wrap=True)
    for heading in ("±10 %", "skill", "inside 90 %", "width", "loss", "÷ seasonal", "short min", "pod-h", "fit s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, line in fields["models"].items():
        table.add_row(name, *_cells(line))
    out.print(table)
    surges, served = fields["surges"], fields["served"]
    out.print(
        f"served: {_share(served['within_10pct_ratio'])} within ±10 %, stepped down "
        f"{served['stepped_down_ratio']:.1%} of the time; surges: {surges['caught']} of {surges['total']} caught, "
        f"{surges['false_alarms_per_day']:.2f} false alarms a day"
    )
    out.print(f"champion {fields['reason']}; acts: {'yes' if fields['acts'] else 'no'}", markup=False, soft_wrap=True)


def _cells(line: dict[str, Any]) -> list[str]:
    if line["refused"] is not None and not line["origins"]:
        return [escape(str(line["refused"]))]
    forms = {
        "within_10pct_ratio": "{:.1%}", "skill": "{:+.2f}", "coverage_ratio": "{:.1%}",
        "mean_interval_width_ratio": "{:.2f}", "weighted_quantile_loss": "{:.3f}",
        "relative_quantile_loss": "{:.2f}", "shortfall_minutes": "{:,}", "pod_hours": "{:,.0f}", "fit_s": "{:.1f}",
    }  # fmt: skip
    return ["–" if line[key] is None else form.format(line[key]) for key, form in forms.items()]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
