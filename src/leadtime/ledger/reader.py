"""One ledger file → ticks, decision lines, minute rows, documents. Reads only; may run beside the writer."""

import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import msgspec
import sqlalchemy as sa

from leadtime.domain.errors import BadLedger
from leadtime.domain.time_window import rfc3339
from leadtime.ledger import wire
from leadtime.ledger.identity import identify, read_only_uri
from leadtime.ledger.records import DecisionLine, LedgerMeta, MinuteRow
from leadtime.ledger.tables import DECISIONS, DOCUMENTS, META, TICKS, WORLD_MINUTES


class LedgerReader:
    """Windows are half-open: ``since`` ≤ at < ``until``; None leaves that end open. Everything is oldest first."""

    def __init__(self, path: Path) -> None:
        """Open ``path``. Raises BadLedger when it is absent, not a ledger, or of another format."""
        self.path = Path(path)
        identify(self.path, f"reading ledger {self.path}")
        # NullPool: a page reads from several threads, and a connection that is closed at once never blocks the writer.
        # A creator: an engine's URL would decode the path once more, and open another file where it holds # ? or %.
        self._engine = sa.create_engine("sqlite://", creator=self._connect, poolclass=sa.pool.NullPool)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(read_only_uri(self.path), uri=True)

    def meta(self) -> LedgerMeta:
        """What this ledger is about."""
        with self._engine.connect() as connection:
            body = connection.execute(sa.select(META.c.value).where(META.c.key == "meta")).scalar_one()
        return msgspec.json.decode(body, type=LedgerMeta)

    def tick_times(self) -> list[datetime]:
        """``as_of`` of every tick."""
        with self._engine.connect() as connection:
            found = connection.execute(sa.select(TICKS.c.as_of_us).order_by(TICKS.c.as_of_us)).scalars()
            return [wire.from_us(as_of_us) for as_of_us in found]

    def tick(self, as_of: datetime) -> dict[str, Any]:
        """The tick about exactly ``as_of``. Raises BadLedger when there is none."""
        query = sa.select(TICKS.c.body).where(TICKS.c.as_of_us == wire.to_us(as_of))
        with self._engine.connect() as connection:
            body = connection.execute(query).scalar_one_or_none()
        if body is None:
            raise BadLedger(
                "ledger-no-such-tick",
                f"reading ledger {self.path}",
                f"no tick as of {rfc3339(as_of)}",
                "ask for one of tick_times()",
            )
        return wire.decode_tick(wire.unpack(body))

    def ticks(
        self, since: datetime | None = None, until: datetime | None = None, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """Ticks with since ≤ as_of < until, at most ``limit`` of them (the oldest)."""
        query = _within(sa.select(TICKS.c.body), TICKS.c.as_of_us, since, until).order_by(TICKS.c.as_of_us)
        with self._engine.connect() as connection:
            return [wire.decode_tick(wire.unpack(body)) for body in connection.execute(query.limit(limit)).scalars()]

    def decisions(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        scope: str | None = None,
        acted_only: bool = False,
        limit: int | None = None,
    ) -> list[DecisionLine]:
        """Decision lines with since ≤ as_of < until; of one scope (its key) and only those with an action, if asked."""
        query = _within(sa.select(DECISIONS), DECISIONS.c.as_of_us, since, until)
        if scope is not None:
            query = query.where(DECISIONS.c.scope == scope)
        if acted_only:
            query = query.where(DECISIONS.c.action.is_not(None))
        query = query.order_by(DECISIONS.c.as_of_us, DECISIONS.c.scope).limit(limit)
        with self._engine.connect() as connection:
            return [
                DecisionLine(as_of=wire.from_us(row.pop("as_of_us")), **row)
                for row in (dict(found) for found in connection.execute(query).mappings())
            ]

    def worlds(self) -> list[tuple[str, str]]:
        """Every (world, workload) that has minute rows, sorted."""
        query = sa.select(WORLD_MINUTES.c.world, WORLD_MINUTES.c.workload).distinct()
        with self._engine.connect() as connection:
            return sorted((row.world, row.workload) for row in connection.execute(query))

    def world_minutes(
        self, world: str, workload: str, since: datetime | None = None, until: datetime | None = None
    ) -> list[MinuteRow]:
        """Minute rows of one workload in one world with since ≤ at < until; empty when there are none."""
        query = sa.select(WORLD_MINUTES).where(
            (WORLD_MINUTES.c.world == world) & (WORLD_MINUTES.c.workload == workload)
        )
        if since is not None:
            query = query.where(WORLD_MINUTES.c.at_s >= _next_second(since))
        if until is not None:
            query = query.where(WORLD_MINUTES.c.at_s < _next_second(until))
        with self._engine.connect() as connection:
            return [_minute(row) for row in connection.execute(query.order_by(WORLD_MINUTES.c.at_s))]

    def document(self, name: str) -> str | None:
        """The JSON text stored under ``name``, or None."""
        with self._engine.connect() as connection:
            query = sa.select(DOCUMENTS.c.body).where(DOCUMENTS.c.name == name)
            return connection.execute(query).scalar_one_or_none()

    def close(self) -> None:
        """Let go of the file."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _within(
    query: sa.Select[Any], column: sa.Column[int], since: datetime | None, until: datetime | None
) -> sa.Select[Any]:
    if since is not None:
        query = query.where(column >= wire.to_us(since))
    if until is not None:
        query = query.where(column < wire.to_us(until))
    return query


def _next_second(at: datetime) -> int:
    """The first whole second at or after ``at``: minute rows stand on whole seconds, so both comparisons stay exact."""
    return -(-wire.to_us(at) // 1_000_000)


def _minute(row: sa.Row[Any]) -> MinuteRow:
    return MinuteRow(
        at=wire.from_us(row.at_s * 1_000_000), demand=row.demand, served=row.served, unserved=row.unserved,
        wanted=row.wanted, ready=row.ready, starting=row.starting, pending=row.pending, floor=row.floor,
        nodes_by_stage=msgspec.json.decode(row.nodes_by_stage, type=dict[str, int]),
    )  # fmt: skip
