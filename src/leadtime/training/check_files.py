"""What a check reads and writes beside the trace: an earlier build to compare with, and the page."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leadtime.domain.errors import BadTrace
from leadtime.training.check import CheckReport
from leadtime.training.check_html import check_html
from leadtime.training.check_windows import DATASET
from leadtime.training.manifest import disk_errors, written

EARLIER = "previous.json"  # where make-dataset may keep the manifest it replaces


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier manifest or check, to compare positive rates with."""

    name: str
    content: Mapping[str, Any]


def is_dataset(path: Path) -> bool:
    """make-dataset's folder rather than a folder of shards: it has a manifest, or windows below cell=<name>."""
    return path.is_dir() and ((path / DATASET).is_file() or any(path.glob("cell=*/windows")))


def earlier(named: Path | None, path: Path) -> Earlier | None:
    """The manifest named by the user, else ``previous.json`` in the folder of windows, else None.

    Raises BadTrace when the named file cannot be read as one.
    """
    found = named
    if found is None:
        beside = path / EARLIER
        found = beside if path.is_dir() and beside.is_file() else None
    if found is None:
        return None
    try:
        content = json.loads(found.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _not_earlier(found, type(error).__name__) from None
    if not isinstance(content, Mapping) or "gates" not in content:
        raise _not_earlier(found, "it holds no gates")
    return Earlier(name=found.name, content=content)


def _not_earlier(path: Path, wrong: str) -> BadTrace:
    return BadTrace(
        "borg-previous-unreadable", f"reading {path} to compare with", wrong,
        "name a dataset.json, a forecaster.json, or the output of `leadtime borg check --json`",
    )  # fmt: skip


def write_page(file: Path, report: CheckReport) -> None:
    """Write the HTML page, whole or not at all. Raises DependencyFailed where the disk refuses."""
    page = check_html(report)
    with disk_errors(f"writing {file}", file.parent):
        written(file, lambda staged: _write(staged, page))


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
