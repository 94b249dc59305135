"""A server → which templates' series it has, how many, how often sampled, how late, how far back; what lacks and why.

Found by about a dozen instant queries over all metrics at once; no history is read. How far back a metric goes is
probed at 1 h, 6 h, 1, 3, 7, 14 and 28 days before: so it is known between two bounds, not to the minute.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from leadtime.domain.series import Missing
from leadtime.domain.time_window import from_epoch, rfc3339
from leadtime.sources.metric_templates import Signal, Template
from leadtime.sources.metric_templates_data import TEMPLATES
from leadtime.sources.prometheus import Prometheus
from leadtime.sources.prometheus_findings import RequestFailed
from leadtime.sources.prometheus_options import Flavour
from leadtime.sources.prometheus_wire import TickBudget
from leadtime.sources.promql_check import check_query

DAY_S = 86_400
WANTED_HISTORY_S = 7 * DAY_S  # a weekly shape needs a week
PROBES_S = (3_600, 6 * 3_600, DAY_S, 3 * DAY_S, 7 * DAY_S, 14 * DAY_S, 28 * DAY_S)
SAMPLED_S = 600  # over which samples are counted
NEVER = "no such series"
AT_ONCE = 20  # metrics in one query that names each of them


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStanding:
    """One template. ``series``: how many there are now with the labels it needs.

    ``sample_interval_s``: of the best-sampled series. ``newest_lag_s``: age of the newest sample. History reaches
    ``history_at_least_s`` back and less than ``history_less_than_s`` (None: further than was probed). ``missing``: why
    it cannot be used, and since when about. Of a template with two metrics the worse figure counts.
    """

    template: Template
    series: int
    sample_interval_s: float | None
    newest_lag_s: float | None
    history_at_least_s: int
    history_less_than_s: int | None
    missing: Missing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalStanding:
    """One signal: ``ways`` to read it that can be used, the preferred one first; ``missing``: why there is none."""

    signal: Signal
    ways: tuple[TemplateStanding, ...]
    missing: Missing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a server has at ``as_of``. ``failure``: it could not be asked (then all else is empty).

    ``clock_ahead_s``: its clock against ours (negative: behind); None where that was not compared. ``requests``: how
    many were made.
    """

    url: str
    as_of: datetime
    wanted_history_s: int
    templates: tuple[TemplateStanding, ...]
    signals: tuple[SignalStanding, ...]
    clock_ahead_s: float | None
    requests: int
    failure: Missing | None = None
    flavour: Flavour = Flavour.PROMETHEUS

    def signal(self, signal: Signal) -> SignalStanding:
        """How one signal stands. Raises KeyError where no template of it was looked for."""
        return {each.signal: each for each in self.signals}[signal]

    def too_short(self) -> tuple[SignalStanding, ...]:
        """Signals that are there but whose preferred way has less history than is wanted."""
        return tuple(
            each for each in self.signals if each.ways and each.ways[0].history_at_least_s < self.wanted_history_s
        )


async def survey(
    server: Prometheus, as_of: datetime, *, templates: Sequence[Template] = TEMPLATES,
    wanted_history_s: int = WANTED_HISTORY_S, budget: TickBudget | None = None,
) -> Survey:  # fmt: skip
    """Ask ``server`` what it has for ``templates`` at ``as_of``. Never raises for what a server does: see ``failure``.

    ``budget``: with its as_of, clocks are compared; 60 s and no comparison if left out.
    """
    budget = budget or TickBudget(60.0)
    began, url = server.wire.requests, server.options.shown
    standing: tuple[TemplateStanding, ...] = ()
    ahead_s, failure = None, None
    try:
        ahead_s = await _clock_ahead_s(server, budget)
        looking = _Looking(server=server, as_of=as_of, budget=budget)
        standing = await looking.at(templates)
    except RequestFailed as failed:
        failure = Missing(source=url, reason=f"{failed.kind.value}: {failed.wrong}")
    return Survey(
        url=url, as_of=as_of, wanted_history_s=wanted_history_s, templates=standing, clock_ahead_s=ahead_s,
        signals=tuple(_signal(signal, standing) for signal in dict.fromkeys(s.template.signal for s in standing)),
        requests=server.wire.requests - began, failure=failure, flavour=server.wire.flavour,
    )  # fmt: skip


def _signal(signal: Signal, standing: Sequence[TemplateStanding]) -> SignalStanding:
    """The ways that can be used; where there is none, the nearest miss: without its labels, gone, never there."""
    ways = [each for each in standing if each.template.signal is signal]
    usable = tuple(each for each in ways if each.missing is None)
    if usable:
        return SignalStanding(signal=signal, ways=usable, missing=None)
    near = [each.missing for each in ways if each.missing is not None and NEVER not in each.missing.reason]
    if near:
        first = min(near, key=lambda each: each.since is not None)
        reason, since = f"{first.source}: {first.reason}", first.since
    else:
        looked = ", ".join(dict.fromkeys(name for each in ways for name in each.template.metrics))
        reason, since = f"none of its metrics was there in the last 28 days: {looked}", None
    return SignalStanding(signal=signal, ways=(), missing=Missing(source=signal.value, reason=reason, since=since))


async def _clock_ahead_s(server: Prometheus, budget: TickBudget) -> float | None:
    """The server's time() against ours; to a fraction of a second, unlike HTTP's Date."""
    reply = await server.wire.ask("query", {"query": "time()"}, budget)
    ours, rows = budget.our_now(), reply.rows()
    if ours is None or not rows or rows[0].value is None:
        return None
    return (from_epoch(float(rows[0].value[1])) - ours).total_seconds()


def _labelled(template: Template) -> str:
    """Matchers: the labels a template needs are there."""
    return ",".join(f'{label}!=""' for label in template.labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metric:
    """What is known of one metric name."""

    series: int = 0
    newest_s: float | None = None
    samples: float | None = None
    back: tuple[int, ...] = ()  # probes at which it was there


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looking:
    """The instant queries behind a survey."""

    server: Prometheus
    as_of: datetime
    budget: TickBudget

    async def at(self, templates: Sequence[Template]) -> tuple[TemplateStanding, ...]:
        """How each of ``templates`` stands."""
        names = tuple(dict.fromkeys(name for template in templates for name in template.metrics))
        there = {back_s: await self._there(names, back_s) for back_s in (0, *PROBES_S)}
        now = [name for name in names if name in there[0]]
        newest = await self._each({name: f"max(timestamp({name}))" for name in now})
        samples = await self._each({name: f"max(count_over_time({name}[{SAMPLED_S}s]))" for name in now})
        metrics = {
            name: _Metric(
                series=int(there[0].get(name, 0)), newest_s=newest.get(name), samples=samples.get(name),
                back=tuple(back_s for back_s in PROBES_S if name in there[back_s]),
            )
            for name in names
        }  # fmt: skip
        labelled = await self._each(
            {
                f"{template.name} {name}": f"count({name}{{{_labelled(template)}}})"
                for template in templates
                for name in template.metrics
                if metrics[name].series
            }
        )
        return tuple(
            self._standing(each, [(name, metrics[name], int(labelled.get(f"{each.name} {name}", 0)))
                                  for name in each.metrics])
            for each in templates
        )  # fmt: skip

    def _standing(self, template: Template, found: Sequence[tuple[str, _Metric, int]]) -> TemplateStanding:
        back = [max(metric.back, default=0) for _, metric, _ in found]
        further = [back_s for back_s in PROBES_S if back_s > min(back)]
        lags = [self.as_of.timestamp() - metric.newest_s for _, metric, _ in found if metric.newest_s is not None]
        intervals = [SAMPLED_S / metric.samples for _, metric, _ in found if metric.samples]
        missing = [gap for name, metric, labelled in found if (gap := self._missing(template, name, metric, labelled))]
        return TemplateStanding(
            template=template, series=min(labelled for _, _, labelled in found),
            sample_interval_s=max(intervals, default=None), newest_lag_s=max(lags, default=None),
            history_at_least_s=min(back), history_less_than_s=further[0] if further else None,
            missing=missing[0] if missing else None,
        )  # fmt: skip

    def _missing(self, template: Template, name: str, metric: _Metric, labelled: int) -> Missing | None:
        if labelled:
            return None
        if metric.series:
            needed = " and ".join(template.labels)
            return Missing(source=name, reason=f"none of its {metric.series:,} series has the labels {needed}")
        if not metric.back:
            return Missing(source=name, reason=f"{NEVER} in the last 28 days")
        last = self.as_of - timedelta(seconds=metric.back[0])
        return Missing(source=name, reason=f"no samples now; there were some at {rfc3339(last)}", since=last)

    async def _there(self, names: Sequence[str], back_s: int) -> dict[str, float]:
        """Series by metric name that had a sample in the ten minutes before as_of - back."""
        named = "|".join(names)
        text = f'count by (__name__) (last_over_time({{__name__=~"{named}"}}[{SAMPLED_S}s]))'
        found = await self.server.instant(check_query(text), self.as_of - timedelta(seconds=back_s), self.budget)
        return {labels["__name__"]: value for labels, value in found.values() if "__name__" in labels}

    async def _each(self, questions: Mapping[str, str]) -> dict[str, float]:
        """One number a question, some questions a query."""
        found: dict[str, float] = {}
        named = list(questions.items())
        for first in range(0, len(named), AT_ONCE):
            parts = (
                f'label_replace({text}, "question", "{name}", "", "")' for name, text in named[first : first + AT_ONCE]
            )
            answer = await self.server.instant(check_query(" or ".join(parts)), self.as_of, self.budget)
            found |= {labels["question"]: value for labels, value in answer.values()}
        return found
