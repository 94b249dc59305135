"""A check → one page that opens offline: what failed first, with its cure; then every gate and what it asks."""

from typing import Any

import jinja2

from leadtime.risk.gates import GATES, Gate, Standing, too_small
from leadtime.training.check import CheckReport

_COLUMNS = (Standing.PASSED, Standing.FAILED, Standing.ALLOWED, Standing.NOT_EXAMINED)


def check_html(report: CheckReport) -> str:
    """The page; it says the same as the report's JSON and nothing more."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("leadtime.training"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    allowed = [gate for gate in report.gates if gate.standing is Standing.ALLOWED]
    return environment.get_template("check.html.j2").render(
        report=report, verdict=verdict(report), allowed=allowed,
        counts=[(standing, report.count(standing)) for standing in _COLUMNS],
        groups=[_group(name, [gate for gate in report.gates if gate.name == name]) for name in GATES],
    )  # fmt: skip


def verdict(report: CheckReport) -> str:
    """May this be trained on? One sentence, and another where the trace is too small to tell."""
    small = too_small(gate.to_json() for gate in report.gates)
    return _verdict(report) if small is None else f"{_verdict(report)} {small}"


def _verdict(report: CheckReport) -> str:
    failed = dict.fromkeys(gate.name for gate in report.failed)
    if failed:
        what = "verdict" if len(report.failed) == 1 else "verdicts"
        return f"Do not train on this: {len(report.failed)} failed {what} ({', '.join(failed)})."
    open_ones = report.count(Standing.NOT_EXAMINED)
    said = "Nothing failed" if not report.count(Standing.ALLOWED) else "Nothing failed but what was allowed by name"
    return f"{said}; {open_ones} could not be examined." if open_ones else f"{said}; every gate was examined."


def _group(name: str, gates: list[Gate]) -> dict[str, Any]:
    return {
        "name": name, "asks": GATES[name], "gates": gates,
        "counts": [sum(gate.standing is standing for gate in gates) for standing in _COLUMNS],
        "open": any(gate.standing in (Standing.FAILED, Standing.ALLOWED) for gate in gates),
    }  # fmt: skip
