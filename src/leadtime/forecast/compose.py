"""Passages through several stages in a row → draws of the whole duration, without adding up quantiles.

Two readings, and the slower one counts. *Independent*: every stage drawn from its own survival curve. *By episode*: the
stages drawn from one episode together, because a slow morning is slow in every stage; only episodes in which every
stage was seen to end can tell. Draws are a fixed sequence (no random numbers): equal samples, equal lead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from leadtime.forecast import kaplan_meier
from leadtime.forecast.kaplan_meier import Curve
from leadtime.forecast.model import FloatColumn

DRAWS = 512
DRAWS_AN_EPISODE = 32
# Irrational steps of a Kronecker sequence: shares of [0, 1) that fill it evenly, each stage in another order.
_STEPS = np.sqrt(np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0, 31.0, 37.0]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Passage:
    """One episode's durations in one stage; ``ended_share`` of all its passages ended, also those not kept here."""

    episode: str
    ended: FloatColumn
    censored: FloatColumn
    ended_share: float


def shares(stage: int, count: int) -> FloatColumn:
    """``count`` shares in (0, 1), evenly spread, in an order of their own for every stage."""
    return np.asarray((0.5 + np.arange(1, count + 1) * _STEPS[stage % len(_STEPS)] * (1 + stage // len(_STEPS))) % 1.0)


def at(draws: FloatColumn, share: float) -> float:
    """Quantile of sorted draws: the smallest draw that at least ``share`` of them do not exceed."""
    return float(draws[max(0, int(np.ceil(share * len(draws) - 1e-9)) - 1)])


def stage_curve(passages: Sequence[Passage]) -> Curve:
    """Survival curve of one stage; every episode weighs 1."""
    durations, ended, weights = [], [], []
    for p in passages:
        durations += [p.ended, p.censored]
        ended += [np.ones(len(p.ended)), np.zeros(len(p.censored))]
        weights += [np.full(len(p.ended), p.ended_share / max(1, len(p.ended)))]
        weights += [np.full(len(p.censored), (1.0 - p.ended_share) / max(1, len(p.censored)))]
    return kaplan_meier.curve(np.concatenate(durations), np.concatenate(ended), np.concatenate(weights))


def composed(stages: Sequence[Sequence[Passage]], quantile: float) -> FloatColumn:
    """Sorted draws of the sum over ``stages``: of the two readings, the one with the larger ``quantile``."""
    curves = [stage_curve(passages) for passages in stages]
    independent = np.sort(sum((c.quantile(shares(i, DRAWS)) for i, c in enumerate(curves)), np.zeros(DRAWS)))
    together = _by_episode(stages)
    if together is None or at(together, quantile) < at(independent, quantile):
        return np.asarray(independent)
    return together


def _by_episode(stages: Sequence[Sequence[Passage]]) -> FloatColumn | None:
    """Sorted draws pooled over the episodes in which every stage ended at least once; None without any."""
    ended = [{p.episode: np.sort(p.ended) for p in passages if len(p.ended)} for passages in stages]
    names = sorted(set.intersection(*(set(stage) for stage in ended)))
    if not names:
        return None
    totals = []
    for name in names:
        total = np.zeros(DRAWS_AN_EPISODE)
        for i, stage in enumerate(ended):
            seen = stage[name]
            total += seen[(shares(i, DRAWS_AN_EPISODE) * len(seen)).astype(np.intp)]
        totals.append(total)
    return np.sort(np.concatenate(totals))


def added(first: FloatColumn, second: FloatColumn) -> FloatColumn:
    """Sorted draws of the sum of two independent durations, each given as sorted draws."""
    one = first[(shares(0, DRAWS) * len(first)).astype(np.intp)]
    two = second[(shares(1, DRAWS) * len(second)).astype(np.intp)]
    return np.sort(one + two)


def log_normal(p50_s: float, p90_s: float) -> FloatColumn:
    """Sorted draws of the log-normal with these two quantiles (of any order: the larger is taken as P90)."""
    normal = NormalDist()
    spread = np.log(max(p50_s, p90_s) / p50_s) / normal.inv_cdf(0.9)
    grid = (np.arange(DRAWS) + 0.5) / DRAWS
    return np.asarray(p50_s * np.exp(spread * np.array([normal.inv_cdf(g) for g in grid])))
