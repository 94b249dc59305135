"""Demand, a lead and the capacity of a pod → pods to keep ready for what may arrive within the lead, and their cost.

For where the lead exceeds what can be foreseen (DESIGN §4.6). The ratio of the highest demand of the next lead to the
demand now is taken at every known minute; a high quantile of these ratios, by hour of the local day once two weeks of
it are known, is what must stand beside what stands. The demand now is the mean of the last five minutes: of a single
minute much of the ratio would be that minute's noise. The quantile is learned on the first 60 % of the time and checked
on the rest, so the share it would have held is a forecast and not a memory. No buffer is larger than what the highest
demand ever seen would need: where single minutes are noise, their ratios alone would ask for many times that.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from leadtime.domain.time_window import from_epoch
from leadtime.forecast.foresight import NAIVE_S, Recorded
from leadtime.forecast.model import MINUTE_S, FloatColumn

IntColumn = npt.NDArray[np.int64]

HOURS = 24
DAYS_BY_HOUR = 14  # of one hour of the day: a 95 % quantile of fewer days is the highest of them
LEARN_SHARE = 0.6  # record 0019: the first 60 % are for learning, the rest is the test
LEAST_MINUTES = 1440
DAY_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferAsk:
    """What a buffer is sized by. ``per_pod``: demand a pod takes at the target utilisation, in the series' unit.

    ``quantile_ratio``: how often the buffer should do; ``gpus_per_pod`` 0 where pods have none; ``zone``: IANA name.
    """

    lead_s: float
    per_pod: float
    quantile_ratio: float = 0.95
    gpus_per_pod: int = 1
    zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadBuffer:
    """``rise_ratio[h]``: highest demand within the lead ÷ demand now, at the quantile, for local hour h (24 entries).

    ``pods``: the most pods the buffer holds at any minute of the record, ``mean_pods`` on average;
    ``gpu_hours_per_day`` = mean_pods × 24 × GPUs a pod. ``held_ratio``: share of the last 40 % of the minutes in which
    what arrived within the lead would have found its pods (target utilisation kept); ``without_ratio`` the same without
    a buffer. ``by_hour`` False: too few days, one ratio for the whole day.
    """

    lead_s: float
    quantile_ratio: float
    rise_ratio: tuple[float, ...]
    by_hour: bool
    pods: int
    mean_pods: float
    gpu_hours_per_day: float
    held_ratio: float
    without_ratio: float
    minutes: int
    sentence: str


def size_buffer(series: Recorded, ask: BufferAsk) -> LeadBuffer | None:
    """The buffer for ``ask``; None where fewer than a day of minutes with a known lead after them is there.

    Raises ValueError for a lead, a capacity or a quantile that cannot be.
    """
    if ask.lead_s <= 0 or ask.per_pod <= 0 or not 0 < ask.quantile_ratio < 1:
        raise ValueError(
            f"sizing a buffer: lead {ask.lead_s:g} s and {ask.per_pod:g} a pod must be above 0, "
            f"quantile {ask.quantile_ratio:g} between 0 and 1"
        )
    now, most = now_and_most(series, ask.lead_s)
    at = np.flatnonzero(~np.isnan(now) & ~np.isnan(most))
    if len(at) * series.per_bucket < LEAST_MINUTES:
        return None
    stands = np.maximum(1.0, np.ceil(now[at] / ask.per_pod - 1e-9))
    needs = np.maximum(stands, np.ceil(most[at] / ask.per_pod - 1e-9))
    ratio = most[at] / np.maximum(now[at], ask.per_pod)  # below one pod's worth of demand one pod stands anyhow
    hours = local_hours(series, at, ask.zone)
    learned = at < at[0] + LEARN_SHARE * (at[-1] + 1 - at[0])
    rise, _ = _quantiles(ratio[learned], hours[learned], series.step_s, ask.quantile_ratio)
    tested = ~learned
    kept = np.minimum(_pods(rise, now[at], stands, hours, ask), np.maximum(0.0, needs[learned].max() - stands))
    held = (stands + kept >= needs)[tested]
    rise, by_hour = _quantiles(ratio, hours, series.step_s, ask.quantile_ratio)
    pods = np.minimum(_pods(rise, now[at], stands, hours, ask), needs.max() - stands)
    found = LeadBuffer(
        lead_s=ask.lead_s, quantile_ratio=ask.quantile_ratio, rise_ratio=tuple(rise.tolist()), by_hour=by_hour,
        pods=int(pods.max()), mean_pods=float(pods.mean()),
        gpu_hours_per_day=float(pods.mean()) * HOURS * ask.gpus_per_pod, held_ratio=float(held.mean()),
        without_ratio=float((stands[tested] >= needs[tested]).mean()), minutes=len(at) * series.per_bucket, sentence="",
    )  # fmt: skip
    return _told(found, ask)


def now_and_most(series: Recorded, lead_s: float) -> tuple[FloatColumn, FloatColumn]:
    """By bucket: the demand now (mean of the known of the last five minutes) and the highest of the next lead.

    NaN where nothing is known, where the lead reaches beyond the end, or where less than half of it is known.
    """
    values, count = series.values, len(series.values)
    width, ahead = max(1, NAIVE_S // series.step_s), max(1, int(-(-lead_s // series.step_s)))
    now, most = np.full(count, np.nan), np.full(count, np.nan)
    if count < width + ahead:
        return now, most
    known = ~np.isnan(values)
    counts = np.convolve(known, np.ones(width), "full")[:count]
    sums = np.convolve(np.where(known, values, 0.0), np.ones(width), "full")[:count]
    now = np.where(known, sums / np.maximum(counts, 1.0), np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(np.where(known, values, -np.inf), ahead)[1:]
    enough = np.lib.stride_tricks.sliding_window_view(known, ahead)[1:].mean(axis=1) >= 0.5
    most[: len(windows)] = np.where(enough, windows.max(axis=1), np.nan)
    return now, most


def local_hours(series: Recorded, at: IntColumn, zone: str) -> IntColumn:
    """Local hour (0–23) in which each bucket ends."""
    end_s = series.start_s + (at + 1) * series.step_s
    starts, which = np.unique(end_s // 3600, return_inverse=True)
    place = ZoneInfo(zone)
    local = [from_epoch(int(hour) * 3600).astimezone(place) for hour in starts]
    offset = np.array([int((one.utcoffset() or timedelta()).total_seconds()) for one in local], dtype=np.int64)
    return np.asarray((end_s + offset[which]) % DAY_S // 3600, dtype=np.int64)


def _quantiles(ratio: FloatColumn, hours: IntColumn, step_s: int, quantile_ratio: float) -> tuple[FloatColumn, bool]:
    """One quantile an hour, each from that hour and its neighbours; the whole day's where an hour has too few days."""
    whole = float(np.quantile(ratio, quantile_ratio))
    found = np.full(HOURS, max(1.0, whole))
    least = DAYS_BY_HOUR * 3600 // step_s * 0.9
    counts = np.bincount(hours, minlength=HOURS)
    if (counts < least).any():
        return found, False
    for hour in range(HOURS):
        near = np.isin(hours, [(hour - 1) % HOURS, hour, (hour + 1) % HOURS])
        found[hour] = max(1.0, float(np.quantile(ratio[near], quantile_ratio)))
    return found, True


def _pods(rise: FloatColumn, now: FloatColumn, stands: FloatColumn, hours: IntColumn, ask: BufferAsk) -> FloatColumn:
    """Buffer pods at each minute: what the risen demand needs beyond what stands."""
    needs = np.ceil(np.maximum(now, ask.per_pod) * rise[hours] / ask.per_pod - 1e-9)
    return np.maximum(0.0, needs - stands)


def _told(found: LeadBuffer, ask: BufferAsk) -> LeadBuffer:
    low, high = min(found.rise_ratio), max(found.rise_ratio)
    rise = f"{low:.2f} to {high:.2f} × by hour of the day" if found.by_hour else f"{high:.2f} ×"
    if ask.gpus_per_pod:
        cost = f"{found.gpu_hours_per_day:,.0f} GPU-hours a day"
    else:
        cost = f"{found.mean_pods * HOURS:,.0f} pod-hours a day"
    text = (
        f"within {ask.lead_s / MINUTE_S:g} min demand rises to no more than {rise} what it is, in "
        f"{found.quantile_ratio:.0%} of the minutes: a buffer of {found.mean_pods:.1f} pods on average, {found.pods} "
        f"at most, {cost}; on the last 40 % of the time it would have kept the target in {found.held_ratio:.0%} of the "
        f"minutes, nothing beside what stands in {found.without_ratio:.0%}"
    )
    return replace(found, sentence=text)
