"""``leadtime forecast``: what models of demand are worth on a series. One file a command.

Each file imports typer and option types at the top; the work (numpy and the models) is imported when it runs.
"""

import typer

from leadtime.cli.forecast import backtest, explain

app = typer.Typer(help="Demand forecasts: judge models on a series, explain a number.", no_args_is_help=True)
app.command("backtest", epilog=backtest.EXAMPLE)(backtest.backtest)
app.command("explain", epilog=explain.EXAMPLE)(explain.explain)


@app.callback()
def forecast() -> None:
    """Demand forecasts: judge models on a series, explain a number."""
