"""Ticks → the page's part about risk: each alert, what was done for it and what not, and what came of it.

Everything is read from ticks before the clock; alerts and outcomes are the score card's (scorecard/risk_alerts.py).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leadtime.dashboard.clock_text import clock, duration, number
from leadtime.dashboard.views import DecisionView, Fate, ProposalView, Story, TickView
from leadtime.domain.reasons import Reason
from leadtime.domain.risk import RiskDriver
from leadtime.scorecard.risk_alerts import Alert, AlertOutcome, AlertRecord, record

NOT_CONNECTED = (
    "No failure model is connected: this ledger holds no score. In a replay, give one with --risk-model and a scenario "
    "in which pods fail."
)
QUIET = "No pod was at risk in this record up to the clock."
ASKED_REASONS = frozenset({Reason.POD_AT_RISK.value, Reason.NODE_AT_RISK.value, Reason.SPARE_BEFORE_FAILURE.value})
SIGNS = {
    AlertOutcome.FAILED: "✓",
    AlertOutcome.DID_NOT_FAIL: "✕",
    AlertOutcome.ENDED_OTHERWISE: "–",
    AlertOutcome.OPEN: "…",
}
MOST_ROWS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureLine:
    """One measure for an alert: what was asked, whether it was decided, and why not; ``decision`` is the first."""

    words: str
    taken: bool
    why: str
    decision: DecisionView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLine:
    """One alert as a row. Numbers are of its most probable score."""

    start_s: int
    end_s: int
    pod: str
    node: str
    horizon: str
    probability: str
    base_rate: str
    lift: str
    drivers: str
    measures: tuple[MeasureLine, ...]
    outcome: str
    sign: str
    came: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskPart:
    """The part. ``absent``: why there is nothing to show, empty otherwise; ``counts``: figure → how many."""

    model: str
    note: str
    absent: str
    counts: tuple[tuple[str, str], ...]
    refused: str
    rows: tuple[AlertLine, ...]
    left_out: int


def risk_part(seen: Story, until_s: int) -> RiskPart:
    """What the ticks of ``seen`` (all before the clock) say about risk."""
    noted = next((tick for tick in reversed(seen.ticks) if tick.risk_model), None)
    if noted is None:
        return RiskPart(model="", note="", absent=NOT_CONNECTED, counts=(), refused="", rows=(), left_out=0)
    mine = (seen.workload, None)
    scores = [score for tick in seen.ticks for score in tick.risks if score.workload in mine]
    ends = [end for tick in seen.ticks for end in tick.pod_ends if end.workload in mine]
    found = record(scores, ends, float(until_s))
    shown = found.alerts[-MOST_ROWS:]
    return RiskPart(
        model=noted.risk_model,
        note=noted.risk_note,
        absent="" if found.alerts or found.missed else QUIET,
        counts=_counts(found),
        refused=_refused(seen.ticks),
        rows=tuple(_line(alert, seen.ticks) for alert in reversed(shown)),
        left_out=len(found.alerts) - len(shown),
    )


def _counts(found: AlertRecord) -> tuple[tuple[str, str], ...]:
    kept, false = found.count(AlertOutcome.FAILED), found.count(AlertOutcome.DID_NOT_FAIL)
    precision = found.precision_ratio
    share = "not known yet" if precision is None else f"{precision * 100:.0f} % of {kept + false}"
    return (
        ("alerts", number(len(found.alerts))),
        ("hits: failed in time", number(kept)),
        ("false alarms", number(false)),
        ("ended otherwise", number(found.count(AlertOutcome.ENDED_OTHERWISE))),
        ("still open", number(found.count(AlertOutcome.OPEN))),
        ("failures missed", number(len(found.missed))),
        ("precision", share),
    )


def _line(alert: Alert, ticks: Sequence[TickView]) -> AlertLine:
    best = alert.highest
    return AlertLine(
        start_s=int(alert.first_s),
        end_s=int(alert.last_s) // 60 * 60,
        pod=alert.pod,
        node=best.node or "no node",
        horizon=duration(best.horizon_s),
        probability=_percent(best.probability),
        base_rate=_percent(best.base_rate),
        lift=f"{best.lift:.1f}\u00a0×",
        drivers=", ".join(map(_driver, best.drivers)) or "none told",
        measures=tuple(_measures(alert, ticks)),
        outcome=alert.outcome.value,
        sign=SIGNS[alert.outcome],
        came=_came(alert),
    )


def _percent(share: float) -> str:
    """Two significant digits: base rates are small."""
    return f"{share * 100:.2g} %" if share < 0.995 else f"{share * 100:.0f} %"


def _driver(driver: RiskDriver) -> str:
    value = "missing" if driver.value is None else f"{driver.value:.3g}"
    return f"{driver.feature} {value} ({driver.effect:+.1f})".replace("-", "−")


def _came(alert: Alert) -> str:
    ahead = alert.warned_ahead_s
    if ahead is not None and alert.ended_s is not None:
        return f"at {clock(int(alert.ended_s))}, {duration(ahead)} after the alert began"
    if alert.outcome is AlertOutcome.DID_NOT_FAIL:
        return f"nothing happened up to {clock(int(alert.until_s))}"
    if alert.outcome is AlertOutcome.ENDED_OTHERWISE and alert.ended_s is not None:
        return f"deleted or evicted at {clock(int(alert.ended_s))}: not known whether it would have failed"
    return f"known at {clock(int(alert.until_s))}"


def _measures(alert: Alert, ticks: Sequence[TickView]) -> Iterator[MeasureLine]:
    """No scale-down, no new placement, spare replica: the first decision for each, or the first reason against it."""
    named = re.compile(rf"(?<![\w-]){re.escape(alert.pod)}(?![\w-])")
    during = [tick for tick in ticks if alert.first_s <= tick.at_s <= alert.last_s]
    asked = (
        ("no scale-down", f"pod:{alert.pod}", Reason.POD_AT_RISK.value),
        ("no new placement", f"node:{alert.highest.node}", Reason.NODE_AT_RISK.value),
        ("a spare replica", f"workload:{alert.highest.workload}", Reason.SPARE_BEFORE_FAILURE.value),
    )
    for words, scope, reason in asked:
        wishes = [
            (tick, wish)
            for tick in during
            for wish in tick.proposals
            if wish.scope == scope and wish.why.reason == reason and named.search(wish.why.sentence)
        ]
        if wishes:
            yield _measure(words, wishes)


def _measure(words: str, wishes: list[tuple[TickView, ProposalView]]) -> MeasureLine:
    taken = next(((tick, wish) for tick, wish in wishes if wish.fate in {Fate.WON, Fate.LIMITED}), None)
    tick, wish = taken or wishes[0]
    decision = next((d for d in tick.decisions if d.scope == wish.scope), None)
    if taken is not None:
        return MeasureLine(words=words, taken=True, why=wish.action.words, decision=decision)
    why = f"{wish.fate_why.reason}: {wish.fate_why.sentence}" if wish.fate_why else "it lost"
    return MeasureLine(words=words, taken=False, why=why, decision=decision)


def _refused(ticks: Sequence[TickView]) -> str:
    """Wishes about risk that did not pass, by reason; one a tick and scope."""
    counted = Counter(
        wish.fate_why.reason
        for tick in ticks
        for wish in tick.proposals
        if wish.why.reason in ASKED_REASONS and wish.fate in {Fate.REFUSED, Fate.LOST} and wish.fate_why
    )
    return ", ".join(f"{reason} {number(n)}×" for reason, n in sorted(counted.items(), key=lambda i: (-i[1], i[0])))
