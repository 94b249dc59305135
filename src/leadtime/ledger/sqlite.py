"""Ticks and minute rows → one SQLite file that stands alone once closed. One commit a tick.

While it is open the file is in write-ahead mode, so that a page can read beside the writer; closing folds the log back
into the file and leaves nothing beside it. A crash loses at most the newest ticks, never the file.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec
import sqlalchemy as sa

from leadtime.domain.errors import BadLedger
from leadtime.domain.tick import Tick
from leadtime.ledger import wire
from leadtime.ledger.identity import identify
from leadtime.ledger.records import LedgerMeta, MinuteRow
from leadtime.ledger.tables import (
    DECISIONS,
    DOCUMENTS,
    LEDGER_FORMAT,
    LEDGER_MARK,
    META,
    TICKS,
    WORLD_MINUTES,
    metadata,
)

_ROWS_PER_INSERT = 5000


class SqliteLedger:
    """Append-only writer, a TickSink. Build it with ``create`` or ``resume``; close it, or use it in a ``with``."""

    def __init__(self, engine: sa.Engine, path: Path) -> None:
        self.path = path
        self._engine = engine
        self._connection = engine.connect()

    @classmethod
    def create(cls, path: Path, meta: LedgerMeta) -> Self:
        """Begin a new ledger at ``path``; an older ledger there is replaced, any other file is left alone.

        Raises BadLedger when ``path`` holds something that is not a ledger, or its folder does not exist.
        """
        doing = f"creating ledger {path}"
        if not path.parent.is_dir():
            raise BadLedger("ledger-absent", doing, "its folder does not exist", "create the folder or choose another")
        if path.exists():
            identify(path, doing, any_format=True)
            for leftover in (path, Path(f"{path}-wal"), Path(f"{path}-shm"), Path(f"{path}-journal")):
                leftover.unlink(missing_ok=True)
        ledger = cls(_engine(path), path)
        metadata.create_all(ledger._connection)
        ledger._connection.execute(
            sa.insert(META),
            [
                {"key": "mark", "value": LEDGER_MARK},
                {"key": "format", "value": str(LEDGER_FORMAT)},
                {"key": "meta", "value": msgspec.json.encode(meta, order="sorted").decode()},
            ],
        )
        ledger._connection.commit()
        return ledger

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Go on appending to the ledger at ``path``. Raises BadLedger as the reader does."""
        identify(path, f"opening ledger {path}")
        return cls(_engine(path), path)

    def append(self, tick: Tick) -> None:
        """Store one tick and its lines in the decision index in one commit.

        Raises BadLedger when a tick of the same ``as_of`` is there already: a ledger is never rewritten.
        """
        as_of_us = wire.to_us(tick.as_of)
        try:
            self._connection.execute(_INSERT_TICK, {"as_of_us": as_of_us, "body": wire.pack(wire.encode_tick(tick))})
            lines = _decision_lines(tick, as_of_us)
            if lines:
                self._connection.execute(_INSERT_DECISION, lines)
        except sa.exc.IntegrityError as error:
            self._connection.rollback()
            raise BadLedger(
                "ledger-tick-twice",
                f"appending to ledger {self.path}",
                f"a tick as of {tick.as_of.isoformat()} is there already, or it decides twice about one scope",
                "start a new ledger for a new run",
            ) from error
        self._connection.commit()

    def put_world_minutes(self, world: str, workload: str, rows: Sequence[MinuteRow]) -> None:
        """Store minute rows of one workload in one world (one commit); rows already there are replaced."""
        if not rows:
            return
        where = (WORLD_MINUTES.c.world == world) & (WORLD_MINUTES.c.workload == workload)
        at_s = [wire.to_us(row.at) // 1_000_000 for row in rows]
        self._connection.execute(
            sa.delete(WORLD_MINUTES).where(where & WORLD_MINUTES.c.at_s.between(min(at_s), max(at_s)))
        )
        written = [_minute(world, workload, second, row) for second, row in zip(at_s, rows, strict=True)]
        for first in range(0, len(written), _ROWS_PER_INSERT):
            self._connection.execute(_INSERT_MINUTE, written[first : first + _ROWS_PER_INSERT])
        self._connection.commit()

    def put_document(self, name: str, json_text: str) -> None:
        """Store a JSON text under ``name`` (report, scores); a document of that name is replaced."""
        self._connection.execute(sa.delete(DOCUMENTS).where(DOCUMENTS.c.name == name))
        self._connection.execute(sa.insert(DOCUMENTS), {"name": name, "body": json_text})
        self._connection.commit()

    def close(self) -> None:
        """Fold the log into the file and let go of it; a second call does nothing. What is not committed is dropped."""
        if self._connection.closed:
            return
        self._connection.rollback()  # stopped in the middle of a write, the connection asks for it before anything else
        # A reader that still holds the file keeps it in write-ahead mode; then the last one to close tidies up.
        with suppress(sa.exc.OperationalError):
            self._connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.exec_driver_sql("PRAGMA journal_mode=DELETE")
        self._connection.close()
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


_INSERT_TICK = sa.insert(TICKS)
_INSERT_DECISION = sa.insert(DECISIONS)
_INSERT_MINUTE = sa.insert(WORLD_MINUTES)


def _engine(path: Path) -> sa.Engine:
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)), poolclass=sa.pool.StaticPool)

    @sa.event.listens_for(engine, "connect")
    def _pragmas(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")  # a power cut may cost the newest ticks, never the file
        cursor.close()

    return engine


def _decision_lines(tick: Tick, as_of_us: int) -> list[dict[str, Any]]:
    agents = {proposal.id: proposal.agent.value for proposal in tick.proposals}
    return [
        {
            "as_of_us": as_of_us,
            "scope": decision.scope.key,
            "reason": decision.why.reason.value,
            "sentence": decision.why.sentence,
            "action": wire.action_type(decision.action),
            "agent": agents.get(decision.proposal_id) if decision.proposal_id is not None else None,
            "proposal_id": decision.proposal_id,
            "rejected": len(decision.rejections),
        }
        for decision in tick.decisions
    ]


def _minute(world: str, workload: str, at_s: int, row: MinuteRow) -> dict[str, Any]:
    return {
        "world": world,
        "workload": workload,
        "at_s": at_s,
        "demand": row.demand,
        "served": row.served,
        "unserved": row.unserved,
        "wanted": row.wanted,
        "ready": row.ready,
        "starting": row.starting,
        "pending": row.pending,
        "floor": row.floor,
        "nodes_by_stage": msgspec.json.encode(dict(row.nodes_by_stage)).decode(),
    }
