"""``leadtime doctor``: what is connected, what is missing, and whether leadtime fits here. See ``doctor_run``."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from leadtime.cli import demand_options
from leadtime.cli.options import parse_duration, parse_instant, parse_server_url
from leadtime.sources.demand_file_options import DemandFileOptions, OnDuplicate, ValueUnit

EXAMPLE = (
    "\b\nExamples:\n  leadtime doctor --prometheus http://prometheus:9090 --namespace serving\n"
    "  leadtime doctor --demand mongo-01.csv --time-column timestamp \\\n"
    "    --value-column value --lead 40m\n"
    "  leadtime doctor --demand rps.csv --time-column t --value-column rps --ledger ticks.sqlite"
)
FOUND_EXIT = 1

_Demand = Annotated[list[Path] | None, typer.Option(metavar="FILE", help="CSV or Parquet; repeatable.")]
_Prometheus = Annotated[
    str | None, typer.Option(parser=parse_server_url, metavar="URL", help="A Prometheus, with its path prefix.")
]
_Namespace = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only workloads in it; repeatable.")]
_Query = Annotated[list[str] | None, typer.Option(metavar="PROMQL", help="Demand, instead of templates; repeatable.")]
_TokenFile = Annotated[Path | None, typer.Option(metavar="FILE", help="Sent as bearer token.")]
_UNTIL_HELP = "Look at the time before; now if left out."
_Until = Annotated[datetime | None, typer.Option(parser=parse_instant, metavar="TIME", help=_UNTIL_HELP)]
_Ledger = Annotated[Path | None, typer.Option(metavar="FILE", help="A ledger: the lead times it learned.")]
_Lead = Annotated[
    timedelta | None, typer.Option(parser=parse_duration, metavar="DURATION", help="Asked for to pod Ready, P90: 40m.")
]
_PodLead = Annotated[
    timedelta | None, typer.Option(parser=parse_duration, metavar="DURATION", help="The same on a node that stands.")
]
_CAPACITY_HELP = "Demand one pod serves; learned where it can be, else a hundredth of the peak."
_Capacity = Annotated[float | None, typer.Option(metavar="RPS", help=_CAPACITY_HELP)]
_PodsColumn = Annotated[str | None, typer.Option(metavar="COL", help="Column of ready pods, to learn capacity ...")]
_UseColumn = Annotated[str | None, typer.Option(metavar="COL", help="... from their mean utilisation (0-1) ...")]
_LatencyColumn = Annotated[str | None, typer.Option(metavar="COL", help="... or latency in s.")]
_Gpus = Annotated[int, typer.Option("--gpus-per-pod", min=0, max=64, metavar="N", help="GPUs of one pod.")]
_CostFirst = Annotated[bool, typer.Option("--cost-first", help="Cost comes before readiness here.")]
_Policy = Annotated[Path | None, typer.Option(metavar="FILE", help="Thresholds; 'leadtime policy show' lists them.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the findings as JSON on stdout.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    """The command line as typed values; ``file`` None where no demand file is given."""

    prometheus: str | None
    namespaces: tuple[str, ...]
    query: tuple[str, ...]
    token_file: Path | None
    until: datetime | None
    demand: tuple[Path, ...]
    file: DemandFileOptions | None
    pods_column: str | None
    utilisation_column: str | None
    latency_column: str | None
    ledger: Path | None
    lead_s: float | None
    pod_lead_s: float | None
    capacity_per_pod: float | None
    gpus_per_pod: int
    cost_first: bool
    policy_path: Path | None
    json: bool


def doctor(
    *,
    prometheus: _Prometheus = None, namespace: _Namespace = None, query: _Query = None,
    token_file: _TokenFile = None, until: _Until = None, demand: _Demand = None,
    time_column: demand_options.OptionalTimeColumn = None, value_column: demand_options.OptionalValueColumn = None,
    time_unit: demand_options.TimeUnit = None, start: demand_options.Start = None,
    time_zone: demand_options.TimeZone = None, group_by: demand_options.GroupBy = None,
    aggregate: demand_options.Aggregate = None, on_duplicate: demand_options.OnDuplicate = OnDuplicate.ERROR,
    value_unit: demand_options.ValueUnit = ValueUnit.RPS, where: demand_options.Where = None,
    pods_column: _PodsColumn = None, utilisation_column: _UseColumn = None, latency_column: _LatencyColumn = None,
    ledger: _Ledger = None, lead: _Lead = None, pod_lead: _PodLead = None, capacity_per_pod: _Capacity = None,
    gpus_per_pod: _Gpus = 1, cost_first: _CostFirst = False, policy: _Policy = None, json: _Json = False,
) -> None:  # fmt: skip
    """Say what is connected, what is missing, and whether leadtime fits here (exit 1 when it does not)."""
    from leadtime.cli import doctor_run

    file = None
    if demand:
        if time_column is None or value_column is None:
            raise typer.BadParameter("--demand needs --time-column and --value-column")
        file = demand_options.file_options(
            time_column=time_column, value_column=value_column, time_unit=time_unit, start=start,
            time_zone=time_zone, group_by=group_by, aggregate=aggregate, on_duplicate=on_duplicate,
            value_unit=value_unit, where=where,
        )  # fmt: skip
    request = DoctorRequest(
        prometheus=prometheus, namespaces=tuple(namespace or ()), query=tuple(query or ()), token_file=token_file,
        until=until, demand=tuple(demand or ()), file=file, pods_column=pods_column,
        utilisation_column=utilisation_column, latency_column=latency_column, ledger=ledger,
        lead_s=_seconds("--lead", lead), pod_lead_s=_seconds("--pod-lead", pod_lead),
        capacity_per_pod=capacity_per_pod, gpus_per_pod=gpus_per_pod, cost_first=cost_first, policy_path=policy,
        json=json,
    )  # fmt: skip
    _check(request)
    if doctor_run.run(request):
        raise typer.Exit(FOUND_EXIT)


def _seconds(option: str, duration: timedelta | None) -> float | None:
    if duration is not None and duration.total_seconds() <= 0:
        raise typer.BadParameter(f"{option} is 0 s, must be above 0")
    return None if duration is None else duration.total_seconds()


def _check(request: DoctorRequest) -> None:
    """Options that contradict each other. Raises typer.BadParameter."""
    if not request.demand and request.prometheus is None:
        raise typer.BadParameter("give --prometheus URL or --demand FILE: there is nothing to look at")
    if request.prometheus is None and (request.query or request.namespaces or request.token_file or request.until):
        raise typer.BadParameter("--query, --namespace, --token-file and --until are about a server: give --prometheus")
    demand_options.refuse_capacity(request.capacity_per_pod)
    if request.pod_lead_s is not None and request.lead_s is None:
        raise typer.BadParameter("--pod-lead is a part of --lead: give that too")
    if request.pod_lead_s is not None and request.lead_s is not None and request.pod_lead_s > request.lead_s:
        raise typer.BadParameter(f"--pod-lead is {request.pod_lead_s:g} s and --lead {request.lead_s:g} s; swap them")
    learns = (request.utilisation_column, request.latency_column)
    if (request.pods_column is None) != (learns == (None, None)):
        raise typer.BadParameter(
            "to learn capacity give --pods-column and one of --utilisation-column, --latency-column"
        )
    if request.pods_column is not None and request.file is not None and request.file.group_by is not None:
        raise typer.BadParameter("--pods-column counts all pods: it cannot go with --group-by")
