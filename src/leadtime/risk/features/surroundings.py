"""Features of the machine and of the whole cell at p, from the context's tables."""

import numpy as np
import polars as pl

from leadtime.domain.borg import WINDOW_US
from leadtime.risk.features.block import HOUR_US, Block
from leadtime.risk.features.context import POINTS
from leadtime.risk.features.declare import Builder, Feature
from leadtime.risk.features.lookups import Tally, tally
from leadtime.risk.features.steps import Timeline, Values, ratio, running_sum, timeline

STALE_US = 3 * WINDOW_US  # a machine's slot counts for 15 min
QUARTER_US = 900_000_000
SLOT = "machine sums of the newest 300 s slot that ended by p (at most 15 min ago), capacity as of p"
MACHINE = "machine events with time ≤ p; instance events there in minutes that ended by p"
CELL = "instance events of the whole cell in minutes that ended by p"


def _machines(block: Block) -> tuple[pl.DataFrame, Values]:
    """machine_id → code, and each row's code (−1: on no machine; 0, −1 and null are none)."""

    def make() -> tuple[pl.DataFrame, Values]:
        ids = block.whole("machine_id")
        known = np.unique(ids[ids > 0])
        codes = pl.DataFrame({"machine_id": known, "code": np.arange(len(known))}, schema_overrides={"code": pl.Int64})
        return codes, np.where(ids > 0, np.searchsorted(known, ids), -1)

    return block.once("machines", make)


def _slots(block: Block) -> tuple[pl.DataFrame, Timeline, Values, Values]:
    """The slots of the block's machines, and for each row its newest slot and whether it is fresh."""

    def make() -> tuple[pl.DataFrame, Timeline, Values, Values]:
        codes, code = _machines(block)
        slots = block.context.machine_slots.join(
            codes, on="machine_id", how="inner", maintain_order="left"
        )  # sorted by (machine, slot), and codes count machines up: by (code, slot) too
        line = timeline(
            slots["code"].to_numpy(), slots["slot_us"].to_numpy(), groups=max(codes.height, 1), is_sorted=True
        )
        group = np.maximum(code, 0)
        upto = line.upto(group, block.end)
        fresh = (code >= 0) & (upto > line.first(group))
        newest = np.maximum(upto - 1, 0)
        if slots.height:
            fresh &= slots["slot_us"].to_numpy()[newest] > block.end - STALE_US
        return slots, line, newest, fresh

    return block.once("slots", make)


def _slot_sum(name: str) -> Builder:
    def build(block: Block) -> Values:
        slots, _, newest, fresh = _slots(block)
        if not slots.height:
            return np.full(len(block.end), np.nan)
        return np.where(fresh, slots[name].to_numpy()[newest] / POINTS, np.nan)

    return build


def _pressure(name: str, capacity: str) -> Builder:
    total = _slot_sum(name)
    return lambda block: ratio(total(block), block.number(capacity))


def _machine_tally(block: Block, table: str, at: str, weight: str) -> Tally:
    def make() -> Tally:
        codes, code = _machines(block)
        frame: pl.DataFrame = getattr(block.context, table)
        happened = frame.filter(pl.col(weight) > 0).join(codes, on="machine_id", how="inner")
        return tally(
            happened["code"].to_numpy(), happened[at].to_numpy(), groups=codes.height,
            asked=np.maximum(code, 0), now_us=block.end, weight=happened[weight].to_numpy(),
        )  # fmt: skip

    return block.once(("machine", table, weight), make)


def _of_machine(table: str, at: str, weight: str, ask: str) -> Builder:
    def build(block: Block) -> Values:
        _, code = _machines(block)
        line = _machine_tally(block, table, at, weight)
        if ask == "count":
            values = line.count().astype(np.float64)
        elif ask == "hour":
            values = line.within(HOUR_US).astype(np.float64)
        else:
            values = line.since_h()
        return np.where(code >= 0, values, np.nan)

    return build


def _minutes(block: Block) -> tuple[Tally, Values]:
    """The cell's minutes, and for each row how many of them had ended QUARTER_US before p."""

    def make() -> tuple[Tally, Values]:
        at = block.context.minutes["minute_us"].to_numpy()
        cell, rows = (np.zeros(count, dtype=np.int64) for count in (len(at), len(block.end)))
        line = tally(cell, at, groups=1, asked=rows, now_us=block.end)
        return line, line.line.upto(rows, block.end - QUARTER_US)

    return block.once("minutes", make)


def _of_cell(weight: str, *, per_minute: bool) -> Builder:
    def build(block: Block) -> Values:
        line, before = _minutes(block)
        if not len(line.at_us):
            return np.full(len(block.end), np.nan)
        total = running_sum(block.context.minutes[weight].to_numpy()[line.line.order])
        if per_minute:
            return (total[line.upto] - total[before]) / 15.0
        return (total[line.upto] - total[line.first]).astype(np.float64)

    return build


def _feature(name: str, unit: str, formula: str, known: str, build: Builder) -> Feature:
    return Feature(name=name, unit=unit, formula=formula, known=known, build=build)


FEATURES = (
    _feature(
        "machine_cpu_pressure",
        "ratio",
        "Σ average CPU of the machine's tasks / its CPU",
        SLOT,
        _pressure("cpu", "capacity_cpu"),
    ),
    _feature(
        "machine_memory_pressure",
        "ratio",
        "Σ average memory of the machine's tasks / its memory",
        SLOT,
        _pressure("memory", "capacity_memory"),
    ),
    _feature(
        "machine_cpu_requested_ratio",
        "ratio",
        "Σ requested CPU of the machine's tasks / its CPU",
        SLOT,
        _pressure("request_cpu", "capacity_cpu"),
    ),
    _feature(
        "machine_memory_requested_ratio",
        "ratio",
        "Σ requested memory of the machine's tasks / its memory",
        SLOT,
        _pressure("request_memory", "capacity_memory"),
    ),
    _feature(
        "machine_tasks",
        "tasks",
        "tasks on the machine, each counted by its share of the slot",
        SLOT,
        _slot_sum("tasks"),
    ),
    _feature(
        "machine_removals",
        "removals",
        "REMOVE events of the machine so far",
        MACHINE,
        _of_machine("machine_changes", "time_us", "removed", "count"),
    ),
    _feature(
        "since_machine_removal_h",
        "h",
        "p − newest REMOVE of the machine",
        MACHINE,
        _of_machine("machine_changes", "time_us", "removed", "since"),
    ),
    _feature(
        "machine_failures_1h",
        "failures",
        "FAIL events on the machine in the last hour",
        MACHINE,
        _of_machine("machine_minutes", "minute_us", "failures", "hour"),
    ),
    _feature(
        "machine_evictions_1h",
        "evictions",
        "EVICT events on the machine in the last hour",
        MACHINE,
        _of_machine("machine_minutes", "minute_us", "evictions", "hour"),
    ),
    _feature(
        "cell_pending",
        "tasks",
        "tasks of the cell that wait for a machine",
        CELL,
        _of_cell("pending", per_minute=False),
    ),
    _feature(
        "cell_evictions_per_min",
        "1/min",
        "EVICT events of the cell in the last 15 min / 15",
        CELL,
        _of_cell("evictions", per_minute=True),
    ),
    _feature(
        "cell_failures_per_min",
        "1/min",
        "FAIL events of the cell in the last 15 min / 15",
        CELL,
        _of_cell("failures", per_minute=True),
    ),
)
