"""What long work says of itself while it runs; the command line draws it, tests and doors leave it out."""

from typing import Protocol


class Progress(Protocol):
    """Told the whole truth so far, as often as the work likes; cheap to call."""

    def __call__(self, what: str, done: int, total: int | None, unit: str = "rows") -> None:
        """``done`` of ``total`` (None: not known yet) ``unit``s of ``what`` are finished."""
        ...


def silent(what: str, done: int, total: int | None, unit: str = "rows") -> None:
    """Nobody watches."""
