"""Calibrated bounds hold what they state; the simplest model that is no worse speaks; the blend keeps order."""

import numpy as np
import pytest

from leadtime.domain.reasons import Reason
from leadtime.forecast import champion as champions
from leadtime.forecast import race as races
from leadtime.forecast.blend import blend
from leadtime.forecast.champion import Champion
from leadtime.forecast.model import Band, TooShort, point
from leadtime.forecast.race import HORIZONS_MIN, LOWER, UPPER, Block, Race
from leadtime.policy.schema import ForecastPolicy

REFUSED = TooShort(reason="x", needed_s=1, have_s=0)
WINDOW_S = 604_800
RULES = ForecastPolicy()


def flat(value: float, width: float = 0.0) -> Band:
    steps = np.full(races.PATH_MIN, value)
    return Band(expected=steps, lower=steps - width, upper=steps + width)


def raced(actual: np.ndarray, bands: tuple[Band | TooShort, ...]) -> Race:
    """Every model says the same at each issue; ``actual`` holds one value a minute."""
    race = races.start(len(bands), 0.9)
    for minute, value in enumerate(actual):
        if races.is_issue_minute(minute):
            race = races.issue(race, minute, 100.0, bands)
            race = races.score(race, minute, None if np.isnan(value) else float(value), 0.9, WINDOW_S)
    return race


def normal(minutes: int, deviation: float, seed: int = 2) -> np.ndarray:
    return 100.0 + deviation * np.random.default_rng(seed).standard_normal(minutes)


def test_the_shift_finds_the_quantile_of_the_misses() -> None:
    race = raced(normal(6 * 1440, 10.0), (flat(100.0), flat(100.0, 30.0)))
    assert race.shift[UPPER, 0] == pytest.approx(0.165, abs=0.05)
    assert race.shift[UPPER, 1] == pytest.approx(0.165 - 0.30, abs=0.05)  # too wide a band is tightened
    assert race.shift[LOWER, 0] == pytest.approx(0.165, abs=0.05)


@pytest.mark.parametrize("deviations", [(5.0, 5.0), (5.0, 20.0), (20.0, 5.0)], ids=["steady", "wilder", "calmer"])
def test_nine_of_ten_fall_inside_also_when_the_noise_changes(deviations: tuple[float, float]) -> None:
    actual = np.concatenate([normal(10 * 1440, d, seed=i) for i, d in enumerate(deviations)])
    block = raced(actual, (flat(100.0),)).blocks
    inside = sum(b.inside.sum() for b in block) / sum(b.count.sum() for b in block)
    assert 0.87 <= inside <= 0.95


def test_a_gap_scores_nothing() -> None:
    actual = normal(3 * 1440, 5.0)
    actual[1440:2880] = np.nan
    assert [b.number for b in raced(actual, (flat(100.0),)).blocks] == [0, 1, 2, 3, 8, 9, 10, 11]


def test_a_model_that_refuses_is_not_scored() -> None:
    race = raced(normal(1440, 5.0), (flat(100.0), REFUSED))
    assert sum(b.count[1].sum() for b in race.blocks) == 0
    assert np.isfinite(race.shift).all()


def test_memory_of_the_race_is_bounded_by_the_window() -> None:
    race = raced(normal(20 * 1440, 5.0), (flat(100.0),))
    assert len(race.blocks) == WINDOW_S // races.BLOCK_S
    assert len(race.issued) == HORIZONS_MIN[-1] // races.ISSUE_EVERY_MIN + 1


def blocks(*losses: list[float], count: int = 36) -> tuple[Block, ...]:
    """One block per list; a model's loss per forecast, the same at every horizon. NaN: never scored."""
    made = []
    for i, per in enumerate(losses):
        loss = np.repeat(np.array(per)[:, None] * count, 4, axis=1)
        known = np.where(np.isnan(loss), 0.0, float(count))
        made.append(
            Block(number=i, loss=np.nan_to_num(loss), inside=known * 0.9, count=known, actual=3600.0, minutes=36)
        )
    return tuple(made)


@pytest.mark.parametrize(
    ("losses", "chosen"),
    [
        ([[1.0, 1.0, 1.0]] * 8, 0),  # all alike: the simplest
        ([[1.0, 0.5, 0.5]] * 8, 1),  # two alike: the simpler of them
        ([[1.0, 1.1, 0.2]] * 8, 2),
        ([[1.00, 1.0, 0.97], [0.97, 1.0, 1.0]] * 4, 0),  # differences within the error of the mean
        ([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [9.0, 9.0, 2.0]] * 2, 2),  # a rare event counts
        ([[1.0, 1.0, float("nan")]] * 6 + [[1.0, 1.0, 0.1]] * 2, 0),  # scored too seldom to count
        ([[1.0, 1.0, float("nan")]] * 3 + [[1.0, 1.0, 0.1]] * 5, 2),
        ([[0.1, 1.0, 1.0]] * 4 + [[1.0, 1.0, 0.2]] * 28, 2),  # what was long ago weighs less
    ],
)
def test_the_simplest_model_that_is_no_worse_speaks(losses: list[list[float]], chosen: int) -> None:
    assert champions.choose(blocks(*losses), WINDOW_S).models == (chosen,) * 4


def test_the_champions_numbers_by_hand() -> None:
    best = champions.choose(blocks([2.0, 1.0], [2.0, 1.0]), WINDOW_S)
    assert best.loss_ratio == pytest.approx(0.01)  # 1.0 of a mean demand of 100
    assert best.last_value_loss_ratio == pytest.approx(0.02)
    assert best.covered_ratio == pytest.approx(0.9)
    assert (best.scored, best.scored_s) == (288, 43_200)


@pytest.mark.parametrize(
    ("models", "loss", "have_s", "may_act", "reason"),
    [
        ((1, 1, 1, 1), 0.01, 200_000, True, Reason.FORECAST_BEATS_LAST_VALUE),
        ((0, 0, 0, 1), 0.01, 200_000, True, Reason.FORECAST_BEATS_LAST_VALUE),
        ((0, 0, 0, 0), 0.02, 200_000, False, Reason.MODEL_LOSES_TO_LAST_VALUE),
        ((1, 1, 1, 1), 0.021, 200_000, False, Reason.MODEL_LOSES_TO_LAST_VALUE),
        ((1, 1, 1, 1), 0.01, 100_000, False, Reason.HISTORY_TOO_SHORT),
    ],
)
def test_who_may_act(models: tuple[int, ...], loss: float, have_s: int, may_act: bool, reason: Reason) -> None:
    champion = Champion(models=models, loss_ratio=loss, last_value_loss_ratio=0.02, covered_ratio=0.9, scored=999)
    answer, why = champions.standing(champion, "ets", have_s, RULES)
    assert answer is may_act
    assert why.reason is reason


def test_the_blend_passes_from_one_champion_to_the_next() -> None:
    shift = np.zeros((2, 2, 4))
    path = blend((point(np.full(101, 10.0)), point(np.full(101, 50.0))), (0, 1, 1, 1), shift, 100.0)
    assert path.expected[[0, 10, 20, 30, 100]].tolist() == pytest.approx([10.0, 10.0, 30.0, 50.0, 50.0])


def test_the_blend_replaces_a_refusing_champion_and_keeps_order_and_sign() -> None:
    shift = np.full((2, 2, 4), 0.5)
    path = blend((point(np.full(101, 10.0)), REFUSED), (1, 1, 1, 1), shift, 100.0)
    assert (path.expected == 10.0).all()
    assert (path.lower == 0.0).all()
    assert path.upper[:91].tolist() == pytest.approx([60.0] * 91)
    assert path.upper[100] > 60.0  # beyond the last scored horizon it widens
    tight = blend((point(np.full(101, 10.0)), REFUSED), (0, 0, 0, 0), np.full((2, 2, 4), -0.5), 100.0)
    assert (tight.lower <= tight.expected).all()
    assert (tight.expected <= tight.upper).all()
