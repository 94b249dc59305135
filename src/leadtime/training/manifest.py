"""JSON manifests that say "this step is finished", and the fingerprints that say "of these inputs".

A manifest is written last, in one rename: who sees it sees a finished step. It holds neither times nor absolute
paths, so equal inputs give equal bytes wherever and whenever they are processed.
"""

import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from leadtime.domain.errors import BadTrace, DependencyFailed

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
PROBE_BYTES = 1 << 20
_FULL_TEXTS = ("no space left on device", "disk quota exceeded")  # libraries that wrap the system's error


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """``content`` → ``path``, all or nothing; keys in the order given."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    written(path, lambda staged: _write_text(staged, text))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def read_json(path: Path) -> dict[str, Any] | None:
    """The manifest, or None where there is none. Raises BadTrace for one that is no JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValueError, OSError) as error:
        raise BadTrace(
            "borg-manifest-broken", f"reading {path}", f"it cannot be read ({error})", "delete it and run again"
        ) from None
    if not isinstance(content, dict):
        raise BadTrace("borg-manifest-broken", f"reading {path}", "it is no JSON object", "delete it and run again")
    return content


def staged_beside(path: Path) -> Path:
    """Where ``path`` is written before it is moved to its place; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.unfinished")


def fingerprint(content: Any) -> str:
    """SHA-256 over anything JSON can write, independent of the order of keys."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 over a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def written(path: Path, write: Callable[[Path], None]) -> None:
    """``write(staged)``, then the staged file moved to ``path``: all or nothing, with the system's own error.

    Polars hides a full disk behind errors of its own; so where it fails, one more megabyte is asked for by hand.
    """
    staged = staged_beside(path)
    try:
        write(staged)
    except pl.exceptions.PolarsError:
        with staged.open("ab") as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        raise
    staged.replace(path)


@contextmanager
def disk_errors(doing: str, folder: Path) -> Iterator[None]:
    """A full or unwritable disk below ``folder`` → DependencyFailed, whichever library met it."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL or _tells_of_full_disk(error):
            raise _disk_full(doing, folder) from None
        raise DependencyFailed(
            "disk-failed", doing, f"{error.filename or folder}: {error.strerror or error}",
            "make the folder readable and writable, then run the same command again: finished parts are kept",
        ) from None  # fmt: skip
    except Exception as error:
        if _tells_of_full_disk(error):
            raise _disk_full(doing, folder) from None
        raise


def _tells_of_full_disk(error: Exception) -> bool:
    return any(text in str(error).lower() for text in _FULL_TEXTS)


def _disk_full(doing: str, folder: Path) -> DependencyFailed:
    return DependencyFailed(
        "disk-full", doing, f"the disk that holds {folder} is full",
        "make room, then run the same command again: finished parts are kept",
    )  # fmt: skip
