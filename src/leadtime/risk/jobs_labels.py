"""Canonical jobs → labels and their standing: did it fail, how long did it wait, and what of that is known by when."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from leadtime.domain.jobs import DEFAULT_FAILURES, ENDED, Outcome
from leadtime.risk.measures import Array

MOST_WEIGHT = 20.0


def failures(frame: pl.DataFrame, kinds: Iterable[Outcome] = DEFAULT_FAILURES) -> Array:
    """1 where the job's end is one of ``kinds``, 0 where it is another end, NaN where none was seen (or unknown).

    Other ends (cancelled, a lost node) are negatives: the job did not fail by itself, and never will.
    """
    known = frame["outcome"].is_in([one.value for one in ENDED]) & frame["ended_s"].is_not_null()
    hit = frame["outcome"].is_in([one.value for one in kinds])
    return np.where(known.to_numpy(), hit.to_numpy().astype(np.float64), np.nan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Submission to start [jobs], in s; ``seen``: 1 where the start was seen, else the wait was longer than that."""

    wait_s: Array
    seen: Array


def waits(frame: pl.DataFrame, *, known_until_s: float) -> Waits:
    """What is known at ``known_until_s`` of jobs submitted before it.

    A job that had not started is censored there; one that was cancelled before it started is censored at its end: it
    would have waited longer (assumed: by no rule that has to do with its wait; people who lose patience break that).
    """
    names = ("submitted_s", "started_s", "ended_s")
    submitted, started, ended = (frame[name].cast(pl.Float64).fill_null(float("inf")).to_numpy() for name in names)
    seen = started <= known_until_s
    last = np.where(seen, started, np.minimum(ended, known_until_s))
    return Waits(wait_s=np.maximum(last - submitted, 0.0), seen=seen.astype(np.float64))


def censoring_weights(told: Waits) -> Array:
    """Weight of each seen wait so that they stand for all: 1 / P(not censored before it); 0 for censored ones.

    Inverse probability of censoring (Robins & Rotnitzky 1992), G by Kaplan and Meier with the roles of start and
    censoring exchanged; at most MOST_WEIGHT, so that a single long wait does not speak for everybody.
    """
    order = np.lexsort((-told.seen, told.wait_s))  # at equal times a start comes before a censoring
    at_risk = np.arange(len(order), 0, -1)
    censored = 1.0 - told.seen[order]
    survive = np.cumprod(1.0 - censored / at_risk)
    before = np.concatenate(([1.0], survive[:-1]))
    weight = np.zeros(len(order))
    weight[order] = np.where(told.seen[order] > 0, 1.0 / np.maximum(before, 1.0 / MOST_WEIGHT), 0.0)
    return weight
