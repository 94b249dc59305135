"""Things that happened to groups → counts, sums, ages and faded counts as of each row's p."""

from dataclasses import dataclass

import numpy as np

from leadtime.risk.features.steps import Timeline, Values, decayed_sums, first_of_group, running_sum, timeline

HOUR_US = 3_600_000_000
FADE_DOUBLINGS = 12  # a faded count sees the last 4,096 instants of its group


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Things by group and time, asked for one group and one instant a row (things with time ≤ p count)."""

    line: Timeline
    group: Values  # of the things, sorted
    at_us: Values
    weight: Values
    total: Values  # running sum of weights
    asked: Values  # group of each row
    now_us: Values  # p of each row
    upto: Values  # things known at p, as an index
    first: Values  # where the row's group begins

    def count(self) -> Values:
        """Things of the group so far, Int64 [rows]."""
        return self.total[self.upto] - self.total[self.first]

    def within(self, span_us: int) -> Values:
        """Things in (p − span, p]."""
        return self.total[self.upto] - self.total[self.line.upto(self.asked, self.now_us - span_us)]

    def since_h(self) -> Values:
        """Hours since the newest thing; NaN where there was none, or where it lies before the trace (time 0)."""
        there = self.upto > self.first
        out = np.full(len(self.upto), np.nan)
        then = self.at_us[self.upto[there] - 1]
        out[there] = np.where(then > 0, (self.now_us[there] - then) / HOUR_US, np.nan)
        return out

    def faded(self, half_life_us: int) -> Values:
        """Σ 2^(−age / half-life) over the things so far; 0 where there was none."""
        starts = np.ones(len(self.group), dtype=bool)
        starts[1:] = self.group[1:] != self.group[:-1]
        (sums,) = decayed_sums(
            (self.weight.astype(np.float64),), self.at_us, first_of_group(starts),
            half_life_us=half_life_us, doublings=FADE_DOUBLINGS,
        )  # fmt: skip
        there = self.upto > self.first
        out = np.zeros(len(self.upto))
        newest = self.upto[there] - 1
        out[there] = sums[newest] * np.exp2((self.at_us[newest] - self.now_us[there]) / half_life_us)
        return out


def tally(
    group: Values, at_us: Values, *, groups: int, asked: Values, now_us: Values, weight: Values | None = None
) -> Tally:
    """Group codes and instants of things [n], each counting ``weight`` (1); codes and p of the rows → Tally."""
    line = timeline(group, at_us, groups=max(groups, 1))
    weights = np.ones(len(group), dtype=np.int64) if weight is None else weight[line.order]
    return Tally(
        line=line, group=group[line.order], at_us=at_us[line.order], weight=weights, total=running_sum(weights),
        asked=asked, now_us=now_us, upto=line.upto(asked, now_us), first=line.first(asked),
    )  # fmt: skip
