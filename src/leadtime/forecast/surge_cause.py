"""The recent minutes of a series, and what else is known → a surge, or which artefact only looks like one.

Users call each of these "demand doubled" and none is: an exporter or app that restarted, minutes that arrived together
after a scrape gap, a counter that was reset, a rollout in which old and new pods are both counted, the backlog that is
replayed after an outage. A cause is named only with its evidence; where nothing explains the rise it is a surge.
What is optional and not given is unknown, never zero: it neither explains nor excludes anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from leadtime.forecast.model import FloatColumn
from leadtime.forecast.surge_definition import LOOK_BACK_MINUTES, MEAN_MINUTES, RISE_RATIO

KEPT_MINUTES = 120
# A minute is "down" below this share of what the window's busier minutes (their 75th percentile) had: a service that
# restarts or cannot be scraped shows next to nothing, while real demand rarely falls so far within two hours.
DOWN_RATIO = 0.10
BUSY_QUANTILE = 0.75
FILLED_GAP_RATIO = 1.25  # one bucket after k gaps may hold k + 1 minutes of the level before, and a quarter more
SAME_PER_POD_RATIO = 1.15  # a pod that takes no more than this of what it took before is not under more demand
MORE_PODS_RATIO = 1.2
SAME_OUTAGE_MIN = 3
REPLAYED_WITHIN_MIN = 30  # what still comes half an hour after an outage is new demand


class Cause(StrEnum):
    """Why a rise is no surge."""

    RESTART = "restart"
    SCRAPE_GAP = "scrape_gap"
    COUNTER_RESET = "counter_reset"
    ROLLOUT = "rollout"
    REPLAYED_BACKLOG = "replayed_backlog"


# The others are real load, which wants capacity although it is no surge.
NO_DEMAND = frozenset({Cause.SCRAPE_GAP, Cause.COUNTER_RESET, Cause.ROLLOUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known beside the series; every field may be left out.

    reporting_pods: one entry a minute, the last belongs to the newest minute, None unknown. rollout_in_progress: None
    unknown. resets: how many minutes ago a counter was reset, 0 = in the newest minute. changes: names of recent
    changes, for the evidence only.
    """

    reporting_pods: Sequence[float | None] = ()
    rollout_in_progress: bool | None = None
    resets: Sequence[int] = ()
    changes: Sequence[str] = ()


NOTHING_KNOWN = Facts()


@dataclass(frozen=True, slots=True, kw_only=True)
class ASurge:
    """The rise is demand: the mean of the newest five minutes is ``rise_ratio`` times what stood before."""

    rise_ratio: float
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotASurge:
    """The rise is an artefact, see ``evidence`` for the numbers."""

    cause: Cause
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rise:
    """The newest minutes beside those ten minutes earlier; NaN in ``minutes`` is a gap."""

    minutes: FloatColumn
    now: float
    before: float
    stood: float  # median of the window's minutes that are not down, the newest five left out
    low: float  # a minute below this is down

    @property
    def down(self) -> npt.NDArray[np.intp]:
        """Indices of minutes next to zero."""
        return np.flatnonzero(self.minutes[:-1] < self.low)


def explain(minutes: Sequence[float | None], facts: Facts = NOTHING_KNOWN) -> ASurge | NotASurge:
    """Judge the rise that ends with the newest minute.

    minutes: the newest ``KEPT_MINUTES`` minute values or fewer, oldest first; None is a gap. A pure function, at most
    O(KEPT_MINUTES). With fewer than six known minutes nothing explains anything: it is a surge. Never raises.
    """
    rise = _rise(minutes)
    if rise is None:
        return ASurge(rise_ratio=1.0, evidence="fewer than six known minutes: nothing to explain the rise with")
    for judge in (_counter_reset, _scrape_gap, _rollout, _backlog, _restart):
        found = judge(rise, facts)
        if found is not None:
            return _with_changes(found, facts)
    ratio = rise.now / rise.before if rise.before > 0 else float("inf")
    text = f"the last five minutes stand at {rise.now:.4g}, {ratio:.2f} times those ten minutes earlier"
    return ASurge(rise_ratio=ratio, evidence=text)


def _rise(minutes: Sequence[float | None]) -> _Rise | None:
    column = np.array([np.nan if m is None else m for m in minutes[-KEPT_MINUTES:]], dtype=np.float64)
    if np.count_nonzero(~np.isnan(column)) <= MEAN_MINUTES or np.isnan(column[-1]):
        return None
    earlier = column[:-LOOK_BACK_MINUTES][-MEAN_MINUTES:]
    past = column[:-MEAN_MINUTES]
    past = past[~np.isnan(past)]
    if not len(past):
        return None
    low = DOWN_RATIO * float(np.quantile(past, BUSY_QUANTILE))
    return _Rise(
        minutes=column,
        low=low,
        now=float(np.nanmean(column[-MEAN_MINUTES:])),
        before=float(np.nanmean(earlier)) if np.any(~np.isnan(earlier)) else float(past[-1]),
        stood=float(np.median(past[past >= low])),
    )


def _counter_reset(rise: _Rise, facts: Facts) -> NotASurge | None:
    """A reset in the last five minutes, and without its minute no rise is left."""
    ago = [m for m in facts.resets if 0 <= m < MEAN_MINUTES]
    if not ago:
        return None
    kept = [v for i, v in enumerate(rise.minutes[::-1][:MEAN_MINUTES]) if i not in ago and not np.isnan(v)]
    if kept and float(np.mean(kept)) >= RISE_RATIO * rise.before:
        return None
    text = f"a counter was reset {ago[0]} min ago; without that minute the last five stand at "
    text += f"{np.mean(kept):.4g}, against {rise.before:.4g} before" if kept else "nothing known"
    return NotASurge(cause=Cause.COUNTER_RESET, evidence=text)


def _scrape_gap(rise: _Rise, facts: Facts) -> NotASurge | None:
    """One bucket right after gaps holds no more than the gaps' minutes would have, and its neighbours are usual."""
    del facts
    recent = rise.minutes[-MEAN_MINUTES:]
    for i in range(len(rise.minutes) - len(recent), len(rise.minutes)):
        gaps = _gaps_before(rise.minutes, i)
        most = FILLED_GAP_RATIO * (gaps + 1) * rise.stood
        if not gaps or not RISE_RATIO * rise.before <= rise.minutes[i] <= most:
            continue
        others = np.delete(rise.minutes, i)[-(MEAN_MINUTES - 1) :]
        others = others[~np.isnan(others)]
        if not len(others) or float(others.mean()) < RISE_RATIO * rise.before:
            text = f"{rise.minutes[i]:.4g} came in one minute after {gaps} without a value, no more than {gaps + 1} "
            return NotASurge(cause=Cause.SCRAPE_GAP, evidence=text + f"minutes at {rise.stood:.4g} hold")
    return None


def _gaps_before(minutes: FloatColumn, i: int) -> int:
    known = np.flatnonzero(~np.isnan(minutes[:i]))
    return i - int(known[-1]) - 1 if len(known) else 0


def _rollout(rise: _Rise, facts: Facts) -> NotASurge | None:
    """More pods report, and none of the last five minutes asked more of a pod than before.

    Real demand reaches the pods that are there first: the autoscaler answers only later, so load per pod rises.
    """
    pods = np.array([np.nan if p is None else p for p in facts.reporting_pods], dtype=np.float64)
    count = min(len(pods), len(rise.minutes))
    if count < LOOK_BACK_MINUTES + 1 or facts.rollout_in_progress is False:
        return None
    per_pod = rise.minutes[-count:] / np.where(pods[-count:] > 0, pods[-count:], np.nan)
    earlier = slice(max(0, count - LOOK_BACK_MINUTES - MEAN_MINUTES), count - LOOK_BACK_MINUTES)
    now, then = per_pod[-MEAN_MINUTES:], per_pod[earlier]
    pods_now, pods_then = pods[-count:][-MEAN_MINUTES:], pods[-count:][earlier]
    if any(np.isnan(column).all() for column in (now, then, pods_now, pods_then)):
        return None
    grown = float(np.nanmax(pods_now) / np.nanmean(pods_then))
    asked = float(np.nanmax(now) / np.nanmean(then)) if np.nanmean(then) > 0 else float("inf")
    if grown < MORE_PODS_RATIO or asked > SAME_PER_POD_RATIO:
        return None
    during = "a rollout is in progress: " if facts.rollout_in_progress else ""
    text = f"{during}{grown:.2f} times as many pods report as ten minutes earlier, each with {asked:.2f} times its load"
    return NotASurge(cause=Cause.ROLLOUT, evidence=text)


def _restart(rise: _Rise, facts: Facts) -> NotASurge | None:
    """What it is measured against came out of minutes next to zero, and it is back at what stood before them."""
    del facts
    base_end = len(rise.minutes) - LOOK_BACK_MINUTES
    down = rise.down
    depressed = (down < base_end) & (down >= base_end - MEAN_MINUTES - LOOK_BACK_MINUTES)
    if not depressed.any() or rise.now >= RISE_RATIO * rise.stood:
        return None
    text = f"it stood at {rise.stood:.4g}, fell next to zero ({np.nanmin(rise.minutes[:-1]):.4g}) and came back to "
    return NotASurge(cause=Cause.RESTART, evidence=text + f"{rise.now:.4g}")


def _backlog(rise: _Rise, facts: Facts) -> NotASurge | None:
    """Since one outage no more came above the old level than its down minutes lack."""
    del facts
    down = rise.down
    if not len(down) or rise.now < RISE_RATIO * rise.stood:
        return None
    breaks = np.flatnonzero(np.diff(down) > SAME_OUTAGE_MIN)
    down = down[int(breaks[-1]) + 1 :] if len(breaks) else down
    since = rise.minutes[int(down[-1]) + 1 :]
    if len(since) > REPLAYED_WITHIN_MIN:
        return None
    more = float(np.nansum(np.maximum(0.0, since - rise.stood)))
    lacking = float(np.sum(rise.stood - rise.minutes[down]))
    if more > lacking:
        return None
    text = f"{len(down)} minutes next to zero lack {lacking:.4g} (minutes × demand); since then {more:.4g} came above "
    return NotASurge(cause=Cause.REPLAYED_BACKLOG, evidence=text + f"the {rise.stood:.4g} that stood before")


def _with_changes(found: NotASurge, facts: Facts) -> NotASurge:
    if not facts.changes:
        return found
    return NotASurge(cause=found.cause, evidence=f"{found.evidence}; changed lately: {', '.join(facts.changes)}")
