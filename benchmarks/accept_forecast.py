"""Do forecasts earn the right to act? Every series of the baseline table → backtest → one table with verdicts.

Run: python benchmarks/accept_forecast.py [--series NAME …] [--rivals] [--stride N] [--dir DIR] [--json].
What a model said of a series stays in DIR/said and is not asked again: the same line continues a run that was stopped,
and choosing and judging can be changed without it. After a change of a model delete its files there.
What must hold for each series (the last column names what does not; exit 1 when something does not), *served* being the
champion with step-down:

| line | holds when |
|---|---|
| hits | served hits no less than the better naive forecast by more than 2 SE |
| model | nor does the champion's model by itself, without step-down |
| skill | served, where ceiling − naive is 3 points on minutes: skill ≥ 0 − 2 SE |
| anchor | the same skill ≥ that of a plain LightGBM − 2 SE, on the series it was measured on |
| short | served's shortfall at last value's pod-hours is no more than last value's by more than 2 SE |
| cover | 87 to 93 % of actuals inside the interval stated at 90 % |
| width | its mean width ≤ that of an interval around last value scaled to the same coverage |

and for all together: mean skill on the anchor's series ≥ the anchor's mean + 0.10; at least eight series covered, also
in the 200 origins after level shifts; and with ``--rivals`` hits ahead of every rival's in the mean, on its origins.
SE: paired differences by blocks of six hours. World Cup, Twitter and NASA take minutes each.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from accept_forecast_lines import POLICY, line_of
from accept_forecast_table import judged, summary, table
from forecast_series import Named, every_series
from leadtime.domain.errors import LeadtimeError
from leadtime.training.backtest.plan import BacktestOptions
from leadtime.training.manifest import write_json


def told(what: str, done: int, total: int | None, unit: str = "") -> None:
    """Progress on one line of stderr, where somebody looks at it."""
    if not sys.stderr.isatty():
        return
    sys.stderr.write(f"\r\x1b[K  {what}: {done:,}{f' of {total:,}' if total else ''} {unit}")
    sys.stderr.flush()


def measured(one: Named, data: Path, folder: Path, options: BacktestOptions, *, rivals: bool) -> dict[str, Any]:
    """One series → its figures; a series that is refused says why."""
    shelf = folder / (f"said-every-{options.stride}" if options.stride > 1 else "said")
    try:
        found = line_of(one.load(data), shelf, options, told, with_rivals=rivals)
        sys.stderr.write(f"\r  {one.name}: {found['cpu_s']:,.0f} s of CPU\n")
    except LeadtimeError as error:
        found = {"refused": str(error)}
    line = judged({"name": one.name} | found)
    write_json(folder / f"{one.name}.json", line)
    return line


def main() -> None:
    about = (__doc__ or "").splitlines()[0]
    known = {one.name: one for one in every_series()}
    shelf = os.environ.get("LEADTIME_DATA_DIR", "../shared/data")
    asked = argparse.ArgumentParser(description=about)
    asked.add_argument("--series", action="append", choices=sorted(known), metavar="NAME", help="repeatable; else all")
    asked.add_argument("--rivals", action="store_true", help="other people's methods on the same origins (slow)")
    asked.add_argument("--stride", type=int, default=1, help="only every N-th origin, for a quick look")
    asked.add_argument("--data", type=Path, default=Path(shelf), help="folder of the real series")
    asked.add_argument("--dir", type=Path, default=Path("accept-forecast"), help="where finished series stay")
    asked.add_argument("--json", action="store_true", help="print lines and summary as JSON")
    given = asked.parse_args()
    given.dir.mkdir(parents=True, exist_ok=True)
    options = BacktestOptions(
        target_ratio=POLICY.scaling.target_utilisation_ratio, level_ratio=POLICY.forecast.level_ratio,
        stride=given.stride,
    )  # fmt: skip
    lines, names = [], list[str](given.series or known)
    for name in names:
        lines.append(measured(known[name], given.data, given.dir, options, rivals=given.rivals))
        write_json(given.dir / "table.json", {"lines": lines, "summary": summary(lines)})
        (given.dir / "table.md").write_text(table(lines), encoding="utf-8")
    everything: dict[str, Any] = {"lines": lines, "summary": summary(lines)}
    print(json.dumps(everything, indent=2) if given.json else table(lines))
    missed = [one["name"] for one in lines if not all(one["verdicts"].values())]
    sys.exit(1 if missed or not all(everything["summary"]["verdicts"].values()) else 0)


if __name__ == "__main__":
    main()
