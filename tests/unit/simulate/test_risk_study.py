"""Model, placebo, none and oracle under the same failures: what is counted, what is said, and what it may cost."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from leadtime.domain.risk import RiskScore
from leadtime.domain.time_window import from_epoch
from leadtime.simulate.risk_scorers import PlaceboScorer
from leadtime.simulate.risk_study import RiskStudy, Trial, difference, sentence
from leadtime.simulate.usage_source import SimulatedUsage
from leadtime.simulate.worlds import begun
from leadtime.testing.risk_world import HOUR_S, T0, prepared


def trial(world: str, seed: int, lost: float, **more: int) -> Trial:
    zero = dict.fromkeys(
        ("failures", "spare_replicas", "alerts", "alerts_failed", "alerts_false", "failures_missed"), 0
    )
    return Trial(world=world, seed=seed, requests_lost=lost, in_flight_lost=0.0, pod_hours=10.0, **{**zero, **more})


def made(none: list[float], placebo: list[float], model: list[float]) -> RiskStudy:
    trials = [
        trial(world, seed, lost, failures=3)
        for seed in range(len(none))
        for world, lost in zip(
            ("none", "placebo", "model", "oracle"), (none[seed], placebo[seed], model[seed], 0.0), strict=True
        )
    ]
    return RiskStudy(model="m@1", horizon_min=30, budget_per_day=4, trials=tuple(trials))


def test_the_interval_is_students_over_draws():
    found = difference([-4.0, -2.0, -6.0, -3.0, -5.0])
    assert found.mean == -4.0
    assert found.high == pytest.approx(-4.0 + 2.776 * np.sqrt(2.5 / 5), abs=1e-3)
    with pytest.raises(ValueError, match="two at least"):
        difference([1.0])


@pytest.mark.parametrize(
    ("placebo", "model", "gain", "words"),
    [
        pytest.param([100, 110, 90], [10, 12, 9], True, "the model pays in requests", id="a gain"),
        pytest.param([100, 110, 90], [101, 99, 95], False, "the interval reaches zero", id="none"),
        pytest.param([12, 9, 10], [10, 12, 9], False, "not told apart from its placebo", id="luck"),
    ],
)
def test_a_gain_is_claimed_only_beside_no_model_and_beside_the_placebo(placebo, model, gain, words):
    told = sentence(made([100, 112, 93], placebo, model))
    assert told[0] is gain
    assert words in told[1]


def test_without_a_failure_nothing_is_said_about_the_model():
    quiet = made([0, 0], [0, 0], [0, 0])
    quiet = replace(quiet, trials=tuple(replace(one, failures=0) for one in quiet.trials))
    assert sentence(quiet) == (False, "no pod failed in any draw: nothing can be said about the model")


def test_the_placebo_deals_every_alert_once_to_pods_and_times_drawn_anew():
    world = prepared(8)
    cluster = begun(world, 2)
    at = from_epoch(T0 + 8 * HOUR_S)
    score = RiskScore(
        pod="serving/api-1", node="gpu-1", as_of=at, window_end=at, horizon=timedelta(minutes=30), probability=0.4,
        base_rate=0.01, expires_at=at, model="m@1",
    )  # fmt: skip
    alerts = [(score, score)] * 12
    placebo = PlaceboScorer("m@1", alerts, seed=5, from_s=T0 + 6 * HOUR_S, until_s=T0 + 14 * HOUR_S)
    usage, told = SimulatedUsage(cluster), set()
    for end_s in range(T0 + 6 * HOUR_S + 600, T0 + 14 * HOUR_S, 300):
        cluster.advance(end_s - 600 + 15 + 300 if end_s > cluster.now_s else cluster.now_s)
        seen = usage.usage(from_epoch(T0), from_epoch(cluster.now_s))
        if seen.windows:
            reading = placebo.scores(seen, horizon=score.horizon, expiry=timedelta(minutes=10), explain_from=0.1)
            told |= {(one.pod, one.window_end) for one in reading.scores}
    running = {pod for pod, _ in told}
    assert len(running) > 1
    assert 12 <= len(told) <= 24  # two windows an alert; two alerts may fall on one pod at one time
    assert len({window_end for _, window_end in told}) > 8  # not the time they were made at
