"""``leadtime policy check | show | explain``: thresholds as a person reads them."""

import typer

app = typer.Typer(help="Thresholds: check a file, show what holds, explain one.", no_args_is_help=True)


@app.callback()
def policy() -> None:
    """Thresholds: check a file, show what holds, explain one."""
