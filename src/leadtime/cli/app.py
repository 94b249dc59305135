"""All commands under one name. A command's file imports typer and option types; the work is imported when it runs."""

from importlib.metadata import version
from typing import Annotated

import typer

from leadtime.cli import borg, dashboard, demo, doctor, forecast, policy, replay

app = typer.Typer(
    name="leadtime",
    help="Capacity decisions for Kubernetes that arrive in time, and say why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: drawing it with rich costs a third of a second
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"leadtime {version('leadtime')}")
        raise typer.Exit


@app.callback()
def leadtime(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Capacity decisions for Kubernetes that arrive in time, and say why."""


app.command("demo", epilog=demo.EXAMPLE)(demo.demo)
app.command("replay", epilog=replay.EXAMPLE)(replay.replay)
app.command("dashboard", epilog=dashboard.EXAMPLE)(dashboard.dashboard)
app.command("doctor", epilog=doctor.EXAMPLE)(doctor.doctor)
app.add_typer(policy.app, name="policy")
app.add_typer(borg.app, name="borg")
app.add_typer(forecast.app, name="forecast")
