"""``leadtime policy check | show | explain``: thresholds as a person, or a pipe, reads them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadtime.cli.options import parse_duration_s

if TYPE_CHECKING:
    from leadtime.policy.reach import WorkloadNumbers

app = typer.Typer(help="Thresholds: check a file, show what holds, explain one.", no_args_is_help=True)
CHECK_EXAMPLE = (
    "\b\nExample:\n  leadtime policy check serving.yaml --min 8 --max 300 \\\n    --capacity-per-pod 20 --peak 1400"
)
SHOW_EXAMPLE = "\b\nExamples:\n  leadtime policy show --policy serving.yaml\n  leadtime policy show --json"
EXPLAIN_EXAMPLE = "\b\nExample:\n  leadtime policy explain scaling.surge_pods_added_per_min"
FOUND_EXIT = 1

_File = Annotated[Path, typer.Argument(metavar="FILE", help="A policy, YAML or JSON.")]
_Policy = Annotated[Path | None, typer.Option(metavar="FILE", help="A policy; the default policy if left out.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
_Min = Annotated[int | None, typer.Option("--min", min=0, metavar="PODS", help="The HPA's minReplicas.")]
_Max = Annotated[int | None, typer.Option("--max", min=1, metavar="PODS", help="The HPA's maxReplicas.")]
_Capacity = Annotated[float | None, typer.Option(min=1e-9, metavar="RPS", help="Demand one ready pod serves.")]
_Peak = Annotated[float | None, typer.Option(min=0, metavar="RPS", help="Demand at the peak.")]
_Low = Annotated[float | None, typer.Option(min=0, metavar="RPS", help="Demand at the low.")]
_PodsNow = Annotated[int | None, typer.Option(min=0, metavar="PODS", help="Pods before the rise.")]
_HpaTarget = Annotated[float | None, typer.Option(min=0.01, max=10, metavar="RATIO", help="What the HPA aims at: 0.7.")]
_Highest = Annotated[
    float | None, typer.Option(min=0.01, max=100, metavar="RATIO", help="The most a saturated pod's metric shows.")
]
_NodeLead = Annotated[
    float | None, typer.Option(parser=parse_duration_s, metavar="DURATION", help="Request to node ready, P90: 40m.")
]
_PodLead = Annotated[
    float | None, typer.Option(parser=parse_duration_s, metavar="DURATION", help="Bound to pod Ready, P90: 10m.")
]


@app.command("check", epilog=CHECK_EXAMPLE)
def check(
    *,
    file: _File,
    min_replicas: _Min = None,
    max_replicas: _Max = None,
    capacity_per_pod: _Capacity = None,
    peak: _Peak = None,
    low: _Low = None,
    pods_now: _PodsNow = None,
    hpa_target: _HpaTarget = None,
    highest_utilisation: _Highest = None,
    node_lead: _NodeLead = None,
    pod_lead: _PodLead = None,
    json: _Json = False,
) -> None:
    """Check a policy, and which thresholds a workload can never reach or leave (exit 1 when one matters)."""
    from leadtime.cli import policy_run
    from leadtime.policy.reach import WorkloadNumbers

    numbers = WorkloadNumbers(
        min_replicas=min_replicas, max_replicas=max_replicas, capacity_per_pod=capacity_per_pod, peak_demand=peak,
        low_demand=low, pods_now=pods_now, hpa_target_ratio=hpa_target,
        highest_utilisation_ratio=highest_utilisation, node_lead_s=node_lead, pod_lead_s=pod_lead,
    )  # fmt: skip
    _refuse_crossed(numbers)
    if policy_run.check(file, numbers, as_json=json):
        raise typer.Exit(FOUND_EXIT)


def _refuse_crossed(numbers: "WorkloadNumbers") -> None:
    """Numbers that contradict each other would give findings about a workload that cannot be."""
    if None not in {numbers.min_replicas, numbers.max_replicas} and numbers.min_replicas > numbers.max_replicas:  # type: ignore[operator]
        raise typer.BadParameter(f"--min is {numbers.min_replicas} and --max {numbers.max_replicas}; swap them")
    if None not in {numbers.low_demand, numbers.peak_demand} and numbers.low_demand > numbers.peak_demand:  # type: ignore[operator]
        raise typer.BadParameter(f"--low is {numbers.low_demand:g} and --peak {numbers.peak_demand:g}; swap them")


@app.command("show", epilog=SHOW_EXAMPLE)
def show(*, policy: _Policy = None, json: _Json = False) -> None:
    """Show every threshold that holds: value, unit, and whether it differs from the default."""
    from leadtime.cli import policy_run

    policy_run.show(policy, as_json=json)


@app.command("explain", epilog=EXPLAIN_EXAMPLE)
def explain(
    *,
    field: Annotated[str, typer.Argument(metavar="FIELD", help="A threshold, such as scaling.replica_cap.")],
    json: _Json = False,
) -> None:
    """Explain one threshold: unit, bounds, default and its reason, rules, and what it does at which value."""
    from leadtime.cli import policy_run

    policy_run.explain(field, as_json=json)
