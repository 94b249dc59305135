"""What can be wrong with a shard → BadTrace: file, what is wrong, cure. One place for the wording."""

from pathlib import Path

from leadtime.domain.errors import BadTrace

SHOWN = 60  # characters of a library's message or of a value that are shown


def bad_shard(slug: str, path: Path, wrong: str, cure: str) -> BadTrace:
    """An error about one file."""
    return BadTrace(slug, f"reading {path}", wrong, cure)


def first_line(error: BaseException) -> str:
    """What a library said, on one line, cut when long."""
    text = (str(error) or type(error).__name__).splitlines()[0]
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def unreadable(path: Path, what: str, error: BaseException) -> BadTrace:
    """A file that begins as ``what`` and cannot be read as one."""
    return bad_shard(
        "borg-shard-unreadable", path, f"it is not readable as {what} ({first_line(error)})", "fetch or write it again"
    )
