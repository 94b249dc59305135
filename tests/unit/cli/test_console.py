"""The terminal: names and paths are printed as they are."""

from io import StringIO
from pathlib import Path

from rich.console import Console

from leadtime.cli import console


def test_brackets_in_a_name_or_a_path_are_no_markup() -> None:
    out = Console(file=StringIO(), width=40)
    console.show_report(out, "a[red]b.csv", {"verdict": {"sentence": "stood [back]"}, "comparison": {}})
    folder = Path("/tmp/x[/bold]") / ("long" * 12)
    console.show_written(out, folder)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert "a[red]b.csv: stood [back]" in text
    assert f"written: {folder}/report.json, report.html, ticks.sqlite\n" in text
