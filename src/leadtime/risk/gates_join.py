"""Sampled histories of a cell → gates on what finds what: usage and events, requests, machines; and on doubles."""

from collections.abc import Mapping, Sequence
from statistics import median

import polars as pl

from leadtime.risk.gates import Gate, at_least, at_most, not_examined, reported, too_few, written
from leadtime.risk.gates_tally import INSTANCE

CELL_FLOOR = 0.30  # the worst cell built from cut shards (15 of usage, 15 of events) joined 34 % of its rows
SHARD_RATIO = 0.50  # rows are spread over shards by chance, so a shard that joins half as often is of another cell
MIN_ROWS = 100  # sampled rows of a file before its rate is judged
REQUEST_FLOOR = 0.90  # joined rows that know a request: null requests are 0.003–0.19 % of events
MACHINE_FLOOR = 0.90  # rows on a machine that stands in the machine table: the table is small and comes whole
DUPLICATE_LIMIT = 0.02  # the generator's default is 0.3 % + 0.1 %; no rate is published for the real trace
IDENTITY = ("time_us", "type", *INSTANCE)


def join_match(
    windows: pl.DataFrame, events: pl.DataFrame, shards: Sequence[str], *, cell: str
) -> tuple[Gate, ...]:  # fmt: skip
    """Usage rows that find any event of their instance, per cell and file; events' instances that find usage, per file.

    ``shards``: names by the number in column ``shard``. A file of another cell finds (nearly) nothing.
    """
    name = "join-match"
    if windows.height == 0 or events.height == 0:
        absent = "usage" if windows.height == 0 else "event"
        return (not_examined(name, f"there are no {absent} rows to join", where=cell),)
    known = events.select(INSTANCE).unique().with_columns(pl.lit(value=True).alias("found"))
    used = windows.select(INSTANCE).unique().with_columns(pl.lit(value=True).alias("found"))
    by_usage = _by_shard(windows, known, shards)
    by_events = _by_shard(events.select(*INSTANCE, "shard").unique(), used, shards)
    rows = windows.height
    matched = windows.join(known, on=INSTANCE, how="semi").height / rows
    whole = at_least(
        name, matched, CELL_FLOOR, where=cell, figures={"rows": rows, "files": {k: v[0] for k, v in by_usage.items()}},
        sentence=f"{written(matched, 'ratio')} of {rows:,} usage rows find an event of their instance",
        cure="add the missing event shards of this cell; most rows would stay without a label",
    )  # fmt: skip
    return (
        whole,
        *_outliers(by_usage, "usage rows find an event"),
        *_outliers(by_events, "instances find a usage row"),
    )


def _by_shard(rows: pl.DataFrame, other: pl.DataFrame, shards: Sequence[str]) -> dict[str, tuple[float, int]]:
    """File → (share of its rows that find the other side, its rows); nothing where files are not told apart."""
    if not shards:
        return {}
    joined = rows.select(*INSTANCE, "shard").join(other, on=INSTANCE, how="left")
    shares = joined.group_by("shard").agg(pl.col("found").is_not_null().mean().alias("share"), pl.len()).sort("shard")
    return {shards[shard]: (share, count) for shard, share, count in shares.iter_rows()}


def _outliers(shares: Mapping[str, tuple[float, int]], what: str) -> tuple[Gate, ...]:
    """One gate a file, against half of the median of the other files."""
    gates = []
    for where, (share, rows) in shares.items():
        others = [one for name, (one, count) in shares.items() if name != where and count >= MIN_ROWS]
        if not others:
            gates.append(not_examined("join-match", "no other file of this cell to compare with", where=where))
        elif rows < MIN_ROWS:
            gates.append(too_few("join-match", rows, MIN_ROWS, of="sampled rows", where=where))
        else:
            floor = SHARD_RATIO * median(others)
            gate = at_least(
                "join-match", share, floor, where=where, figures={"rows": rows, "others_ratio": median(others)},
                sentence=f"{written(share, 'ratio')} of {rows:,} {what}, {written(median(others), 'ratio')} elsewhere",
                cure="this file looks like another cell's: take it out, or move it to its own cell's folder",
            )  # fmt: skip
            gates.append(gate)
    return tuple(gates)


def coverage(windows: pl.DataFrame, events: pl.DataFrame, machines: pl.Series | None, *, cell: str) -> tuple[Gate, ...]:
    """Joined usage rows that know a request as of their end, and rows on a machine that the machine table knows."""
    return (_requests(windows, events, cell), _machines(windows, machines, cell))


def _requests(windows: pl.DataFrame, events: pl.DataFrame, cell: str) -> Gate:
    name = "coverage"
    rows = windows.join(events.select(INSTANCE).unique(), on=INSTANCE, how="semi")
    if rows.height < MIN_ROWS:
        return too_few(name, rows.height, MIN_ROWS, of="usage rows find an event", where=f"{cell} request")
    first = events.drop_nulls("request_cpu").group_by(INSTANCE).agg(pl.col("time_us").min().alias("known_us"))
    known = rows.join(first, on=INSTANCE, how="left").select(
        (pl.col("known_us") <= pl.col("end_time_us")).fill_null(value=False)
    )
    share = float(known.to_series().sum()) / rows.height
    return at_least(
        name, share, REQUEST_FLOOR, where=f"{cell} request",
        sentence=f"{written(share, 'ratio')} of {rows.height:,} joined usage rows know their request at their end",
        cure="event shards that hold the SUBMIT rows are missing, or resource_request was not read",
    )  # fmt: skip


def _machines(windows: pl.DataFrame, machines: pl.Series | None, cell: str) -> Gate:
    name, where = "coverage", f"{cell} machine"
    if machines is None or machines.len() == 0:
        return not_examined(name, "there is no machine_events file", where=where)
    placed = windows.filter(pl.col("machine_id") > 0)
    if placed.height < MIN_ROWS:
        return too_few(name, placed.height, MIN_ROWS, of="usage rows name a machine", where=where)
    share = int(placed["machine_id"].is_in(machines.unique().implode()).sum()) / placed.height
    return at_least(
        name, share, MACHINE_FLOOR, where=where,
        figures={"machines": machines.n_unique(), "no_machine_ratio": 1 - placed.height / windows.height},
        sentence=f"{written(share, 'ratio')} of {placed.height:,} usage rows on a machine find it in the machine table",
        cure="the machine table is cut or another cell's; fetch this cell's machine_events whole",
    )  # fmt: skip


def duplicate_events(events: pl.DataFrame, *, cell: str) -> Gate:
    """Rows that repeat an event of the same instance, time and type, exactly or with another missing_type."""
    if events.height < MIN_ROWS:
        return too_few("duplicate-events", events.height, MIN_ROWS, of="event rows", where=cell)
    rows = events.drop("shard", "draw", strict=False)
    exact = rows.height - rows.unique().height
    twins = rows.height - rows.unique(IDENTITY).height - exact
    share = (exact + twins) / rows.height
    return at_most(
        "duplicate-events", share, DUPLICATE_LIMIT, where=cell, figures={"exact": exact, "twins": twins},
        sentence=f"of {rows.height:,} event rows {exact:,} stand twice, {twins:,} differ from a twin in details only",
        cure="a shard may have been read twice; mend with `leadtime borg repair` (rule drop-duplicate-events)",
    )  # fmt: skip


def duplicates_dropped(read: int, dropped: int, *, cell: str) -> Gate:
    """The same for windows: ``read`` event rows, of which make-dataset left ``dropped`` exact doubles out."""
    if read < MIN_ROWS:
        return too_few("duplicate-events", read, MIN_ROWS, of="event rows", where=cell)
    return at_most(
        "duplicate-events", dropped / read, DUPLICATE_LIMIT, where=cell, figures={"exact": dropped},
        sentence=f"of {read:,} event rows {dropped:,} stood twice and were left out",
        cure="a shard may have been read twice; look at the list of sources and build this cell again",
    )  # fmt: skip


def id_overlap(collections: Mapping[str, pl.Series]) -> Gate:
    """Collections (sampled) of each cell → how many ids stand in more than one cell. Told only: the cell is a key."""
    if len(collections) < 2:
        return not_examined("id-overlap", "fewer than two cells: there is nothing to overlap with")
    ids = pl.concat([one.unique().alias("id").to_frame() for one in collections.values()])
    total = ids.n_unique()
    shared = ids.group_by("id").len().filter(pl.col("len") > 1).height
    sentence = f"{shared:,} of {total:,} collection ids stand in more than one of {len(collections)} cells"
    return reported(
        "id-overlap", float(shared), unit="ids", figures={"ids": total},
        sentence=f"{sentence}; the cell is part of every key, so they never meet",
    )  # fmt: skip
