"""A path → is it a ledger of ours, of this format? One clear line otherwise. Never changes the file."""

import sqlite3
from pathlib import Path

from leadtime.domain.errors import BadLedger
from leadtime.ledger.tables import LEDGER_FORMAT, LEDGER_MARK


def read_only_uri(path: Path) -> str:
    """The SQLite URI that opens ``path`` for reading only (it never creates a file)."""
    return f"{path.absolute().as_uri()}?mode=ro"


def identify(path: Path, doing: str, *, any_format: bool = False) -> None:
    """Return silently when ``path`` is a ledger of this format (or of any, if so asked).

    Raises BadLedger when it is absent, a folder, no SQLite file, another program's database, or another format.
    """
    if not path.exists():
        raise BadLedger("ledger-absent", doing, "no such file", "write one with: leadtime demo --headless --out DIR")
    if not path.is_file():
        raise BadLedger("ledger-foreign", doing, "this is a folder", "name the ticks.sqlite file inside it")
    kept = _read_marks(path, doing)
    if kept.get("mark") != LEDGER_MARK:
        raise BadLedger(
            "ledger-foreign", doing, "a database, but not one of leadtime's", "name a ticks.sqlite that leadtime wrote"
        )
    if not any_format and kept.get("format") != str(LEDGER_FORMAT):
        raise BadLedger(
            "ledger-format",
            doing,
            f"format {kept.get('format')}, this version reads {LEDGER_FORMAT}",
            "read it with the version that wrote it, or run the replay again",
        )


def _read_marks(path: Path, doing: str) -> dict[str, str]:
    try:
        connection = sqlite3.connect(read_only_uri(path), uri=True)
        try:
            return dict(connection.execute("SELECT key, value FROM meta WHERE key IN ('mark', 'format')").fetchall())
        finally:
            connection.close()
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            return {}
        raise BadLedger(
            "ledger-foreign", doing, str(error), "check that the file may be read and is not damaged"
        ) from error
    except sqlite3.DatabaseError as error:
        raise BadLedger(
            "ledger-foreign", doing, "not a SQLite file, or a damaged one", "name a ticks.sqlite that leadtime wrote"
        ) from error
