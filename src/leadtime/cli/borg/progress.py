"""Progress of long Borg work on the terminal: one bar a step with rows done, rate and time left. stderr only."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bars,
)
from rich.text import Text

from leadtime.training.progress import Progress


class Rate(ProgressColumn):
    """Finished units a second, as measured; a dash until something is finished."""

    def render(self, task: Task) -> Text:
        """One cell."""
        speed = task.finished_speed or task.speed
        return Text("–" if speed is None else f"{speed:,.0f} {task.fields['unit']}/s")


@contextmanager
def shown(console: Console) -> Iterator[Progress]:
    """A Progress that draws bars on ``console``; on a pipe it prints nothing."""
    columns = (
        SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(bar_width=24),
        MofNCompleteColumn(), Rate(), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    bars = Bars(*columns, console=console, transient=True, disable=not console.is_terminal)
    tasks: dict[str, TaskID] = {}

    def note(what: str, done: int, total: int | None, unit: str = "rows") -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=total, unit=unit)
        bars.update(tasks[what], completed=done, total=total)

    with bars:
        yield note
