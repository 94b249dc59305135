"""A diagnosis → tables on the terminal, and the same as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from leadtime.cli.doctor_series import Checkup
from leadtime.domain.time_window import from_epoch, rfc3339
from leadtime.forecast.fits_here import Fit, FitFinding

if TYPE_CHECKING:
    from leadtime.cli.doctor_prometheus import SignalFound
    from leadtime.cli.doctor_run import Diagnosis

SCHEMA = "leadtime.doctor/1"
MARKS = {Fit.FITS: "+", Fit.PARTLY: "~", Fit.NOT_YET: "!", Fit.NOT_KNOWN: "?", Fit.DOES_NOT_FIT: "-"}


def show(out: Console, diagnosis: "Diagnosis") -> None:
    """Connections, what leadtime may do, and one table a workload with the verdict above it."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "connection", ""):
        table.add_column(heading, overflow="fold")
    for one in diagnosis.connections:
        mark = {True: "+", False: "!", None: "·"}[one.ok]
        table.add_row(mark, escape(one.what), escape(one.sentence))
    out.print(table)
    for signal in diagnosis.signals:
        out.print(_signal(signal), soft_wrap=True)
    out.print(f"\nleadtime may do: {escape(diagnosis.may_do)}")
    for checkup in diagnosis.checkups:
        _show_checkup(out, checkup)


def _signal(one: "SignalFound") -> str:
    mark = "+" if one.ok else "!"
    return f"{mark}  {one.signal} (for {one.needed_for}): {escape(one.sentence)}"


def _show_checkup(out: Console, checkup: Checkup) -> None:
    seen = checkup.observed
    out.print(f"\n[bold]{escape(checkup.name)}[/bold]: {escape(checkup.verdict.sentence)}")
    out.print(f"  {rfc3339(from_epoch(seen.from_s))} to {rfc3339(from_epoch(seen.until_s))}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "check", "answer", "because"):
        table.add_column(heading, overflow="fold")
    for finding in checkup.verdict.findings:
        table.add_row(MARKS[finding.fit], finding.check, finding.fit.value, escape(finding.sentence))
    for name, sentence in _more(checkup):
        table.add_row("", name, "", escape(sentence))
    out.print(table)


def _more(checkup: Checkup) -> Sequence[tuple[str, str]]:
    """What is said beside the checks."""
    found = []
    if checkup.plans is not None:
        alone, *others = checkup.plans.scores
        text = "; ".join(
            f"{one.name} {one.shortfall_minutes:,} min at {one.pod_hours_ratio_to_hpa:.2f} ×" for one in others
        )
        found.append(("plans", f"HPA alone {alone.shortfall_minutes:,} min short; {text} its pod-hours"))
    if checkup.buffer is not None:
        found.append(("buffer", f"of {checkup.buffer_kind}: {checkup.buffer.sentence}"))
    if checkup.capacity is not None:
        found.append(("capacity", checkup.capacity.sentence))
    found.extend(("note", one) for one in checkup.notes)
    return found


def encode(diagnosis: "Diagnosis") -> str:
    """The JSON text, with a newline at its end."""
    fields = {
        "schema": SCHEMA,
        "found": diagnosis.found,
        "connections": [asdict(one) for one in diagnosis.connections],
        "signals": [asdict(one) for one in diagnosis.signals],
        "may_do": diagnosis.may_do,
        "workloads": [_fields(one) for one in diagnosis.checkups],
    }
    return json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _fields(checkup: Checkup) -> dict[str, Any]:
    seen, verdict = checkup.observed, checkup.verdict
    return {
        "name": checkup.name,
        "source": checkup.source,
        "fit": verdict.fit.value,
        "sentence": verdict.sentence,
        "from": rfc3339(from_epoch(seen.from_s)),
        "until": rfc3339(from_epoch(seen.until_s)),
        "history_s": seen.history_s,
        "step_s": seen.step_s,
        "gap_ratio": seen.gap_ratio,
        "checks": [_check(one) for one in verdict.findings],
        "explained": _as_dict(seen.explained),
        "foresight": _as_dict(seen.foresight),
        "lead": _as_dict(seen.lead),
        "capacity_per_pod": checkup.sized.per_pod,
        "capacity_told_by": checkup.sized.told_by,
        "capacity": _as_dict(checkup.capacity),
        "plans": _as_dict(checkup.plans),
        "buffer": _as_dict(checkup.buffer),
        "buffer_kind": checkup.buffer_kind,
        "notes": list(checkup.notes),
    }


def _check(one: FitFinding) -> dict[str, Any]:
    return {**asdict(one), "fit": one.fit.value}


def _as_dict(value: Any) -> dict[str, Any] | None:
    return None if value is None else asdict(value)
