"""``leadtime replay``: a demand file through the loop in virtual time → score card. The work is in ``replay_run``."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from leadtime.cli import demand_options
from leadtime.cli.options import ReplayOptions, parse_duration, parse_folder, parse_instant
from leadtime.sources.demand_file_options import OnDuplicate, ValueUnit

EXAMPLE = (
    "\b\nExample:\n  leadtime replay --demand ingress-01.csv --time-column timestamp \\\n"
    "    --value-column value --capacity-per-pod 30000 --scenario gpu-40min \\\n    --out out"
)
WARM_UP = timedelta(days=7)

_Demand = Annotated[Path, typer.Option(metavar="FILE", help="CSV or Parquet; at most 200 MB and 5,000,000 rows.")]
_Capacity = Annotated[float, typer.Option(metavar="RPS", help="Requests/s one ready pod serves.")]
_Scenario = Annotated[str, typer.Option(metavar="NAME|FILE", help="Cluster and stage times, such as gpu-40min.")]
_OUT_HELP = "Folder for report.json, report.html and ticks.sqlite."
_Out = Annotated[Path, typer.Option(parser=parse_folder, metavar="DIR", help=_OUT_HELP)]
_Policy = Annotated[Path | None, typer.Option(metavar="FILE", help="Thresholds; 'leadtime policy show' lists them.")]
_KillAt = Annotated[
    datetime | None, typer.Option(parser=parse_instant, metavar="TIME", help="Throw the kill switch then.")
]
_WARM_UP_HELP = "Seen but not scored at the beginning, such as 1h; 7d if left out."
_WarmUp = Annotated[timedelta | None, typer.Option(parser=parse_duration, metavar="DURATION", help=_WARM_UP_HELP)]
_RISK_HELP = "Failure model that 'leadtime borg train' published; needs a scenario with failures, such as gpu-failures."
_RiskModel = Annotated[Path | None, typer.Option(parser=parse_folder, metavar="DIR", help=_RISK_HELP)]
_Seed = Annotated[int, typer.Option(min=0, help="Which draw; equal seeds give equal bytes.")]
_Json = Annotated[bool, typer.Option("--json", help="Print report.json on stdout too.")]


def replay(
    *,
    demand: _Demand,
    time_column: demand_options.TimeColumn,
    value_column: demand_options.ValueColumn,
    capacity_per_pod: _Capacity,
    scenario: _Scenario,
    out: _Out,
    time_unit: demand_options.TimeUnit = None,
    start: demand_options.Start = None,
    time_zone: demand_options.TimeZone = None,
    group_by: demand_options.GroupBy = None,
    aggregate: demand_options.Aggregate = None,
    on_duplicate: demand_options.OnDuplicate = OnDuplicate.ERROR,
    value_unit: demand_options.ValueUnit = ValueUnit.RPS,
    where: demand_options.Where = None,
    policy: _Policy = None,
    kill_at: _KillAt = None,
    warm_up: _WarmUp = None,
    risk_model: _RiskModel = None,
    seed: _Seed = 0,
    json: _Json = False,
) -> None:
    """Replay a demand series beside HPA alone and beside an oracle."""
    from leadtime.cli import replay_run

    demand_options.refuse_capacity(capacity_per_pod, "requests/s")
    file = demand_options.file_options(
        time_column=time_column, value_column=value_column, time_unit=time_unit, start=start, time_zone=time_zone,
        group_by=group_by, aggregate=aggregate, on_duplicate=on_duplicate, value_unit=value_unit, where=where,
    )  # fmt: skip
    options = ReplayOptions(
        demand=demand, file=file, capacity_per_pod_rps=capacity_per_pod, scenario=scenario,
        policy_path=policy, kill_at=kill_at, warm_up=WARM_UP if warm_up is None else warm_up, seed=seed, out=out,
        json=json, risk_model=risk_model,
    )  # fmt: skip
    replay_run.run(options)
