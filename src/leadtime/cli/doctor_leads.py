"""A ledger, or what the user says → the lead time of a workload and where that number comes from."""

from pathlib import Path
from typing import Any

from leadtime.cli.doctor import DoctorRequest
from leadtime.domain.lead_time import LeadTime
from leadtime.domain.refs import WorkloadRef
from leadtime.forecast.fits_here import Lead
from leadtime.ledger.reader import LedgerReader


def leads_in(ledger: Path) -> tuple[LeadTime, ...]:
    """The lead times the newest tick of ``ledger`` believed in, one a workload. Raises BadLedger."""
    with LedgerReader(ledger) as reader:
        times = reader.tick_times()
        if not times:
            return ()
        return tuple(_lead(one) for one in reader.tick(times[-1])["assessments"])


def _lead(assessment: dict[str, Any]) -> LeadTime:
    lead, ref = assessment["lead"], assessment["ref"]
    return LeadTime(
        workload=WorkloadRef(namespace=ref["namespace"], name=ref["name"], kind=ref["kind"]), pool=lead["pool"],
        node_p50_s=lead["node_p50_s"], node_p90_s=lead["node_p90_s"], pod_p50_s=lead["pod_p50_s"],
        pod_p90_s=lead["pod_p90_s"], total_p90_s=lead["total_p90_s"], stages=(), learned_from=lead["learned_from"],
    )  # fmt: skip


def lead_for(request: DoctorRequest, leads: tuple[LeadTime, ...], name: str) -> Lead | None:
    """What the user stated, else what was learned of the workload called ``name``, else the longest lead learned."""
    if request.lead_s is not None:
        return Lead(total_s=request.lead_s, pod_s=request.pod_lead_s, told_by="as stated")
    mine = [lead for lead in leads if name in {lead.workload.name, lead.workload.key}]
    chosen = max(mine or leads, key=lambda lead: lead.total_p90_s, default=None)
    if chosen is None:
        return None
    whose = f"learned of {chosen.workload.key} on {chosen.pool}: {chosen.learned_from}"
    return Lead(total_s=chosen.total_p90_s, pod_s=chosen.pod_p90_s, told_by=whose)
