"""What can be wrong with a demand file → BadDemandFile: file, row, what is wrong, cure. One place for the wording."""

from leadtime.domain.errors import BadDemandFile

SHOWN = 40  # characters of a cell that are shown; the rest of a long cell says nothing


def shown(text: str) -> str:
    """A cell or name as it stands in a message: quoted, on one line, cut when long.

    >>> shown("12 apples")
    "'12 apples'"
    """
    return repr(text if len(text) <= SHOWN else text[:SHOWN] + "…")


def bad_file(slug: str, path: str, wrong: str, cure: str, *, row: int | None = None) -> BadDemandFile:
    """An error about ``path``; ``row``: line of a text file (the header is row 1), or row of a Parquet file."""
    where = f"reading {path}" if row is None else f"reading {path}, row {row}"
    return BadDemandFile(slug, where, wrong, cure)
