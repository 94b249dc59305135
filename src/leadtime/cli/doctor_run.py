"""What ``leadtime doctor`` does: demand, ledger and policy → what is connected, what is missing, whether it fits."""

import sys
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leadtime.cli import console, doctor_show
from leadtime.cli.doctor import DoctorRequest
from leadtime.cli.doctor_leads import lead_for, leads_in
from leadtime.cli.doctor_series import Checkup, Patient, examine
from leadtime.domain.errors import WrongUse
from leadtime.domain.lead_time import LeadTime
from leadtime.forecast.capacity import CapacityMinutes
from leadtime.forecast.fits_here import Fit
from leadtime.forecast.foresight import Recorded
from leadtime.policy.files import load_policy
from leadtime.policy.schema import Policy, Stage
from leadtime.sources.demand_file import read_demand
from leadtime.sources.demand_file_options import DemandFileOptions, ValueUnit
from leadtime.training.backtest.series import from_file

if TYPE_CHECKING:
    from leadtime.cli.doctor_prometheus import Found, ServerFound, SignalFound

EXTRAS = {
    "forecast": ("onnxruntime", "learned demand models"),
    "calendar": ("holidays", "holidays in the forecast"),
    "train": ("xgboost", "training of demand and failure models"),
    "risk": ("onnxruntime", "failure models"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One thing leadtime can be connected to: ``ok`` None where it was not asked for."""

    what: str
    ok: bool | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Diagnosis:
    """All the doctor says. ``may_do``: what leadtime is allowed to write under the policy."""

    connections: tuple[Connection, ...]
    may_do: str
    signals: "tuple[SignalFound, ...]"
    checkups: tuple[Checkup, ...]

    @property
    def found(self) -> bool:
        """True where a workload does not fit (yet), or something needed is not known."""
        return any(one.verdict.fit not in {Fit.FITS, Fit.PARTLY} for one in self.checkups)


def run(request: DoctorRequest) -> bool:
    """Print the diagnosis; True when there is something the user asked to be told of (exit 1).

    Raises BadDemandFile, BadLedger, BadPolicy, WrongUse.
    """
    policy = load_policy(request.policy_path)
    leads = () if request.ledger is None else leads_in(request.ledger)
    out = console.stderr()
    patients = [_patient(path, request, leads) for path in request.demand]
    server = _server(request, policy)
    if server is not None:
        patients += [_served(one, request, leads) for one in server.series]
    with console.progress_bars(out) as bars:
        checkups = []
        for patient in patients:
            task = bars.add_task("waiting", name=patient.name, total=1.0)

            def note(what: str, share: float, task: object = task) -> None:
                bars.update(task, description=what, completed=share)  # type: ignore[arg-type]

            checkups.append(examine(patient, policy, note))
    diagnosis = Diagnosis(
        connections=_connections(request, leads, server),
        signals=() if server is None else server.signals,
        may_do=_may_do(policy),
        checkups=tuple(checkups),
    )
    doctor_show.show(out, diagnosis)
    if request.json:
        sys.stdout.write(doctor_show.encode(diagnosis))
    return diagnosis.found


def _patient(path: Path, request: DoctorRequest, leads: tuple[LeadTime, ...]) -> Patient:
    assert request.file is not None
    series = from_file(read_demand(path, request.file), path.name)
    return Patient(
        name=path.name, source=str(path),
        series=Recorded(start_s=series.start_s, step_s=series.step_s, values=series.values),
        lead=lead_for(request, leads, path.stem), capacity_per_pod=request.capacity_per_pod,
        capacity_minutes=_capacity_minutes(path, request), gpus_per_pod=request.gpus_per_pod,
        cost_first=request.cost_first,
    )  # fmt: skip


def _server(request: DoctorRequest, policy: Policy) -> "ServerFound | None":
    """What the server of ``--prometheus`` has, up to ``--until`` or now; None where none is named."""
    if request.prometheus is None:
        return None
    from leadtime.cli.doctor_prometheus import read_server

    as_of = datetime.now(UTC) if request.until is None else request.until
    return read_server(request, as_of, policy.forecast.max_history_days)


def _served(found: "Found", request: DoctorRequest, leads: tuple[LeadTime, ...]) -> Patient:
    return Patient(
        name=found.name, source=found.source, series=found.series, lead=lead_for(request, leads, found.name),
        capacity_per_pod=request.capacity_per_pod, capacity_minutes=found.capacity_minutes,
        gpus_per_pod=request.gpus_per_pod, cost_first=request.cost_first,
    )  # fmt: skip


def _capacity_minutes(path: Path, request: DoctorRequest) -> CapacityMinutes | None:
    """The columns of the same file by minute; None where none are named. Raises WrongUse for values that cannot be."""
    if request.pods_column is None or request.file is None:
        return None
    named = {
        "pods": request.pods_column, "use": request.utilisation_column, "latency": request.latency_column,
    }  # fmt: skip
    columns = {"demand": _minutes(path, request.file)}
    plain = replace(request.file, value_unit=ValueUnit.RPS)
    for key, column in named.items():
        if column is not None:
            columns[key] = _minutes(path, replace(plain, value_column=column))
    begin = max(int(start) for start, _ in columns.values())
    end = min(int(start) + 60 * len(values) for start, values in columns.values())
    cut = {key: values[(begin - start) // 60 : (end - start) // 60] for key, (start, values) in columns.items()}
    minutes = CapacityMinutes(
        demand=cut["demand"], ready_pods=cut["pods"], utilisation_ratio=cut.get("use"), latency_s=cut.get("latency")
    )
    try:
        minutes.check()
    except ValueError as error:
        raise WrongUse(
            "capacity-columns-refused", f"learning the capacity of a pod from {path.name}", str(error),
            "check --pods-column, --utilisation-column and --latency-column",
        ) from None  # fmt: skip
    return minutes


def _minutes(path: Path, options: DemandFileOptions) -> tuple[int, np.ndarray]:
    """(epoch of the first minute, one value a minute)."""
    minutes = read_demand(path, options).minutes()
    return int(minutes.start.timestamp()), np.asarray(minutes.values, dtype=np.float64)


def _connections(
    request: DoctorRequest, leads: tuple[LeadTime, ...], server: "ServerFound | None"
) -> tuple[Connection, ...]:
    found = [Connection(what=f"file {path.name}", ok=True, sentence="demand read") for path in request.demand]
    if request.ledger is None:
        found.append(Connection(what="ledger", ok=None, sentence="not asked for (--ledger): no lead time was learned"))
    else:
        text = f"{len(leads)} lead times learned" if leads else "it holds no lead time yet: let it run in shadow mode"
        found.append(Connection(what=f"ledger {request.ledger.name}", ok=bool(leads), sentence=text))
    if server is None:
        found.append(Connection(what="Prometheus", ok=None, sentence="not asked for (--prometheus)"))
    else:
        text = f"{len(server.series)} demand series read"
        found.append(Connection(what=f"Prometheus {server.url}", ok=True, sentence="; ".join((text, *server.notes))))
    found.append(Connection(what="Kubernetes", ok=None, sentence="this command does not read the cluster yet"))
    for extra, (module, what) in EXTRAS.items():
        ok = find_spec(module) is not None
        text = f"{what}{'' if ok else f': not installed; pip install leadtime[{extra}]'}"
        found.append(Connection(what=f"extra {extra}", ok=True if ok else None, sentence=text))
    return tuple(found)


def _may_do(policy: Policy) -> str:
    """What the policy lets leadtime write."""
    if policy.actuation.kill_switch:
        return "nothing: the kill switch is on, and what was written is given back"
    stage = policy.actuation.stage
    words = {
        Stage.OFF: "nothing, and nothing is recorded",
        Stage.SHADOW: "nothing is written: it records what it would do",
        Stage.CAPACITY_BUFFER: "it orders nodes ahead by capacity buffers; no floor is set",
        Stage.HPA_FLOOR: "it orders nodes ahead and sets floors that expire by themselves",
    }
    return f"{words[stage]} (stage {stage.value})"
