"""The ledger's tables, in types that SQLite and PostgreSQL both have. No JSON column: bodies are text we wrote,
a tick's packed (wire.pack).

Instants are whole microseconds since 1970 (``*_us``) or, for minute rows, whole seconds (``at_s``): integers sort and
compare alike in every database.
"""

import sqlalchemy as sa

LEDGER_FORMAT = 1
LEDGER_MARK = "leadtime.ledger"

metadata = sa.MetaData()

META = sa.Table(
    "meta",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

TICKS = sa.Table(
    "ticks",
    metadata,
    sa.Column("as_of_us", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

DECISIONS = sa.Table(
    "decisions",
    metadata,
    sa.Column("as_of_us", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("scope", sa.String(255), primary_key=True),
    sa.Column("reason", sa.String(64), nullable=False),
    sa.Column("sentence", sa.Text, nullable=False),
    sa.Column("action", sa.String(64)),
    sa.Column("agent", sa.String(32)),
    sa.Column("proposal_id", sa.String(255)),
    sa.Column("rejected", sa.Integer, nullable=False),
)

WORLD_MINUTES = sa.Table(
    "world_minutes",
    metadata,
    sa.Column("world", sa.String(64), primary_key=True),
    sa.Column("workload", sa.String(255), primary_key=True),
    sa.Column("at_s", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("demand", sa.Float),
    sa.Column("served", sa.Float),
    sa.Column("unserved", sa.Float),
    sa.Column("wanted", sa.Integer, nullable=False),
    sa.Column("ready", sa.Integer, nullable=False),
    sa.Column("starting", sa.Integer, nullable=False),
    sa.Column("pending", sa.Integer, nullable=False),
    sa.Column("floor", sa.Integer, nullable=False),
    sa.Column("nodes_by_stage", sa.Text, nullable=False),
)

DOCUMENTS = sa.Table(
    "documents",
    metadata,
    sa.Column("name", sa.String(128), primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
)
