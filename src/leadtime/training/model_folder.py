"""The files of a published model → a folder that is there whole, or not at all."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A folder beside ``folder`` to write into; it takes that one's place at the end, and is gone after an error."""
    unfinished = folder.with_name(f".{folder.name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        _swap(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _swap(unfinished: Path, folder: Path) -> None:
    """Put the finished folder in the place of an earlier one: at any moment one of them is whole."""
    before = folder.with_name(f".{folder.name}-before")
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    unfinished.rename(folder)
    shutil.rmtree(before, ignore_errors=True)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Indented, in UTF-8, with a newline at the end."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
