"""Knobs → the machines of a cell: shape, platform, when each is away, and the events that say so."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from leadtime.domain.borg import AFTER_TRACE_US, DAY_US, TRACE_START_US, MachineEventType
from leadtime.simulate.borg.chain import FLAPS_A_DAY
from leadtime.simulate.borg.knobs import Knobs
from leadtime.simulate.borg.plan import generator
from leadtime.simulate.borg.shapes import Shapes

Ints = npt.NDArray[np.int64]

ROWS_A_MACHINE = 1500  # rows of a trace for each of its machines, within the bounds below
FEWEST, MOST = 20, 12_000
PLATFORMS = 7
AWAY_US = 1_800_000_000  # mean time from REMOVE to the next ADD, 30 min
TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """``removed`` and ``added`` [machine, k] are the k-th REMOVE and the next ADD (AFTER_TRACE_US: none)."""

    id: Ints
    removed: Ints
    added: Ints
    shape: npt.NDArray[np.float64]
    platform: Ints
    counters: npt.NDArray[np.bool_]  # its platform reports CPI and MAI
    steady: Ints  # machines that are never away

    def place(self, rng: np.random.Generator, at_us: Ints) -> tuple[Ints, Ints]:
        """A machine that is there at each instant, and when it is removed next (after the instant)."""
        chosen = rng.integers(0, len(self.id), len(at_us))
        gone = (self.removed[chosen] <= at_us[:, None]).sum(1)
        for attempt in range(TRIES):
            away = np.flatnonzero(gone > (self.added[chosen] <= at_us[:, None]).sum(1))
            if not len(away):
                break
            fresh = rng.integers(0, len(self.id), len(away))
            chosen[away] = fresh if attempt < TRIES - 1 else self.steady[fresh % len(self.steady)]
            gone[away] = (self.removed[chosen[away]] <= at_us[away, None]).sum(1)
        return chosen, self.removed[chosen, gone]


def machines(knobs: Knobs, shapes: Shapes) -> Machines:
    """As many as the trace's size asks for; steady ones, and flapping ones that go about once a day."""
    rng = generator(knobs, 2)
    n = int(np.clip(knobs.rows // ROWS_A_MACHINE, FEWEST, MOST))
    flapping = rng.random(n) < knobs.flapping
    rate = np.where(flapping, max(FLAPS_A_DAY, knobs.removals_a_day), knobs.removals_a_day)
    rate[0] = 0.0  # at least one machine is always there
    if knobs.removals_a_day == 0:
        rate[:] = 0.0
    most = 4 + int(4 * max(FLAPS_A_DAY, knobs.removals_a_day) * knobs.days)
    up = (
        np.minimum(rng.exponential(1.0, (n, most)) * DAY_US / np.maximum(rate, 1e-9)[:, None], 1e14).astype(np.int64)
        + 1
    )
    away = rng.exponential(AWAY_US, (n, most)).astype(np.int64) + 1_000_000
    removed = TRACE_START_US + np.cumsum(up + away, axis=1) - away
    added = removed + away
    removed = np.where(removed > knobs.observed_until_us, AFTER_TRACE_US, removed)
    added = np.where(added > knobs.observed_until_us, AFTER_TRACE_US, added)
    removed[:, -1] = added[:, -1] = AFTER_TRACE_US
    platform = rng.choice(PLATFORMS, n)
    silent = rng.random(n) < knobs.no_counters
    return Machines(
        id=np.sort(rng.choice(900_000_000, n, replace=False)) + 1_000, removed=removed, added=added,
        shape=shapes.draw_machines(rng, n), platform=np.where(silent, platform % 2, 2 + platform % 5),
        counters=~silent, steady=np.flatnonzero(removed[:, 0] == AFTER_TRACE_US),
    )  # fmt: skip


def machine_events(knobs: Knobs, cell: Machines) -> pl.DataFrame:
    """Canonical machine_events, sorted by time: ADD at 0, then every REMOVE, ADD and UPDATE within the trace."""
    rng = generator(knobs, 3)
    n = len(cell.id)
    rows = np.arange(n)
    updates = rng.choice(n, int(rng.poisson(knobs.machine_updates_a_day * knobs.days * n)))
    pieces = [
        (rows, np.zeros(n, np.int64), MachineEventType.ADD),
        (rows.repeat(cell.removed.shape[1]), cell.removed.ravel(), MachineEventType.REMOVE),
        (rows.repeat(cell.added.shape[1]), cell.added.ravel(), MachineEventType.ADD),
        (updates, rng.integers(TRACE_START_US, knobs.observed_until_us, len(updates)), MachineEventType.UPDATE),
    ]
    machine = np.concatenate([piece[0] for piece in pieces])
    time = np.concatenate([piece[1] for piece in pieces])
    kind = np.concatenate([np.full(len(piece[0]), int(piece[2]), np.int8) for piece in pieces])
    scale = np.where(kind == MachineEventType.UPDATE, rng.uniform(0.5, 1.0, len(kind)), 1.0)
    frame = pl.DataFrame(
        {
            "time_us": time,
            "machine_id": cell.id[machine],
            "type": kind,
            "switch_id": np.array([f"switch-{number:03d}" for number in range(n // 40 + 1)])[machine // 40],
            "capacity_cpu": (cell.shape[machine, 0] * scale).astype(np.float32),
            "capacity_memory": cell.shape[machine, 1].astype(np.float32),
            "platform_id": np.array([f"platform-{letter}" for letter in "ABCDEFG"])[cell.platform[machine]],
            "missing_data_reason": np.zeros(len(kind), np.int8),
        }
    )
    return frame.filter(pl.col("time_us") < AFTER_TRACE_US).sort("time_us", "machine_id", "type")
