"""Forecasts and what came → the band as it was issued one lead earlier, the misses, the surges.

For each minute the band is that of the longest horizon issued for it (the node lead); a newer issue of that lead for
the same minute replaces an older one. A miss is an actual outside [lower, upper]; at level 0.9 one in ten is expected.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from leadtime.dashboard.views import ForecastView, Story, SurgeView

MINUTE_S = 60
JOIN_GAP_S = 180  # misses at most three minutes apart are one stretch
LEAST_STRETCH_S = 300  # shorter ones are drawn but not told


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """One minute outside its band. ``excess_ratio`` > 0: above upper by that share of it; < 0: below lower."""

    at_s: int
    actual: float
    band: ForecastView
    excess_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MissStretch:
    """Misses on one side, close together: [start_s, end_s), with the worst of them."""

    start_s: int
    end_s: int
    minutes: int
    worst: Miss


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastCheck:
    """The band, and how it stood up. ``checked`` counts minutes that have both a band and an actual."""

    band: tuple[ForecastView, ...]
    misses: tuple[Miss, ...]
    stretches: tuple[MissStretch, ...]
    checked: int
    level_ratio: float | None
    surges: tuple[tuple[SurgeView, ...], ...]  # each surge: its ticks, in order


def check_forecasts(story: Story, until_s: int) -> ForecastCheck:
    """Hold the band against demand up to ``until_s`` (open)."""
    band = issued_band(story)
    actuals = actual_demand(story)
    misses = []
    checked = 0
    for forecast in band:
        minute = forecast.target_s // MINUTE_S * MINUTE_S
        actual = actuals.get(minute)
        if actual is None or minute >= until_s:
            continue
        checked += 1
        excess = _excess(actual, forecast)
        if excess:
            misses.append(Miss(at_s=minute, actual=actual, band=forecast, excess_ratio=excess))
    return ForecastCheck(
        band=band,
        misses=tuple(misses),
        stretches=_stretches(misses),
        checked=checked,
        level_ratio=band[0].level_ratio if band else None,
        surges=_surges(story, until_s),
    )


def issued_band(story: Story) -> tuple[ForecastView, ...]:
    """One forecast a minute, by target: the one with the longest horizon of its tick."""
    by_minute: dict[int, ForecastView] = {}
    for tick in story.ticks:
        view = tick.workloads.get(story.workload)
        if view and view.forecasts:
            longest = max(view.forecasts, key=lambda f: f.horizon_s)
            by_minute[longest.target_s // MINUTE_S * MINUTE_S] = longest
    return tuple(by_minute[minute] for minute in sorted(by_minute))


def actual_demand(story: Story) -> dict[int, float]:
    """Demand by minute: what a world recorded (all worlds have the same demand), else what the ticks saw.

    Of a thinned world only those minutes are taken that no tick saw.
    """
    world = story.worlds.get("leadtime") or next(iter(story.worlds.values()), None)
    recorded = {}
    if world is not None:
        held = range(0, world.step_s, MINUTE_S)  # a thinned row's mean stands for each of its minutes
        rows = [(at, value) for at, value in zip(world.at_s, world.demand, strict=True) if value is not None]
        recorded = {at + offset: value for at, value in rows for offset in held}
    return recorded if world is not None and world.step_s == MINUTE_S else recorded | _seen_demand(story)


def _seen_demand(story: Story) -> dict[int, float]:
    views = (t.workloads[story.workload] for t in story.ticks if story.workload in t.workloads)
    return {v.demand_at_s // MINUTE_S * MINUTE_S: v.demand for v in views if v.demand is not None}


def _excess(actual: float, forecast: ForecastView) -> float:
    if actual > forecast.upper:
        return (actual - forecast.upper) / forecast.upper if forecast.upper > 0 else 1.0
    if actual < forecast.lower:
        return (actual - forecast.lower) / forecast.lower
    return 0.0


def _stretches(misses: Sequence[Miss]) -> tuple[MissStretch, ...]:
    groups: list[list[Miss]] = []
    for miss in misses:
        last = groups[-1][-1] if groups else None
        near = last is not None and miss.at_s - last.at_s <= JOIN_GAP_S
        if last is not None and near and (miss.excess_ratio > 0) == (last.excess_ratio > 0):
            groups[-1].append(miss)
        else:
            groups.append([miss])
    found = (
        MissStretch(
            start_s=group[0].at_s,
            end_s=group[-1].at_s + MINUTE_S,
            minutes=len(group),
            worst=max(group, key=lambda m: abs(m.excess_ratio)),
        )
        for group in groups
    )
    return tuple(stretch for stretch in found if stretch.end_s - stretch.start_s >= LEAST_STRETCH_S)


def _surges(story: Story, until_s: int) -> tuple[tuple[SurgeView, ...], ...]:
    runs: list[list[SurgeView]] = []
    for tick in story.ticks:
        view = tick.workloads.get(story.workload)
        if not view or not view.surge or tick.at_s >= until_s:
            continue
        if runs and tick.at_s - runs[-1][-1].at_s <= JOIN_GAP_S:
            runs[-1].append(view.surge)
        else:
            runs.append([view.surge])
    return tuple(tuple(run) for run in runs)
