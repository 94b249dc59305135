"""A canonical frame → the columns a v3 file has: nested structs or flat names, ids as floats, event types by form.

Columns that are not of the table (a leaked ``event_count``, say) follow the others under their own names.
"""

from enum import IntEnum, StrEnum

import polars as pl

from leadtime.domain.borg import TABLES, Column, EventType, MachineEventType

TIMES = frozenset({"time_us", "start_time_us", "end_time_us"})  # never floats: 2**63 − 1 would not survive


class EventTypeForm(StrEnum):
    """How a file spells its event types; all three are met."""

    CODE = "code"  # 5
    TEXT = "text"  # "5"
    NAME = "name"  # "FAIL"


def extra_columns(frame: pl.DataFrame, table: str) -> list[str]:
    """Columns of ``frame`` that ``table`` does not have, in their order."""
    own = {column.name for column in TABLES[table]}
    return [name for name in frame.columns if name not in own]


def type_names(table: str) -> dict[str, str]:
    """Code as text → name, of the events of ``table``."""
    members: type[IntEnum] = MachineEventType if table == "machine_events" else EventType
    return {str(member.value): member.name for member in members}


def spelled_type(table: str, form: EventTypeForm) -> pl.Expr:
    """Column ``type`` as ``form`` spells it; a code without a name is written as a number."""
    code = pl.col("type")
    if form is EventTypeForm.CODE:
        return code.cast(pl.Int64)
    text = code.cast(pl.String)
    return text if form is EventTypeForm.TEXT else text.replace(type_names(table))


def _value(column: Column, table: str, form: EventTypeForm, *, ids_as_floats: bool) -> pl.Expr:
    """One column's values with the width an export gives them: every integer 64 bits, an absent vector an empty one."""
    value = pl.col(column.name)
    if column.name == "type":
        return spelled_type(table, form)
    if column.dtype.startswith("List"):
        return value.fill_null(pl.lit([], dtype=pl.List(pl.Float32)))
    if ids_as_floats and column.dtype == "Int64" and column.name not in TIMES:
        return value.cast(pl.Float64)
    return value.cast(pl.Int64) if column.dtype.startswith("Int") else value


def nested(frame: pl.DataFrame, table: str, form: EventTypeForm) -> pl.DataFrame:
    """``frame`` with structs, as BigQuery exports them; a struct without any value is null.

    ``random_sample_usage`` gets the field ``memory`` that the real trace has and never fills.
    """
    leaves: dict[str, dict[str, pl.Expr]] = {}
    for column in TABLES[table]:
        outer, _, field = column.path.partition(".")
        leaves.setdefault(outer, {})[field] = _value(column, table, form, ids_as_floats=False)
    columns = []
    for outer, fields in leaves.items():
        if "" in fields:
            columns.append(fields[""].alias(outer))
            continue
        fields.setdefault("memory", pl.lit(None, dtype=pl.Float32))
        struct = pl.struct(value.alias(field) for field, value in fields.items())
        present = pl.any_horizontal(value.is_not_null() for value in fields.values())
        columns.append(pl.when(present).then(struct).otherwise(None).alias(outer))
    return frame.select(*columns, *extra_columns(frame, table))


def flat(frame: pl.DataFrame, table: str, form: EventTypeForm, *, separator: str, ids_as_floats: bool) -> pl.DataFrame:
    """``frame`` with structs spread over columns ``average_usage<separator>cpus``."""
    columns = [
        _value(column, table, form, ids_as_floats=ids_as_floats).alias(column.path.replace(".", separator))
        for column in TABLES[table]
    ]
    return frame.select(*columns, *extra_columns(frame, table))
