"""Who becomes champion, who may act, and when a champion steps down."""

import numpy as np
import pytest

from leadtime.forecast.model import FloatColumn
from leadtime.forecast.selection import BLOCK_S, Contestant, choose, difference, serving

COUNT = 7 * 1440
AT_S = 60 * np.arange(1, COUNT + 1, dtype=np.int64)
NAIVE = ("last_value", "mean_5min")


def share(ratio: float, seed: int) -> FloatColumn:
    return (np.random.default_rng(seed).random(COUNT) < ratio).astype(np.float64)


def one(name: str, hits: float, short: float = 0.0, seed: int = 0) -> Contestant:
    """Equal seeds make paired draws: a model with a higher share hits wherever one with a lower share does."""
    return Contestant(name=name, hit=share(hits, seed), short=share(short, seed + 1))


def field(*more: Contestant) -> list[Contestant]:
    return [one("last_value", 0.60, 0.10), one("mean_5min", 0.62, 0.10), *more]


def test_the_model_with_more_hits_wins_and_acts() -> None:
    chosen = choose(field(one("better", 0.70, 0.10)), NAIVE, AT_S)
    assert (chosen.champion, chosen.acts, chosen.better_naive) == ("better", True, "mean_5min")
    assert "70." in chosen.reason


def test_of_equals_the_simplest_wins() -> None:
    chosen = choose(field(one("simple", 0.70, 0.10), one("dear", 0.70, 0.10)), NAIVE, AT_S)
    assert chosen.champion == "simple"


def test_within_the_error_the_simpler_wins() -> None:
    fields = field(one("simple", 0.70, 0.10, seed=5), one("dear", 0.701, 0.10, seed=9))
    assert choose(fields, NAIVE, AT_S).champion == "simple"


def test_hits_decide_at_the_horizon_and_short_minutes_at_the_lead() -> None:
    chosen = choose(field(one("many hits", 0.75, 0.10), one("seldom short", 0.70, 0.02)), NAIVE, AT_S)
    assert (chosen.champion, chosen.lead_champion) == ("many hits", "seldom short")
    assert "at the lead seldom short" in chosen.reason


def test_who_hits_less_than_naive_may_be_the_best_to_size_pods_by() -> None:
    chosen = choose(field(one("cheap", 0.50, 0.0)), NAIVE, AT_S)
    assert (chosen.champion, chosen.lead_champion, chosen.acts) == ("mean_5min", "cheap", True)


def test_less_than_a_day_tells_nobody_apart() -> None:
    half = COUNT // 14
    short = [Contestant(name=c.name, hit=c.hit[:half], short=c.short[:half]) for c in field(one("best", 0.9, 0.0))]
    chosen = choose(short, NAIVE, AT_S[:half])
    assert (chosen.champion, chosen.lead_champion, chosen.acts) == ("mean_5min", "last_value", False)


def test_a_model_that_wins_here_and_loses_there_is_not_as_good_as_one_that_always_wins() -> None:
    block = AT_S // BLOCK_S
    wild = np.where(block % 2 == 0, 1.0, 0.3)  # 65 % in the mean, 0.62 ± what a coin would give
    steady = np.where(np.random.default_rng(0).random(COUNT) < 0.70, 1.0, 0.0)
    silent = np.full(COUNT, np.nan)
    fields = field(
        Contestant(name="wild", hit=wild, short=silent), Contestant(name="steady", hit=steady, short=silent)
    )  # fmt: skip
    assert difference(wild, steady, AT_S).below(1.0) is False
    assert choose(fields, NAIVE, AT_S).champion == "steady"


def test_where_no_model_helps_the_naive_one_is_champion_and_nobody_acts() -> None:
    chosen = choose(field(one("same", 0.62, 0.10), one("worse", 0.3, 0.2)), NAIVE, AT_S)
    assert (chosen.champion, chosen.acts) == ("mean_5min", False)
    assert "none of 4 models" in chosen.reason


def test_a_model_that_said_nothing_is_no_champion() -> None:
    silent = Contestant(name="silent", hit=np.full(COUNT, np.nan), short=np.full(COUNT, np.nan))
    assert choose(field(silent), NAIVE, AT_S).champion == "mean_5min"


def test_a_model_heard_for_less_than_a_day_is_not_compared() -> None:
    late = one("late", 0.99, 0.0)
    late.hit[: COUNT - 60], late.short[: COUNT - 60] = np.nan, np.nan
    chosen = choose(field(late), NAIVE, AT_S)
    assert (chosen.champion, chosen.lead_champion, chosen.acts) == ("mean_5min", "last_value", False)


def test_the_rates_in_the_sentence_are_of_the_origins_both_spoke_at() -> None:
    easy = np.concatenate([np.zeros(COUNT // 2), np.ones(COUNT - COUNT // 2)])
    late = Contestant(name="late", hit=np.where(easy == 0, np.nan, 1.0), short=np.full(COUNT, np.nan))
    base = [Contestant(name=name, hit=easy * share(0.9, 1), short=np.full(COUNT, np.nan)) for name in NAIVE]
    told = choose([*base, late], NAIVE, AT_S)
    assert told.champion == "late"
    assert "100.0% within ±10 % against 89.1% of last_value on the same origins" in told.reason


def test_without_a_naive_model_nothing_can_be_chosen() -> None:
    with pytest.raises(ValueError, match="none of last_value, mean_5min"):
        choose([one("alone", 0.5)], NAIVE, AT_S)


def test_the_error_counts_blocks_of_six_hours_and_not_minutes() -> None:
    # Within a block all differences are equal: 28 blocks are all that is known.
    per_block = np.random.default_rng(3).standard_normal(COUNT // (BLOCK_S // 60) + 1)
    off = per_block[(AT_S // BLOCK_S).astype(int)]
    found = difference(off, np.zeros(COUNT), AT_S)
    assert found.blocks == 29
    assert found.error == pytest.approx(off.std() / np.sqrt(28), rel=0.1)


def test_one_block_has_no_error_and_is_above_nothing() -> None:
    found = difference(np.ones(10), np.zeros(10), AT_S[:10])
    assert (found.mean, found.error, found.above(1.0), found.below(1.0)) == (1.0, None, False, False)


def losses(*spans: tuple[int, float]) -> FloatColumn:
    """(hours, loss) one after another, one entry a minute."""
    return np.concatenate([np.full(60 * hours, loss) for hours, loss in spans])


def served(champion: FloatColumn) -> list[bool]:
    at_s = 60 * np.arange(1, len(champion) + 1, dtype=np.int64)
    return serving(champion, np.full(len(champion), 0.5), at_s, 10).tolist()


def test_a_champion_that_loses_for_a_day_steps_down_until_it_wins_a_day_again() -> None:
    serves = served(losses((48, 0.4), (48, 0.8), (72, 0.4)))
    assert all(serves[: 48 * 60])
    down = serves.index(False)
    assert 48 * 60 < down <= 72 * 60 + 11
    up = down + serves[down:].index(True)
    assert 96 * 60 < up <= 120 * 60 + 11
    assert all(serves[up:])


def test_before_a_day_is_over_nobody_steps_down() -> None:
    assert all(served(losses((24, 0.9))))


def test_a_tie_changes_nothing() -> None:
    assert all(served(losses((96, 0.5))))


def test_losses_are_used_only_once_they_are_known() -> None:
    bad, worse = losses((30, 0.4), (30, 0.8)), losses((30, 0.4), (30, 0.8))
    worse[3000:] = 0.0
    assert served(bad)[:3010] == served(worse)[:3010]
