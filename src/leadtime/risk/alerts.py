"""Scored rows → the alerts a day's budget allows: one a run, at the first row that crosses the day's threshold.

What an on-call person sees is alerts, not rows. The threshold of a day is the budget-th largest of the day's highest
scores by run, known in full only at the day's end; a live system uses yesterday's. A run alerted once is not alerted
again. Equal scores are told apart by a hash of the run, so that ties favour nobody.
"""

from dataclasses import dataclass

import polars as pl

from leadtime.domain.borg import DAY_US, WINDOW_US
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
    spans = rows.group_by("day").agg(
        ((pl.max("end_time_us") - pl.min("end_time_us") + WINDOW_US) / DAY_US).alias("part")
    )
    return {int(day): max(1, round(per_day * min(1.0, part))) for day, part in sorted(spans.iter_rows())}


def choose(rows: pl.DataFrame, *, per_day: int, score: str = "risk_score") -> pl.DataFrame:
    """Rows that raise an alert, ordered by day and then by the run's highest score of that day, falling.

    rows: as ``with_runs`` returns them. Returns the same columns plus ``day_score`` (the run's highest of the day) and
    ``rank`` (1 … budget within the day).
    """
    highest = rows.group_by("day", "run").agg(pl.max(score).alias("day_score"), pl.first("tie").alias("_tie"))
    alerted: list[pl.DataFrame] = []
    before = pl.DataFrame(schema={"run": rows.schema["run"]})
    for day, budget in budgets(rows, per_day).items():
        today = highest.filter(pl.col("day") == day).join(before, on="run", how="anti")
        top = today.sort(["day_score", "_tie"], descending=[True, False]).head(budget).with_row_index("rank", offset=1)
        if top.is_empty():
            continue
        crossing = rows.filter((pl.col("day") == day) & (pl.col(score) >= top["day_score"].min()))
        first = crossing.sort("end_time_us").unique("run", keep="first", maintain_order=True)
        alerted.append(first.join(top.select("run", "day_score", "rank"), on="run", how="inner").sort("rank"))
        before = pl.concat([before, top.select("run")])
    empty = rows.clear().with_columns(day_score=pl.lit(0.0), rank=pl.lit(1, dtype=pl.get_index_type()))
    return pl.concat(alerted) if alerted else empty


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
