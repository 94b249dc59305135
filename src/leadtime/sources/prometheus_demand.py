"""Demand of many workloads in few queries → one-minute buckets for the loop: Series with gaps as None, or Missing.

Stamps. A query evaluated at t looks at samples in (t - range, t], so with a range of one minute its value is the mean
over just the bucket [t - 1 min, t): the bucket is stamped t - 1 min and is readable from t + lag on. With a longer
range r (samples more than 24 s apart need one) the value at t is the mean over (t - r, t]: it still holds nothing later
than t, so nothing leaks, but a rise shows up to r - 1 min late. Asking at t with an offset, or stamping with t, would
each shift the whole series by a minute against the models.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.series import Missing, Series, Unit
from leadtime.domain.time_window import TimeWindow, from_epoch
from leadtime.sources.metric_templates import Template
from leadtime.sources.prometheus import Ask, Prometheus, Read, ReadSeries
from leadtime.sources.prometheus_findings import Finding, FindingKind, RequestFailed, merged
from leadtime.sources.prometheus_grid import Line, joined, subject
from leadtime.sources.prometheus_sync import PrometheusDoor
from leadtime.sources.prometheus_wire import TickBudget
from leadtime.sources.promql_check import BadQuery, CheckedQuery, check_query

MINUTE = timedelta(minutes=1)
LAG_S = (
    15.0  # a scrape that began before the minute's end has been stored by then (Prometheus' default timeout is 10 s)
)
LOOKS = (("3600s", "60s"), ("86400s", "600s"))  # where a lacking workload's last value is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandQuery:
    """Where the demand of ``workloads`` is read: one query, series by ``namespace_label`` and ``workload_label``.

    A query about one workload needs no labels: then ``workloads`` has one element and all series without the label are
    its. ``resets``: counts counters that began anew, by the same labels.
    """

    query: CheckedQuery
    unit: Unit
    workloads: tuple[WorkloadRef, ...]
    namespace_label: str = "namespace"
    workload_label: str = "workload"
    resets: CheckedQuery | None = None

    def sorter(self) -> Callable[[Mapping[str, str]], WorkloadRef | None]:
        """A function: labels of a series → the workload it belongs to, None for none of these."""
        whole = {(ref.namespace, ref.name): ref for ref in self.workloads}
        short = {ref.name: ref for ref in self.workloads}

        def of(labels: Mapping[str, str]) -> WorkloadRef | None:
            name, namespace = labels.get(self.workload_label), labels.get(self.namespace_label)
            if name is None:
                return self.workloads[0] if len(self.workloads) == 1 else None
            return short.get(name) if namespace is None else whole.get((namespace, name))

        return of


def demand_queries(
    workloads: Mapping[WorkloadRef, Template], *, range_s: int = 60, only: str = ""
) -> tuple[DemandQuery, ...]:
    """One query for each template and kind among ``workloads``. ``range_s``: see metric_templates.range_for.

    ``only``: matchers of the one cluster that is meant, where the server holds several.
    """
    groups: dict[tuple[str, str], list[WorkloadRef]] = {}
    templates = {each.name: each for each in workloads.values()}
    for ref, each in sorted(workloads.items(), key=lambda item: item[0]):
        groups.setdefault((each.name, ref.kind), []).append(ref)
    found = []
    for (name, kind), refs in groups.items():
        template, namespaces = templates[name], sorted({ref.namespace for ref in refs})
        query = template.query(range_s=range_s, namespaces=namespaces, kind=kind, only=only)
        resets = template.resets_query(range_s=range_s, namespaces=namespaces, kind=kind, only=only)
        found.append(DemandQuery(query=query, unit=template.unit, workloads=tuple(refs), resets=resets))
    return tuple(found)


def own_query(ref: WorkloadRef, promql: str, unit: Unit) -> DemandQuery:
    """A query of the user's about one workload.

    Raises BadQuery (promql-refused, promql-no-series; promql-raw-counter for a counter without rate()).
    """
    of = f"the demand query of {ref.key}"
    query = check_query(promql, of=of)
    if query.raw_counters:
        raise BadQuery(
            "promql-raw-counter", f"reading {of}", f"{query.raw_counters[0]} is a counter and only ever grows",
            f"ask for its rate: sum(rate({query.raw_counters[0]}[1m]))",
        )  # fmt: skip
    return DemandQuery(query=query, unit=unit, workloads=(ref,))


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandAnswer:
    """What was read for a tick: answers ``demand`` from memory, as often as wanted.

    ``missing``: workloads whose newest minutes have no value, since when and why. ``resets``: minutes (their starts) in
    which a counter behind a workload's demand began anew: the value there may be too low.
    """

    found: Mapping[WorkloadRef, Series | Missing]
    missing: Mapping[WorkloadRef, Missing]
    resets: Mapping[WorkloadRef, tuple[datetime, ...]]
    findings: tuple[Finding, ...]

    def demand(self, ref: WorkloadRef, window: TimeWindow, as_of: datetime) -> Series | Missing:
        """Minutes of ``ref`` that lie in ``window`` and are visible at ``as_of`` (end + lag ≤ as_of), oldest first."""
        series = self.found.get(ref)
        if series is None:
            return Missing(source=f"demand of {ref.key}", reason="no query is set for it")
        if isinstance(series, Missing):
            return series
        until = min(window.end, as_of - timedelta(seconds=series.lag_s))
        first = max(0, -((series.start - window.start) // MINUTE))
        last = max(first, min(len(series.values), (until - series.start) // MINUTE))
        return replace(series, start=series.start + first * MINUTE, values=tuple(series.values[first:last]))


@dataclass(slots=True, kw_only=True)
class PrometheusDemand:
    """The ``demand`` of domain.ports.Source from a Prometheus. ``budget_s``: of one tick, over all its queries.

    ``read_many`` is for an asynchronous shell: one read a tick, then DemandAnswer.demand from memory. ``demand`` does
    the same for one workload through ``door``. ``with_resets``: read the resets too, one query more each.
    """

    server: Prometheus
    queries: Sequence[DemandQuery]
    lag_s: float = LAG_S
    budget_s: float = 20.0
    with_resets: bool = False
    door: PrometheusDoor | None = None
    findings: list[Finding] = field(default_factory=list)

    def demand(self, ref: WorkloadRef, window: TimeWindow, as_of: datetime) -> Series | Missing:
        """One-minute buckets of ``ref`` within ``window``, only those visible at ``as_of``; waits for the server.

        An empty Series where no bucket is due yet; Missing (why, since when) where there is no value in the window.
        """
        if self.door is None:
            raise RuntimeError("demand() waits for the server through a door; give one, or use read_many()")
        answer = self.door.run(self.read_many({ref: window}, as_of))
        self.findings = list(answer.findings)
        return answer.demand(ref, window, as_of)

    async def read_many(
        self, windows: Mapping[WorkloadRef, TimeWindow], as_of: datetime, budget: TickBudget | None = None
    ) -> DemandAnswer:
        """All of ``windows``: a query for each DemandQuery and distinct window; never raises for what a server does."""
        budget = budget or TickBudget(self.budget_s, as_of=as_of)
        asked = self._asks(windows)
        reads = await self.server.read_many([ask for _, ask, _ in asked], as_of, budget)
        found: dict[WorkloadRef, Series | Missing] = {}
        missing: dict[WorkloadRef, Missing] = {}
        findings = [each for read in reads for each in read.findings]
        for (query, _, refs), read in zip(asked, reads, strict=True):
            for ref, lines in _by_workload(query, refs, read).items():
                found[ref] = series = _one(ref, lines, findings)
                ended = [each.missing for each in lines if each.missing is not None and each.missing.since is not None]
                if isinstance(series, Series) and series.values[-1] is None:
                    missing[ref] = max(ended, key=lambda each: each.since or as_of)
            lacking = {ref for ref in refs if ref not in found}
            found |= await self._why(query, lacking, read, as_of, budget)
        missing |= {ref: answer for ref, answer in found.items() if isinstance(answer, Missing)}
        resets = await self._resets(asked, as_of, budget, findings) if self.with_resets else {}
        return DemandAnswer(found=found, missing=missing, resets=resets, findings=merged(findings))

    def _asks(
        self, windows: Mapping[WorkloadRef, TimeWindow]
    ) -> list[tuple[DemandQuery, Ask, tuple[WorkloadRef, ...]]]:
        """Workloads of one query that want the same window are read together."""
        asks = []
        for query in self.queries:
            groups: dict[TimeWindow, list[WorkloadRef]] = {}
            for ref in query.workloads:
                if ref in windows:
                    groups.setdefault(windows[ref], []).append(ref)
            for window, refs in groups.items():
                ask = Ask(
                    query=query.query, window=window, unit=query.unit, step_s=60, lag_s=self.lag_s,
                    name=_named(refs), series_hint=2 * len(refs),
                )  # fmt: skip
                asks.append((query, ask, tuple(refs)))
        return asks

    async def _why(
        self, query: DemandQuery, lacking: set[WorkloadRef], read: Read, as_of: datetime, budget: TickBudget
    ) -> dict[WorkloadRef, Series | Missing]:
        """Workloads without a value: nothing is due, the server failed, they ended, or there is no such series."""
        if not lacking:
            return {}
        if not read.series and read.missing is None:
            return {ref: replace(_nothing(read), name=f"demand of {ref.key}") for ref in lacking}
        if read.missing is not None and (read.missing.since is not None or len(query.workloads) == 1):
            whole = read.missing
            return {ref: replace(whole, source=f"demand of {ref.key}") for ref in lacking}
        last, failed = await self._last_seen(query, lacking, as_of, budget)
        never = failed or "no such series in the last day"
        return {
            ref: Missing(
                source=f"demand of {ref.key}", since=last.get(ref),
                reason="the series exists but has no samples in the window" if ref in last else never,
            )
            for ref in lacking
        }  # fmt: skip

    async def _last_seen(
        self, query: DemandQuery, refs: set[WorkloadRef], as_of: datetime, budget: TickBudget
    ) -> tuple[dict[WorkloadRef, datetime], str]:
        """When ``query`` last had a value, by workload: to the minute for an hour back, to ten minutes for a day."""
        last: dict[WorkloadRef, datetime] = {}
        at, of = as_of - timedelta(seconds=self.lag_s), query.sorter()
        for span, step in LOOKS:
            text = f"max_over_time(timestamp({query.query.text})[{span}:{step}])"
            try:
                found = await self.server.instant(check_query(text), at, budget)
            except RequestFailed as failure:
                return last, f"no value in the window; when it had one could not be found out: {failure.wrong}"
            for labels, seen in found.values():
                ref = of(labels)
                if ref in refs and ref not in last:
                    last[ref] = from_epoch(seen)
            if refs <= set(last):
                break
        return last, ""

    async def _resets(
        self, asked: Sequence[tuple[DemandQuery, Ask, tuple[WorkloadRef, ...]]], as_of: datetime, budget: TickBudget,
        findings: list[Finding],
    ) -> dict[WorkloadRef, tuple[datetime, ...]]:  # fmt: skip
        """Minutes in which a counter began anew, by workload."""
        counted = [(query, replace(ask, query=query.resets)) for query, ask, _ in asked if query.resets is not None]
        found: dict[WorkloadRef, tuple[datetime, ...]] = {}
        for (query, _), read in zip(
            counted, await self.server.read_many([ask for _, ask in counted], as_of, budget), strict=True
        ):
            of = query.sorter()
            for each in read.series:
                ref = of(each.labels)
                counted_in = [i for i, value in enumerate(each.values.values) if value]
                # Its range is two minutes, so each new beginning is seen twice: the first time counts.
                minutes = tuple(each.values.start + i * MINUTE for i in counted_in if i - 1 not in counted_in)
                if ref is None or not minutes:
                    continue
                found[ref] = tuple(sorted({*found.get(ref, ()), *minutes}))
                what = "minutes in which a counter began anew; its rate goes on from zero"
                findings.append(
                    Finding(
                        kind=FindingKind.COUNTER_RESET, what=what, count=len(minutes), subject=ref.key, at=minutes[0]
                    )
                )  # fmt: skip
        return found


def _named(refs: Sequence[WorkloadRef]) -> str:
    return f"demand of {refs[0].key}" + (f" and {len(refs) - 1} more" if len(refs) > 1 else "")


def _by_workload(query: DemandQuery, refs: Sequence[WorkloadRef], read: Read) -> dict[WorkloadRef, list[ReadSeries]]:
    """The series of the answer by workload; others' are left out."""
    found: dict[WorkloadRef, list[ReadSeries]] = {}
    of, wanted = query.sorter(), set(refs)
    for each in read.series:
        ref = of(each.labels)
        if ref is not None and ref in wanted:
            found.setdefault(ref, []).append(each)
    return found


def _one(ref: WorkloadRef, lines: Sequence[ReadSeries], findings: list[Finding]) -> Series | Missing:
    """One series of several: one after another they are joined, at the same time they are not (add or choose?)."""
    name = f"demand of {ref.key}"
    if len(lines) == 1:
        return replace(lines[0].values, name=name)
    whole = joined([Line(labels=each.labels, values=tuple(each.values.values)) for each in lines])
    if whole is not None:
        what = f"{len(lines)} series follow one another and were joined; the newest is {subject(whole.labels)}"
        findings.append(Finding(kind=FindingKind.LABELS_CHANGED, what=what, subject=ref.key, count=len(lines)))
        return replace(lines[0].values, name=name, values=whole.values)
    first, second = (subject(each.labels) for each in lines[:2])
    what = f"{len(lines)} series have values at the same time, as {first} and {second}; add them up in the query"
    findings.append(Finding(kind=FindingKind.AMBIGUOUS, what=what, subject=ref.key, count=len(lines)))
    return Missing(source=name, reason=what, since=lines[0].values.start)


def _nothing(read: Read) -> Series:
    one = read.one()
    assert isinstance(one, Series)
    return one
