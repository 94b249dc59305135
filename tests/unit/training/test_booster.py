"""One horizon's trees: stopped where more do not help, equal for equal seeds, a start for the next horizon."""

import signal
from pathlib import Path

import numpy as np
import pytest

from leadtime.domain.errors import BadTrace
from leadtime.risk.measures import average_precision
from leadtime.training import booster as boosters
from leadtime.training.booster import Settings, settings_from
from leadtime.training.sampling import Rows

QUICK = Settings(rounds=30, patience=10, eta=0.2, max_depth=3, subsample=1.0, colsample_bytree=1.0)


def rows(seed: int, *, n: int = 4_000, rate: float = 0.05, weight: float = 1.0) -> Rows:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n, 4)).astype(np.float32)
    y = (generator.random(n) < rate * np.exp(1.2 * x[:, 0] - 0.72)).astype(np.float32)
    x[generator.random(x.shape) < 0.05] = np.nan
    weights = np.where(y == 1, 1.0, weight).astype(np.float32)
    return Rows(x=x, index=np.arange(n), y=y, weight=weights, collection=np.arange(n) // 10)


def test_equal_seeds_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        fitted = boosters.fit(rows(1), rows(2), Settings(rounds=20, patience=20), seed=4, threads=1)
        boosters.save(fitted.booster, tmp_path / f"{name}.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_weights_of_negatives_give_probabilities_of_the_full_stream() -> None:
    train = rows(1, weight=20.0)
    fitted = boosters.fit(train, rows(2, weight=20.0), QUICK, seed=1, threads=1)
    p = 1 / (1 + np.exp(-boosters.margins(fitted.booster, train.x)))
    assert np.average(p, weights=train.weight) == pytest.approx(train.base_rate, rel=0.15)


def test_a_raised_model_ranks_alike_and_moves_every_log_odds_by_as_much() -> None:
    fitted = boosters.fit(rows(1), rows(2), QUICK, seed=1, threads=1)
    x = rows(3).x
    moved = boosters.margins(boosters.raised(fitted.booster, -1.5), x) - boosters.margins(fitted.booster, x)
    assert moved == pytest.approx(np.full(len(x), -1.5), abs=1e-5)


def test_own_trees_that_do_not_pay_leave_the_start_as_it_is() -> None:
    fitted = boosters.fit(rows(1, n=20_000), rows(2), QUICK, seed=1, threads=1)
    few = rows(5, n=600, rate=0.06)
    kept = boosters.fit(few, rows(2), QUICK, start=boosters.started(fitted, few), seed=1, threads=1)
    alone = boosters.fit(few, rows(2), QUICK, seed=1, threads=1)
    test = rows(6, n=20_000)
    with_start, without = (average_precision(test.y, boosters.margins(one.booster, test.x)) for one in (kept, alone))
    assert kept.watched >= fitted.watched * 0.999
    assert with_start > without


def test_contributions_add_up_to_the_margin() -> None:
    fitted = boosters.fit(rows(1), rows(2), QUICK, seed=1, threads=1)
    x = rows(3, n=50).x
    assert boosters.contributions(fitted.booster, x).sum(axis=1) == pytest.approx(
        boosters.margins(fitted.booster, x), abs=1e-4
    )


def test_a_block_with_hardly_a_failure_is_refused() -> None:
    with pytest.raises(BadTrace, match="early-stopping block has") as refused:
        boosters.fit(rows(1), rows(2, n=100), QUICK, seed=1, threads=1)
    assert refused.value.slug == "too-few-failures"


def test_a_setting_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadTrace, match="scale_pos_weight"):
        settings_from({"scale_pos_weight": 10})


def test_a_stop_while_rows_are_binned_comes_after_it_and_is_not_lost() -> None:
    reached: list[str] = []

    def binning() -> None:
        with boosters.undisturbed():
            signal.raise_signal(signal.SIGINT)
            reached.append("the end")

    with pytest.raises(KeyboardInterrupt):
        binning()
    assert reached == ["the end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
