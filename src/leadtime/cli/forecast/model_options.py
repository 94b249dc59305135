"""The options that say which models take part, and which draw: shared by ``backtest`` and ``explain``."""

from typing import Annotated

import typer

Models = Annotated[str | None, typer.Option(metavar="NAMES", help="Only these, with commas; and the naive two.")]
Seed = Annotated[int, typer.Option(min=0, help="Which draw; equal seeds give equal numbers.")]


def model_names(models: str | None) -> tuple[str, ...] | None:
    """The names between commas; None for none asked."""
    if models is None:
        return None
    names = tuple(name.strip() for name in models.split(",") if name.strip())
    if not names:
        raise typer.BadParameter("--models names no model; write --models last_value,ets")
    return names
