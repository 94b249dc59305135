"""A whole series of minutes → the instants at which the detector would have raised an alarm.

The same state machine as in the loop, for backtests: it hears every minute once, in order, and never what comes later.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from leadtime.forecast import surge_alarm
from leadtime.forecast.model import MINUTE_S, FloatColumn
from leadtime.forecast.surge import PATH_MIN, Reference, reference_at
from leadtime.forecast.surge_alarm import NOTHING_BESIDE, AlarmKind, AlarmState, Beside, Expected
from leadtime.forecast.surge_cause import NotASurge
from leadtime.policy.schema import SurgePolicy

ISSUE_EVERY_MIN = 10
LEVEL_MINUTES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Dismissed:
    """A rise that would have been alarmed at ``at_s`` and was not, because of ``why``."""

    at_s: int
    why: NotASurge


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alarms:
    """``raised_s``: epoch s, ascending; ``kinds`` says for each what saw it first; ``dismissed``: rises that were
    taken for no surge, one entry a run of minutes with the same cause."""

    raised_s: npt.NDArray[np.int64]
    kinds: tuple[AlarmKind, ...]
    dismissed: tuple[Dismissed, ...]


def detect(
    values: FloatColumn,
    start_s: int,
    *,
    paths: Iterable[Reference] = (),
    ready_ratio: FloatColumn | None = None,
    reporting_pods: FloatColumn | None = None,
    policy: SurgePolicy | None = None,
) -> Alarms:
    """Run the detector over minutes [start_s + 60·i, + 60); NaN is a gap. O(n).

    paths: the forecasts as they were issued, ascending by ``at_min`` (the epoch minute that began when it was issued:
    everything before it was known), one every ten minutes or so; the first ``PATH_MIN`` elements are used. Without any
    the mean of the last five minutes, issued every ten, stands for a forecast: nothing is then foreseen.
    ready_ratio, reporting_pods: one entry a minute, NaN unknown (see ``surge_alarm.Beside``).
    Raises ValueError when a column's length is not that of ``values``.
    """
    policy = policy or SurgePolicy()
    for name, column in (("ready_ratio", ready_ratio), ("reporting_pods", reporting_pods)):
        if column is not None and len(column) != len(values):
            raise ValueError(f"detecting surges: {name} has {len(column)} minutes, the series {len(values)}")
    known = [None if np.isnan(v) else float(v) for v in values]
    told = _Told(list(paths))
    state, first_min = AlarmState(), start_s // MINUTE_S
    raised: list[int] = []
    kinds: list[AlarmKind] = []
    dismissed: list[Dismissed] = []
    for i, actual in enumerate(known):
        said = told.about(known, i, first_min)
        before, already = state.standing, state.dismissed
        beside = _beside(i, ready_ratio, reporting_pods)
        state = surge_alarm.watch(state, first_min + i, actual, said, policy, beside=beside)
        if state.standing is not None and before is None:
            raised.append(start_s + MINUTE_S * (i + 1))
            kinds.append(state.standing.kind)
        if state.dismissed is not None and (already is None or already.cause is not state.dismissed.cause):
            dismissed.append(Dismissed(at_s=start_s + MINUTE_S * (i + 1), why=state.dismissed))
    return Alarms(raised_s=np.array(raised, dtype=np.int64), kinds=tuple(kinds), dismissed=tuple(dismissed))


@dataclass(slots=True)
class _Told:
    """The paths that may be known at a minute; makes level paths where none were given."""

    given: Sequence[Reference]
    next: int = 0
    kept: tuple[Reference, ...] = ()

    def about(self, known: Sequence[float | None], i: int, first_min: int) -> Expected:
        """What was said about minute ``i`` at least five minutes earlier, and the path issued at its end, if any."""
        at_min = first_min + i
        expected, upper = reference_at(self.kept, at_min)
        issued = self._issued(known, i, at_min + 1)
        if issued is None:
            return Expected(expected=expected, upper=upper)
        self.kept = (*self.kept[-1:], issued)
        return Expected(expected=expected, upper=upper, path=issued.expected if self.given else ())

    def _issued(self, known: Sequence[float | None], i: int, now_min: int) -> Reference | None:
        if not self.given:
            newest = [v for v in known[max(0, i + 1 - LEVEL_MINUTES) : i + 1] if v is not None]
            if now_min % ISSUE_EVERY_MIN or not newest:
                return None
            level = (sum(newest) / len(newest),) * PATH_MIN
            return Reference(at_min=now_min, expected=level, upper=level)
        found = None
        while self.next < len(self.given) and self.given[self.next].at_min <= now_min:
            found = self.given[self.next]
            self.next += 1
        if found is None or found.at_min != now_min:
            return found and replace(found, expected=found.expected[:PATH_MIN], upper=found.upper[:PATH_MIN])
        return found


def _beside(i: int, ready_ratio: FloatColumn | None, reporting_pods: FloatColumn | None) -> Beside:
    if ready_ratio is None and reporting_pods is None:
        return NOTHING_BESIDE
    return Beside(ready_ratio=_known(ready_ratio, i), reporting_pods=_known(reporting_pods, i))


def _known(column: FloatColumn | None, i: int) -> float | None:
    return None if column is None or np.isnan(column[i]) else float(column[i])
