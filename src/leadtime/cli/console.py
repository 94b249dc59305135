"""Progress and results on the terminal: what is played now, and one table a report. Everything goes to stderr.

stdout belongs to ``--json`` alone, so that a pipe never sees a progress bar.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

WORLD_NAMES = {
    "hpa": "HPA alone",
    "hpa_equal_cost": "HPA, same cost",
    "cron": "by clock",
    "cron_ahead": "by clock, a lead early",
    "leadtime": "leadtime",
    "oracle": "oracle",
}
WIDE = 120
STAGES = ("the days before", "HPA alone", "leadtime", "HPA at equal cost", "floors by clock", "oracle", "report")


def stderr() -> Console:
    """The console everything but JSON is written to."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        console.width = WIDE  # a file or a pipe has no width of its own
    return console


def progress_bars(console: Console) -> Progress:
    """Bars that vanish when done; on a pipe they print nothing."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[name]}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.description}"),
    )
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal)


class Bar:
    """One run's bar, fed with (what is played, share of it done)."""

    def __init__(self, bars: Progress, name: str) -> None:
        self._bars = bars
        self._task: TaskID = bars.add_task("waiting", name=name, total=len(STAGES))

    def note(self, what: str, share: float) -> None:
        """``what`` is played now, ``share`` (0–1) of it is done."""
        begun = STAGES.index(what) if what in STAGES else None
        completed = None if begun is None else begun + min(1.0, share)
        self._bars.update(self._task, description=what, completed=completed)

    def done(self) -> None:
        """The run is finished."""
        self._bars.update(self._task, description="done", completed=len(STAGES))


def show_written(console: Console, folder: Path) -> None:
    """Where the files are; a path stays whole, so that it can be copied."""
    console.print(f"\nwritten: {folder}/report.json, report.html, ticks.sqlite", markup=False, soft_wrap=True)


def show_report(console: Console, name: str, report: Mapping[str, Any]) -> None:
    """The verdict and the score card of the report's workloads, worlds side by side."""
    console.print(f"\n[bold]{escape(name)}[/bold]: {escape(report['verdict']['sentence'])}")
    for workload in report["comparison"]:
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column(workload, no_wrap=True, min_width=22)
        for heading in ("unserved", "worst 5 min", "short min", "pod-h", "node-h", "pending pod-min"):
            table.add_column(heading, justify="right", no_wrap=True)
        for world, by_workload in report["worlds"].items():
            table.add_row(WORLD_NAMES.get(world, world), *_cells(by_workload[workload]))
        console.print(table)
        console.print(_compared(report["comparison"][workload]))
    if report.get("risk") is not None:
        console.print(f"failure model {escape(report['risk']['model'])}: {escape(report['risk']['sentence'])}")
    if report.get("warm_pods_needed") is not None:
        console.print(
            f"warm pods that would have been needed: {report['warm_pods_needed']:,} "
            f"({report['warm_gpu_hours_per_day']:,.0f} GPU-hours a day); try --warm-pods {report['warm_pods_needed']}"
        )


def _cells(fields: Mapping[str, Any]) -> list[str]:
    return [
        _number(fields["unserved_ratio"], "{:.2%}"),
        _number(fields["unserved_ratio_peak"], "{:.1%}"),
        _number(fields["shortfall_minutes"], "{:,}"),
        _number(fields["pod_hours"], "{:,.0f}"),
        _number(fields["gpu_node_hours"], "{:,.0f}"),
        _number(fields["pending_pod_minutes"], "{:,.0f}"),
    ]


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)


def _compared(fields: Mapping[str, Any]) -> str:
    early, lead = _number(fields["early_warning_s"], "{:,.0f} s"), _number(fields["learned_lead_p90_s"], "{:,.0f} s")
    ahead = _number(fields["first_request_ahead_s"], "{:,.0f} s")
    ratio = _number(fields["pod_hours_ratio_to_oracle"], "{:.3f}")
    return (
        f"early warning {early}, learned lead (P90) {lead}, first capacity request {ahead} ahead of the HPA's, "
        f"{ratio} × the oracle's pod-hours"
    )
