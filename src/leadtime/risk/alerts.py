"""Scored rows → the alerts a day's budget allows: one a run, at the first row that crosses the day's threshold.

What an on-call person sees is alerts, not rows. The threshold of a day is the budget-th largest of the day's highest
scores by run, known in full only at the day's end; a live system uses yesterday's. A run alerted once is not alerted
again. Equal scores are told apart by a hash of the run, so that ties favour nobody.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from leadtime.domain.borg import DAY_US, WINDOW_US
from leadtime.risk.measures import Array, Whole
from leadtime.risk.splits import unit_hash

RUN = ("cell", "collection_id", "instance_index", "run_number")
REFERENCE_PER_DAY = 100
NEEDS_S = (60, 300, 600, 1800)  # what an action needs: a pod beside, a warm node, a new node, a slow GPU node
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def with_runs(frame: pl.DataFrame) -> pl.DataFrame:
    """Add ``run`` (a number a run of RUN), ``day`` (p // 1 day) and ``tie`` (a hash of the run) to scored rows."""
    runs = frame.select(RUN).unique(maintain_order=True).with_row_index("run")
    runs = runs.with_columns(unit_hash(columns=RUN).alias("tie"))
    numbered = frame.join(runs, on=list(RUN), how="left", nulls_equal=True, maintain_order="left")
    return numbered.with_columns((pl.col("end_time_us") // DAY_US).alias("day"))


def budgets(rows: pl.DataFrame, per_day: int) -> dict[int, int]:
    """Day → alerts allowed: ``per_day`` times the part of the day that rows cover, at least 1."""
    day, end_us = rows["day"].to_numpy(), rows["end_time_us"].to_numpy()
    allowed = {}
    for one in np.unique(day):
        ends = end_us[day == one]
        part = min(1.0, (int(ends.max()) - int(ends.min()) + WINDOW_US) / DAY_US)
        allowed[int(one)] = max(1, round(per_day * part))
    return allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Day:
    """One day's rows by place, and its runs with the highest score of each."""

    place: Whole  # [rows of the day]
    run: Whole  # [runs of the day]
    highest: Array  # [runs of the day]
    tie: Array  # [runs of the day]


def choose(rows: pl.DataFrame, *, per_day: int, score: str = "risk_score") -> pl.DataFrame:
    """Rows that raise an alert, ordered by day and then by the run's highest score of that day, falling.

    rows: as ``with_runs`` returns them. Returns the same columns plus ``day_score`` (the run's highest of the day) and
    ``rank`` (1 … budget within the day).
    """
    return choose_each(rows, per_day=(per_day,), score=score)[per_day]


def choose_each(rows: pl.DataFrame, *, per_day: Sequence[int], score: str = "risk_score") -> dict[int, pl.DataFrame]:
    """``choose`` for several budgets at once."""
    scores, run, end_us = (rows[name].to_numpy() for name in (score, "run", "end_time_us"))
    days = _by_day(rows["day"].to_numpy(), run, scores, rows["tie"].to_numpy())
    found = {}
    for budget in per_day:
        allowed = budgets(rows, budget)
        alerted = np.zeros(int(run.max()) + 1 if len(run) else 0, dtype=bool)
        place, rank, highest = [], [], []
        for day, one in days.items():
            new = np.flatnonzero(~alerted[one.run])
            top = new[np.lexsort((one.tie[new], -one.highest[new]))][: allowed[day]]
            if not len(top):
                continue
            alerted[one.run[top]] = True
            place.append(_first_crossing(one, top, run, scores, end_us))
            rank.append(np.arange(1, len(top) + 1))
            highest.append(one.highest[top])
        found[budget] = rows[np.concatenate(place) if place else np.empty(0, np.int64)].with_columns(
            pl.Series("day_score", np.concatenate(highest) if highest else [], dtype=pl.Float64),
            pl.Series("rank", np.concatenate(rank) if rank else [], dtype=pl.UInt32),
        )
    return found


def _by_day(day: Whole, run: Whole, scores: Array, tie: Array) -> dict[int, _Day]:
    """Rows sorted into days, runs of each day with their highest score."""
    days = {}
    for one in np.unique(day):
        place = np.flatnonzero(day == one)
        place = place[np.argsort(run[place], kind="stable")]
        first = np.flatnonzero(np.diff(run[place].astype(np.int64), prepend=-1))
        days[int(one)] = _Day(
            place=place, run=run[place[first]], highest=np.maximum.reduceat(scores[place], first),
            tie=tie[place[first]],
        )  # fmt: skip
    return days


def _first_crossing(day: _Day, top: Whole, run: Whole, scores: Array, end_us: Whole) -> Whole:
    """For each of ``top`` (places in the day's runs): its earliest row at or above the day's threshold."""
    crossing = day.place[scores[day.place] >= day.highest[top].min()]
    ordered = crossing[np.lexsort((end_us[crossing], run[crossing]))]
    runs, first = np.unique(run[ordered], return_index=True)
    return np.asarray(ordered[first[np.searchsorted(runs, day.run[top])]], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class AtBudget:
    """Alerts at a budget a day: how many, how many true, failing runs there were. Ratios: None at 0 / 0."""

    per_day: int
    alerts: int
    true_alerts: int
    failing_runs: int

    @property
    def precision(self) -> float | None:
        """True alerts over alerts."""
        return self.true_alerts / self.alerts if self.alerts else None

    @property
    def recall(self) -> float | None:
        """Failing runs that were alerted within the horizon before they failed, over all failing runs."""
        return self.true_alerts / self.failing_runs if self.failing_runs else None


def precision_recall_at_k_per_day(
    rows: pl.DataFrame, *, per_day: int, score: str = "risk_score", label: str = "y"
) -> AtBudget:
    """Precision and recall when at most ``per_day`` runs a day are alerted; rows as ``with_runs`` returns them.

    An alert is true when its row's label is 1; a run fails when any of its rows has the label 1. Only full streams can
    be asked this: a sample of the negatives has fewer runs to be wrong about.
    """
    chosen = choose(rows, per_day=per_day, score=score)
    return AtBudget(
        per_day=per_day,
        alerts=chosen.height,
        true_alerts=int((chosen[label] == 1).sum()),
        failing_runs=rows.filter(pl.col(label) == 1)["run"].n_unique(),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadTimes:
    """Seconds from a true alert's p to the failure: quantiles, and the share (0–1) of at least what an action needs."""

    alerts: int
    quantiles_s: dict[float, float]
    share_at_least: dict[int, float]


def lead_time_quantiles(true_alerts: pl.DataFrame, *, needs_s: tuple[int, ...] = NEEDS_S) -> LeadTimes:
    """Lead times of true alerts (columns end_time_us, next_terminal_time_us); empty mappings where there are none."""
    lead_s = true_alerts.select(lead=(pl.col("next_terminal_time_us") - pl.col("end_time_us")) / 1e6)[
        "lead"
    ].drop_nulls()
    if lead_s.is_empty():
        return LeadTimes(alerts=0, quantiles_s={}, share_at_least={})
    return LeadTimes(
        alerts=len(lead_s),
        quantiles_s={q: float(lead_s.quantile(q, "linear") or 0.0) for q in QUANTILES},
        share_at_least={need: float((lead_s >= need).mean() or 0.0) for need in needs_s},  # type: ignore[arg-type]
    )
