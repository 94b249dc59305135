"""Tallies of files → gates on units, rows, missing values, sentinels and columns nobody asked for."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from leadtime.domain.borg import TRACE_START_US, WINDOW_US
from leadtime.risk.gates import Bound, Gate, Standing, at_most, failed, not_examined, reported, too_few, written
from leadtime.risk.gates_tally import Tally

MIN_ROWS = 20  # fewer rows say nothing about a rate
MIN_AT_LIMIT = 10  # rows that a rate at its limit stands for, before a few more than that mean something
CHANCE_SE = 3.0
MODAL_SHARE = 0.20  # a quarter of real windows is ≤ 49 s and the median is 300 s: the mode holds well over a fifth
EARLY_LIMIT = 0.50  # a file in ms or s has (nearly) all its times before the trace's first instant
SPAN_RATIO = 100.0  # files are not time slices: each spans the trace; a file in ms ends 1,000 times too early
REJECT_LIMIT = 0.01  # a real shard loses a few rows in a million
# Share of missing values a column may have. Seen in real data: machine_id of events 48 % (before placement), CPI and
# MAI 31 %, vectors 3.9 %, maximum memory 5 %, requests 0.003–0.19 %, machine_id of usage 2 %. Limits leave a factor
# of two or more, keys none at all.
NULL_LIMITS: Mapping[str, float] = {
    "instance_usage.machine_id": 0.10, "instance_usage.max_cpu": 0.25, "instance_usage.max_memory": 0.25,
    "instance_usage.cycles_per_instruction": 0.70, "instance_usage.memory_accesses_per_instruction": 0.70,
    "instance_usage.cpu_usage_distribution": 0.15, "instance_usage.tail_cpu_usage_distribution": 0.15,
    "instance_events.machine_id": 0.80, "instance_events.request_cpu": 0.05, "instance_events.request_memory": 0.05,
    "machine_events.capacity_cpu": 0.75, "machine_events.capacity_memory": 0.75,
    "machine_events.platform_id": 0.75,
}  # fmt: skip
FREE_TO_BE_NULL = frozenset({
    "collection_events.user", "collection_events.collection_name", "collection_events.collection_logical_name",
    "machine_events.switch_id",
})  # fmt: skip  # names and racks: no feature and no key
OPTIONAL = frozenset({
    "instance_usage.cpu_usage_distribution", "instance_usage.tail_cpu_usage_distribution",
    "instance_usage.cycles_per_instruction", "instance_usage.memory_accesses_per_instruction",
})  # fmt: skip  # a whole cell may lack them
OTHER_NULL_LIMIT = 0.0  # columns where a missing number is read as 0 cannot be null
# Share of exact zeros. Seen: average CPU 12 %. Zeros in keys and times mean that the column was not there at all.
ZERO_LIMITS: Mapping[str, float] = {
    "instance_usage.collection_id": 0.0, "instance_usage.start_time_us": 0.01, "instance_usage.end_time_us": 0.0,
    "instance_usage.avg_cpu": 0.60, "instance_usage.avg_memory": 0.60, "instance_usage.assigned_memory": 0.60,
    "instance_usage.sample_rate": 0.25, "instance_events.collection_id": 0.0, "instance_events.time_us": 0.60,
    "instance_events.request_cpu": 0.25, "instance_events.type": 0.75, "collection_events.collection_id": 0.0,
    "collection_events.time_us": 0.75, "collection_events.type": 0.90, "machine_events.machine_id": 0.0,
}  # fmt: skip
LEAKED = (
    "event_count", "final_type", "final_state", "last_event", "max_request", "max_req", "failed", "observed_failure",
    "time_to_fail", "time_to_event", "label", "truth",
)  # fmt: skip  # parts of names of columns that are made from the whole trace


def time_unit(shards: Mapping[str, Tally], *, latest_us: int | None) -> tuple[Gate, ...]:
    """One gate a file. Usage: the modal window is 300 s. Events: times lie between the trace's start and its end.

    ``latest_us``: the last instant of the trace as declared, or as seen in usage files whose unit is proved.
    """
    return tuple(
        _window_unit(name, one) if one.table == "instance_usage" else _event_unit(name, one, latest_us)
        for name, one in shards.items()
    )


def _window_unit(where: str, one: Tally) -> Gate:
    lengths = {length: rows for length, rows in one.lengths_us.items() if length != 0}
    if sum(lengths.values()) < MIN_ROWS:
        return too_few("time-unit", one.rows_out, MIN_ROWS, of="usage rows", where=where)
    mode = max(lengths, key=lambda length: (lengths[length], length))
    unit = unit_of_window(mode)
    share = lengths[mode] / one.rows_out
    figures = {
        "modal_window": mode,
        "modal_share_ratio": share,
        "unit": unit or "unknown",
        "early_rows": one.early_rows,
    }
    if unit == "us" and share >= MODAL_SHARE:
        sentence = f"the modal window is 300 s ({written(share, 'ratio')} of {one.rows_out:,} rows)"
        return Gate(
            name="time-unit", standing=Standing.PASSED, where=where, measured=float(mode), unit="us",
            limit=float(WINDOW_US), bound=Bound.EXACTLY, sentence=sentence, figures=figures,
        )  # fmt: skip
    if unit in {"ms", "s", "ns"}:
        sentence = f"the modal window is {mode:,} where 300,000,000 µs are wanted: times are {unit}"
        cure = f"mend the file with `leadtime borg repair` (rule unit-{unit}-to-us), or take it out"
    else:
        sentence = (
            f"the modal window is {mode:,} µs in {written(share, 'ratio')} of {one.rows_out:,} rows, "
            f"300,000,000 µs in at least {written(MODAL_SHARE, 'ratio')} are wanted"
        )
        cure = "find out the unit and period of this file's windows; it does not look like a 300 s trace"
    return Gate(
        name="time-unit", standing=Standing.FAILED, where=where, measured=float(mode), unit="us",
        limit=float(WINDOW_US), bound=Bound.EXACTLY, sentence=sentence, cure=cure, figures=figures,
    )  # fmt: skip


def unit_of_window(mode: int) -> str | None:
    """The unit in which a modal window of ``mode`` ticks is 300 s; None where it is no unit's.

    >>> unit_of_window(300_000), unit_of_window(300_000_000), unit_of_window(60_000_000)
    ('ms', 'us', None)
    """
    return {WINDOW_US: "us", WINDOW_US // 1000: "ms", WINDOW_US // 1_000_000: "s", WINDOW_US * 1000: "ns"}.get(mode)


def event_unit(one: Tally, latest_us: int | None) -> str | None:
    """The unit an event file's times are in, judged by its last time against the trace's; None where undecided."""
    if one.latest_us is None or latest_us is None or one.timed_rows < MIN_ROWS:
        return None
    ratio = latest_us / one.latest_us
    if ratio < 1 / SPAN_RATIO:
        return "ns"
    if ratio <= SPAN_RATIO:
        return "us"
    return "ms" if ratio <= SPAN_RATIO * 1000 else "s"


def _event_unit(where: str, one: Tally, latest_us: int | None) -> Gate:
    if one.timed_rows < MIN_ROWS:
        return too_few("time-unit", one.timed_rows, MIN_ROWS, of="rows with a time inside the trace", where=where)
    early = one.early_rows / one.timed_rows
    unit = event_unit(one, latest_us)
    figures = {
        "early_ratio": early,
        "latest_us": one.latest_us,
        "trace_latest_us": latest_us,
        "unit": unit or "unknown",
    }
    said = f"{written(early, 'ratio')} of {one.timed_rows:,} times lie before the trace's first instant (600 s)"
    if unit is not None and unit != "us":
        sentence = f"times end at {one.latest_us:,}, the trace at {latest_us:,} µs: times are {unit}; {said}"
        cure = f"mend the file with `leadtime borg repair` (rule unit-{unit}-to-us), or take it out"
        return failed("time-unit", where=where, sentence=sentence, cure=cure, figures=figures)
    return at_most(
        "time-unit", early, EARLY_LIMIT, where=where, sentence=said, figures=figures,
        cure=f"times must be µs since 600 s before the trace (first instant {TRACE_START_US:,}); find out the unit",
    )  # fmt: skip


def rows_accounted(shards: Mapping[str, Tally]) -> tuple[Gate, ...]:
    """Rows in = rows out + rejects in every file, and few rejects."""
    gates = []
    for where, one in shards.items():
        lost = one.rows_in - one.rows_out - sum(one.rejects.values())
        sentence = f"{one.rows_in:,} rows in, {one.rows_out:,} out, {sum(one.rejects.values()):,} rejected"
        gates.append(
            at_most(
                "rows-accounted",
                float(abs(lost)),
                0.0,
                where=where,
                unit="rows",
                sentence=sentence,
                cure="rows vanished or were made while reading; report this file, do not train on it",
                figures={"rows_in": one.rows_in, "rows_out": one.rows_out},
            )
        )
        by_rule = ", ".join(f"{rule} {rows:,}" for rule, rows in one.rejects.items() if rows)
        gates.append(
            at_most(
                "reject-rate",
                sum(one.rejects.values()) / max(1, one.rows_in),
                REJECT_LIMIT,
                where=where,
                sentence=f"rejected rows by rule: {by_rule or 'none'}",
                figures={"rejects": dict(one.rejects)},
                cure="look at the first rejects of each rule; a wrong dialect or type is the usual reason",
            )
        )
    return tuple(gates)


def null_rates(
    tables: Mapping[str, Tally], cell: str, *, absent: frozenset[str] = frozenset()
) -> tuple[Gate, ...]:  # fmt: skip
    """One gate a failed column; one a table for all that pass, with the column nearest its limit.

    ``absent``: ``table.column`` that no file of the cell has. Optional ones are told of, not failed: the trace of 2011
    has no histograms, and features made from them are missing then.
    """
    lacking = sorted(absent & OPTIONAL)
    told = [
        reported(
            "null-rate", 1.0, where=f"{cell} {column}",
            sentence=f"no file of the cell has {column}: what is made from it is missing",
        )
        for column in lacking
    ]  # fmt: skip
    free = FREE_TO_BE_NULL | frozenset(lacking)
    return (*told, *_rates(
        "null-rate", "missing", tables, cell,
        lambda table, one: {
            column: (rows, NULL_LIMITS.get(f"{table}.{column}", OTHER_NULL_LIMIT))
            for column, rows in one.nulls.items()
            if f"{table}.{column}" not in free
        },
        cure="the column was not read (a type or a name differs), or the source lacks it; look at the file's schema",
    ))  # fmt: skip


def sentinel_rates(tables: Mapping[str, Tally], cell: str) -> tuple[Gate, ...]:
    """The same for exact zeros in columns where zero stands for "not there"."""
    return _rates(
        "sentinel-rate", "exactly 0", tables, cell,
        lambda table, one: {
            column: (rows, ZERO_LIMITS[f"{table}.{column}"])
            for column, rows in one.zeros.items()
            if f"{table}.{column}" in ZERO_LIMITS
        },
        cure="keys and times that are all 0 were not read: a type or a name differs; look at the file's schema",
    )  # fmt: skip


def _rates(
    name: str, what: str, tables: Mapping[str, Tally], cell: str,
    counted: Callable[[str, Tally], Mapping[str, tuple[int, float]]], *, cure: str,
) -> tuple[Gate, ...]:  # fmt: skip
    gates: list[Gate] = []
    for table, one in tables.items():
        where = f"{cell} {table}".strip()
        if one.rows_out < MIN_ROWS:
            gates.append(too_few(name, one.rows_out, MIN_ROWS, where=where))
            continue
        rates = {column: (rows / one.rows_out, limit) for column, (rows, limit) in counted(table, one).items()}
        over = {column: pair for column, pair in rates.items() if pair[0] > pair[1]}
        unsure = {column for column, pair in over.items() if _may_be_chance(*pair, one.rows_out)}
        gates += [
            too_few(
                name, one.rows_out, _needed(limit), where=f"{where}.{column}",
                also=f": {written(rate, 'ratio')} are {what}, the limit is {written(limit, 'ratio')}",
            )
            if column in unsure
            else at_most(
                name, rate, limit, where=f"{where}.{column}", cure=cure,
                sentence=f"{written(rate, 'ratio')} of {one.rows_out:,} rows are {what}",
            )
            for column, (rate, limit) in over.items()
        ]  # fmt: skip
        if not over and rates:
            column, (rate, limit) = max(rates.items(), key=lambda item: item[1][0] / item[1][1] if item[1][1] else 0)
            sentence = f"{len(rates)} columns within their limits; nearest is {column}"
            figures = {key: pair[0] for key, pair in rates.items()}
            gates.append(at_most(name, rate, limit, where=where, sentence=sentence, cure=cure, figures=figures))
    return tuple(gates)


def _needed(limit: float) -> int:
    """Rows among which a share of ``limit`` stands for MIN_AT_LIMIT; a limit of 0 needs none: one row breaks it."""
    return math.ceil(MIN_AT_LIMIT / limit) if limit else 0


def _may_be_chance(rate: float, limit: float, rows: int) -> bool:
    """True where rows are too few to tell ``rate`` from ``limit``: above it by less than CHANCE_SE standard errors."""
    return rows < _needed(limit) and rate - limit <= CHANCE_SE * math.sqrt(limit * (1 - limit) / rows)


def machine_sentinels(tables: Mapping[str, Tally], cell: str) -> Gate:
    """The machine table holds no machine 0 or -1, so that "no machine" can never join."""
    one = tables.get("machine_events")
    used = tables.get("instance_usage")
    dedicated = 0 if used is None else used.bad_machine_rows
    if one is None:
        return not_examined("machine-sentinels", "there is no machine_events file", where=cell)
    sentence = f"{one.bad_machine_rows:,} of {one.rows_out:,} machine events are about machine 0 or -1"
    return at_most(
        "machine-sentinels", float(one.bad_machine_rows), 0.0, where=cell, unit="rows",
        sentence=f"{sentence}; {dedicated:,} usage rows run on a dedicated machine (-1) and join none",
        cure="take these rows out with `leadtime borg repair` (rule zero-means-no-machine)",
    )  # fmt: skip


def leaked_columns(unknown: Mapping[str, Sequence[str]]) -> Gate:
    """Columns outside the canonical tables, by file: named, and ignored by construction."""
    columns = sorted({column for names in unknown.values() for column in names})
    leaks = [column for column in columns if any(part in column.lower() for part in LEAKED)]
    if not columns:
        return reported("leaked-columns", 0.0, unit="columns", sentence="no file has columns beyond the trace's own")
    sentence = f"ignored, never read: {', '.join(columns[:12])}{' …' if len(columns) > 12 else ''}"
    if leaks:
        sentence = f"{sentence}; made from the whole trace by their names: {', '.join(leaks[:12])}"
    figures = {"files": {file: list(names) for file, names in unknown.items() if names}, "whole_trace": leaks}
    return reported("leaked-columns", float(len(columns)), unit="columns", sentence=sentence, figures=figures)


def tables_of(shards: Iterable[Tally]) -> dict[str, Tally]:
    """Tallies of files → one a table."""
    tables: dict[str, Tally] = {}
    for one in shards:
        tables[one.table] = tables[one.table] + one if one.table in tables else one
    return tables


def proved_latest_us(shards: Iterable[Tally], declared_us: int | None) -> int | None:
    """The trace's last instant: as declared, else the last window end of usage files whose modal window is 300 s."""
    if declared_us:
        return declared_us
    sure = [
        one.latest_us for one in shards
        if one.table == "instance_usage" and one.latest_us is not None and one.lengths_us
        and max(one.lengths_us, key=lambda length: one.lengths_us[length]) == WINDOW_US
    ]  # fmt: skip
    return max(sure, default=None)
