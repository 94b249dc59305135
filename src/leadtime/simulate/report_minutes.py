"""A world's columns → minute rows, for the ledger (every minute) and for the report (thinned when the span is long).

A row at ``at`` holds the pods and nodes that stood at that instant (what the step that ends there left; in the first
row the first step), and the demand and requests of [at, at + step). Pods are never averaged: half a pod is nothing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from leadtime.domain.time_window import from_epoch, rfc3339
from leadtime.ledger.records import MinuteRow
from leadtime.scorecard.run import FloatColumn, IntColumn, WorldRun
from leadtime.simulate.report_fields import with_reasons

MINUTE_S = 60
ALL_MINUTES_UP_TO_S = 2 * 86_400
MAX_ROWS = 3000


@dataclass(frozen=True, slots=True, kw_only=True)
class Minutes:
    """Rows ``step_s`` apart."""

    step_s: int
    rows: tuple[MinuteRow, ...]


def minutes(run: WorldRun, workload: str) -> Minutes:
    """Rows a minute apart up to two days, beyond that so far apart that there are at most 3,000."""
    columns = run.workloads[workload]
    span_s = len(columns.ready) * columns.step_s
    step_s = MINUTE_S
    if span_s > ALL_MINUTES_UP_TO_S:
        step_s *= -(-span_s // (MAX_ROWS * MINUTE_S))
    return Minutes(step_s=step_s, rows=minute_rows(run, workload, step_s=step_s))


def minute_rows(run: WorldRun, workload: str, *, step_s: int = MINUTE_S) -> tuple[MinuteRow, ...]:
    """Rows ``step_s`` apart from the run's start on; the last one may cover less. step_s: a multiple of the run's."""
    columns = run.workloads[workload]
    if step_s % columns.step_s:
        raise ValueError(f"thinning rows: {step_s} s is no multiple of the run's step of {columns.step_s} s")
    begins = np.arange(0, len(columns.ready), step_s // columns.step_s)
    at_instant = np.maximum(begins - 1, 0)
    scored = ~np.isnan(columns.demand_rps)
    known = np.add.reduceat(scored.astype(np.float64), begins)
    demand = np.add.reduceat(np.where(scored, columns.demand_rps, 0.0), begins)
    served = np.add.reduceat(np.where(scored, columns.arrived - columns.unserved, 0.0), begins)
    unserved = np.add.reduceat(np.where(scored, columns.unserved, 0.0), begins)
    stages = _stages(run, columns.pool)
    return tuple(
        MinuteRow(
            at=from_epoch(columns.start_s + int(begin) * columns.step_s),
            demand=_mean(demand, known, i),
            served=float(served[i]) if known[i] else None,
            unserved=float(unserved[i]) if known[i] else None,
            wanted=int(columns.wanted[step]),
            ready=int(columns.ready[step]),
            starting=int(columns.starting[step]),
            pending=int(columns.pending[step]),
            floor=int(columns.floor[step]),
            nodes_by_stage={stage: int(counts[step]) for stage, counts in stages.items()},
        )
        for i, (begin, step) in enumerate(zip(begins, at_instant, strict=True))
    )


def as_json(row: MinuteRow) -> dict[str, Any]:
    """A row as the report has it; where the demand series has no value, demand and requests are null with a reason."""
    written: dict[str, Any] = {
        "at": rfc3339(row.at),
        "wanted": row.wanted,
        "ready": row.ready,
        "starting": row.starting,
        "pending": row.pending,
        "nodes_by_stage": dict(row.nodes_by_stage),
    }
    return written | with_reasons(
        {"demand_rps": row.demand, "unserved_requests": row.unserved},
        dict.fromkeys(("demand_rps", "unserved_requests"), "the demand series has no value here"),
    )


def _stages(run: WorldRun, pool: str | None) -> dict[str, IntColumn]:
    """Nodes by stage of the workload's pool; over all pools where the run does not say which is its own."""
    stages: dict[str, IntColumn] = {}
    for name, columns in run.pools.items():
        if pool in (None, name):
            for stage, counts in columns.nodes_by_stage.items():
                stages[stage] = counts if stage not in stages else stages[stage] + counts
    return stages


def _mean(sums: FloatColumn, counts: FloatColumn, i: int) -> float | None:
    return float(sums[i] / counts[i]) if counts[i] else None
