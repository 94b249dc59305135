"""What long work says of itself while it runs; the command line draws it, tests and doors leave it out."""

from typing import Protocol


class Progress(Protocol):
    """Told the whole truth so far, as often as the work likes; cheap to call."""

    def __call__(self, what: str, done: int, total: int | None, unit: str = "rows") -> None:
        """``done`` of ``total`` (None: not known yet) ``unit``s of ``what`` are finished."""
        ...


def silent(_what: str, _done: int, _total: int | None, _unit: str = "rows") -> None:
    """Nobody watches."""
