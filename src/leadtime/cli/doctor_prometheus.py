"""A Prometheus server → what it has for leadtime, what lacks for which feature, and the demand series to look at."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt

from leadtime.cli.doctor import DoctorRequest
from leadtime.domain.errors import WrongUse
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Series, Unit
from leadtime.domain.time_window import TimeWindow
from leadtime.forecast.capacity import CapacityMinutes
from leadtime.forecast.foresight import Recorded
from leadtime.sources.metric_templates import Signal, range_for
from leadtime.sources.prometheus import Ask, Read, ReadSeries
from leadtime.sources.prometheus_demand import LAG_S, own_query
from leadtime.sources.prometheus_findings import FailureKind, RequestFailed
from leadtime.sources.prometheus_options import PrometheusOptions
from leadtime.sources.prometheus_survey import SignalStanding, Survey, TemplateStanding, survey
from leadtime.sources.prometheus_sync import PrometheusDoor
from leadtime.sources.prometheus_wire import TickBudget

FloatColumn = npt.NDArray[np.float64]
STEP_S = 60
BUDGET_S = 300.0
MOST_WORKLOADS = 20
CAPACITY_DAYS = 7  # of minutes; more tells the capacity of a pod no better
DEMAND = (Signal.REQUEST_RATE, Signal.TOKEN_RATE, Signal.GPUS_WANTED)  # the first that is there is taken
FEATURES = {  # what a signal is needed for; docs/doctor.md
    Signal.REQUEST_RATE: "demand of services",
    Signal.TOKEN_RATE: "demand of language models",
    Signal.GPUS_WANTED: "demand of batch work",
    Signal.REPLICAS_READY: "capacity of a pod, the surge detector's saturation",
    Signal.REPLICAS_WANTED: "what the HPA does beside leadtime",
    Signal.GPU_UTILISATION: "capacity of a pod with GPUs, idle nodes",
    Signal.CPU: "the guard's idle check",
    Signal.MEMORY: "failure forecasts",
    Signal.LATENCY: "the load at which latency rises",
    Signal.QUEUE_WAITING: "saturation of model servers",
    Signal.RESTARTS: "telling a surge from a restart",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalFound:
    """One signal: ``ok`` whether it can be read, for what it is needed, and how it stands in a sentence."""

    signal: str
    needed_for: str
    ok: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """One demand series by minute, and columns to learn the capacity of its pods from (None: some are lacking)."""

    name: str
    source: str
    series: Recorded
    capacity_minutes: CapacityMinutes | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServerFound:
    """All that was read from one server; ``notes``: what was left out, and what the reads noticed."""

    url: str
    signals: tuple[SignalFound, ...]
    series: tuple[Found, ...]
    notes: tuple[str, ...]


def read_server(request: DoctorRequest, as_of: datetime, days: int) -> ServerFound:
    """Survey ``request.prometheus`` at ``as_of`` and read ``days`` of demand by the minute.

    Raises DependencyFailed (prometheus-unreachable, -denied, …), WrongUse (promql-refused, doctor-no-demand).
    """
    assert request.prometheus is not None
    options = PrometheusOptions(url=request.prometheus, token_file=request.token_file)
    window = TimeWindow(start=as_of - timedelta(days=days), end=as_of)
    with PrometheusDoor(options) as door:
        live = as_of if request.until is None else None
        stands = door.run(survey(door.server, as_of, budget=TickBudget(BUDGET_S, as_of=live)))
        if stands.failure is not None:
            raise _failed(stands.failure.reason, options.url)
        reader = _Reader(door=door, request=request, survey=stands, as_of=as_of, window=window)
        found, notes = reader.own() if request.query else reader.by_template()
    signals = tuple(_signal(each, stands.wanted_history_s) for each in stands.signals if each.signal in FEATURES)
    if stands.clock_ahead_s is not None and abs(stands.clock_ahead_s) > options.skew_tolerance_s:
        notes = (*notes, f"the server's clock is {stands.clock_ahead_s:+.0f} s from ours")
    return ServerFound(url=options.url, signals=signals, series=found, notes=notes)


def _failed(reason: str, url: str) -> Exception:
    """The survey's failure, ``kind: words``, as the error that kind is."""
    kind, _, wrong = reason.partition(": ")
    return RequestFailed(FailureKind(kind), wrong).error(url)


def _signal(stands: SignalStanding, wanted_s: int) -> SignalFound:
    needed = FEATURES[stands.signal]
    if stands.missing is not None:
        return SignalFound(signal=stands.signal.value, needed_for=needed, ok=False, sentence=stands.missing.reason)
    way = stands.ways[0]
    far = f"{way.history_at_least_s / 86_400:.3g} days"
    upto = "" if way.history_less_than_s is None else f", less than {way.history_less_than_s / 86_400:.3g}"
    text = f"{way.template.metric} of {way.template.exporter}: {way.series:,} series, back at least {far}{upto}"
    if way.history_at_least_s < wanted_s:
        text += f"; at least {wanted_s // 86_400} days are wanted"
    return SignalFound(signal=stands.signal.value, needed_for=needed, ok=True, sentence=text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """The range reads behind a diagnosis."""

    door: PrometheusDoor
    request: DoctorRequest
    survey: Survey
    as_of: datetime
    window: TimeWindow

    def own(self) -> tuple[tuple[Found, ...], tuple[str, ...]]:
        """The user's own queries, one series each."""
        found, notes = [], []
        for number, text in enumerate(self.request.query, 1):
            ref = WorkloadRef(namespace="query", name=f"{number}")
            query = own_query(ref, text, Unit.REQUESTS_PER_S).query
            read = self._read(Ask(query=query, window=self.window, unit=Unit.REQUESTS_PER_S, lag_s=LAG_S, name=text))
            notes += [str(finding) for finding in read.findings]
            one = read.one()
            if len(read.series) > 1 or not isinstance(one, Series):
                why = f"it has {len(read.series)} series; add them up" if read.series else getattr(one, "reason", "")
                raise _no_demand(self.request, f"query {number}: {why}")
            found.append(Found(name=text, source=text, series=_recorded(one), capacity_minutes=None))
        return tuple(found), tuple(notes)

    def by_template(self) -> tuple[tuple[Found, ...], tuple[str, ...]]:
        """The preferred template of the first demand signal that is there: a series a workload, the largest first."""
        signals = {each.signal: each for each in self.survey.signals}
        way = next((signals[one].ways[0] for one in DEMAND if one in signals and signals[one].ways), None)
        if way is None:
            raise _no_demand(self.request, "none of the metrics that leadtime knows demand by is there")
        read = self._template(way, self.window)
        if not read.series:
            reason = read.missing.reason if read.missing is not None else "no minute is there yet"
            raise _no_demand(self.request, f"{way.template.metric}: {reason}")
        ordered = sorted(read.series, key=lambda each: -_mean(each))
        notes = [str(finding) for finding in read.findings]
        if len(ordered) > MOST_WORKLOADS:
            notes.append(f"{len(ordered)} workloads; the {MOST_WORKLOADS} with the most demand are looked at")
        columns = self._capacity_columns()
        found = tuple(
            Found(
                name=_key(each), source=way.template.query(namespaces=self.request.namespaces).text,
                series=_recorded(each.values), capacity_minutes=columns.of(each),
            )
            for each in ordered[:MOST_WORKLOADS]
        )  # fmt: skip
        return found, tuple(notes)

    def _template(self, way: TemplateStanding, window: TimeWindow) -> Read:
        range_s = range_for(way.sample_interval_s or STEP_S / 4)
        query = way.template.query(range_s=range_s, namespaces=self.request.namespaces)
        hint = max(1, way.series)
        return self._read(
            Ask(query=query, window=window, unit=way.template.unit, lag_s=LAG_S, name=way.template.name,
                series_hint=hint)
        )  # fmt: skip

    def _read(self, ask: Ask) -> Read:
        return self.door.run(self.door.server.read(ask, self.as_of, TickBudget(BUDGET_S)))

    def _capacity_columns(self) -> "_Columns":
        """Ready pods, utilisation and latency of all workloads, of the last week."""
        window = TimeWindow(start=max(self.window.start, self.as_of - timedelta(days=CAPACITY_DAYS)), end=self.as_of)
        signals = {each.signal: each for each in self.survey.signals}
        reads: dict[Signal, dict[str, ReadSeries]] = {}
        for signal in (Signal.REPLICAS_READY, Signal.GPU_UTILISATION, Signal.LATENCY):
            stands = signals.get(signal)
            if stands is not None and stands.ways:
                reads[signal] = {_key(each): each for each in self._template(stands.ways[0], window).series}
        return _Columns(reads=reads)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """By signal and workload."""

    reads: dict[Signal, dict[str, ReadSeries]]

    def of(self, demand: ReadSeries) -> CapacityMinutes | None:
        """The columns of one workload on the minutes they share; None without ready pods and one of the others."""
        key = _key(demand)
        mine: dict[Signal | None, Recorded] = {
            signal: _recorded(each[key].values) for signal, each in self.reads.items() if key in each
        }
        if Signal.REPLICAS_READY not in mine or len(mine) < 2:
            return None
        whole = {None: _recorded(demand.values), **mine}
        begin = max(one.start_s for one in whole.values())
        end = min(one.start_s + STEP_S * len(one.values) for one in whole.values())
        if end <= begin:
            return None
        cut = {
            name: one.values[(begin - one.start_s) // STEP_S : (end - one.start_s) // STEP_S]
            for name, one in whole.items()
        }
        return CapacityMinutes(
            demand=cut[None], ready_pods=cut[Signal.REPLICAS_READY],
            utilisation_ratio=cut.get(Signal.GPU_UTILISATION), latency_s=cut.get(Signal.LATENCY),
        )  # fmt: skip


def _no_demand(request: DoctorRequest, wrong: str) -> WrongUse:
    return WrongUse(
        "doctor-no-demand", f"looking for demand at {request.prometheus}", wrong,
        "name it with --query, such as --query 'sum(rate(http_requests_total[2m]))', or another --namespace",
    )  # fmt: skip


def _key(each: ReadSeries) -> str:
    """``namespace/workload``."""
    return f"{each.labels.get('namespace', '')}/{each.labels.get('workload', '')}"


def _mean(each: ReadSeries) -> float:
    known = [value for value in each.values.values if value is not None]
    return sum(known) / len(known) if known else 0.0


def _recorded(series: Series) -> Recorded:
    values = np.array([np.nan if value is None else value for value in series.values], dtype=np.float64)
    return Recorded(start_s=int(series.start.timestamp()), step_s=series.step_s, values=values)
