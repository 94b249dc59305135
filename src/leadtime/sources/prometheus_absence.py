"""An empty answer → why: no such series, no samples in the window, or a query that makes nothing of them."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from leadtime.domain.series import Missing
from leadtime.domain.time_window import TimeWindow, from_epoch, rfc3339
from leadtime.sources.prometheus_findings import RequestFailed
from leadtime.sources.promql_check import CheckedQuery, check_query

if TYPE_CHECKING:
    from leadtime.sources.prometheus import Prometheus
    from leadtime.sources.prometheus_wire import TickBudget

LOOK_BACK = timedelta(days=30)
# Ranges of "when was the last sample", each tried only if the one before found nothing: most series ended lately.
STEPS = ((timedelta(hours=1), "1m"), (timedelta(days=1), "5m"), (LOOK_BACK, "5m"))


async def why_empty(
    server: "Prometheus", query: CheckedQuery, source: str, window: TimeWindow, budget: "TickBudget"
) -> Missing:
    """``query`` gave nothing for ``window``; look into the index, then for the newest sample of the last 30 days.

    ``since`` is the instant of the last sample where there was one, None where there never was.
    """
    start, end = window.start, window.end
    try:
        if await server.exists(query.selectors, start, end, budget):
            last = await last_sample(server, query.selectors, end, budget)
            if last is not None and last > start:
                reason = "the series exists and has samples in the window, but the query gives no value for them"
                return Missing(source=source, reason=f"{reason} (too few samples for its range?)", since=start)
        if not await server.exists(query.selectors, end - LOOK_BACK, end, budget):
            return Missing(source=source, reason=f"no such series in the {LOOK_BACK.days} days before {rfc3339(end)}")
        last = await last_sample(server, query.selectors, end, budget)
    except RequestFailed as failure:
        return Missing(source=source, reason=f"empty answer; why could not be found out: {failure.wrong}", since=start)
    told = "its last sample cannot be placed" if last is None else f"its last sample is of {rfc3339(last)}"
    return Missing(source=source, reason=f"the series exists but has no samples in the window; {told}", since=last)


async def last_sample(
    server: "Prometheus", selectors: tuple[str, ...], at: datetime, budget: "TickBudget"
) -> datetime | None:
    """The instant of the newest sample of any of the selectors in the 30 days up to ``at``. Raises RequestFailed."""
    for span, step in STEPS:
        within = f"[{int(span.total_seconds())}s:{step}]"
        text = " or ".join(f'label_replace(max(max_over_time(timestamp({each}){within})),"n","{i}","","")'
                           for i, each in enumerate(selectors))  # fmt: skip
        found = await server.instant(check_query(text), at, budget)
        if found:
            return from_epoch(max(value for _, value in found.values()))
    return None
