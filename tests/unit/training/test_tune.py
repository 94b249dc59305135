"""The search: stopped and continued it tries the same settings; a journal of other data is refused; no gain is said."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from leadtime.domain.errors import BadTrace
from leadtime.training.booster import Settings
from leadtime.training.tune import FOLDS, TuneOptions, objective, tune
from leadtime.training.tune_result import Gain, read_tuned

TRIALS = 14  # more than are drawn at random: TPE and the pruner must come back the same too


class Surface:
    """Folds whose score is a formula of the settings; stops like Ctrl-C at call ``stop_at``."""

    def __init__(self, *, stop_at: int | None = None, gain_low: float = 0.01) -> None:
        self.seen: list[dict[str, Any]] = []
        self._stop_at = stop_at
        self._gain = Gain(mean=gain_low + 0.01, low=gain_low, high=gain_low + 0.02)

    def facts(self) -> dict[str, Any]:
        return {"folds": FOLDS}

    def score(self, number: int, settings: Settings) -> float:
        if self._stop_at is not None and len(self.seen) == self._stop_at:
            raise KeyboardInterrupt
        self.seen.append({"fold": number, **asdict(settings)})
        return 0.5 - abs(settings.eta - 0.1) - 0.01 * abs(settings.max_depth - 6) + 0.01 * number

    def gain(self, before: Settings, after: Settings) -> Gain:
        return self._gain


def options(folder: Path, *, trials: int = TRIALS, seed: int = 7) -> TuneOptions:
    return TuneOptions(
        features=folder, journal=folder / "journal.log", out=folder / "tuned.json", trials=trials, seed=seed
    )


@pytest.mark.parametrize("stop_at", [1, 5, 31])
def test_a_search_stopped_anywhere_and_continued_makes_the_same_trials(tmp_path: Path, stop_at: int) -> None:
    whole = Surface()
    expected = tune("hash", "baseline", whole, options(tmp_path / "whole"))
    first, second = Surface(stop_at=stop_at), Surface()
    with pytest.raises(KeyboardInterrupt):
        tune("hash", "baseline", first, options(tmp_path / "cut"))
    continued = tune("hash", "baseline", second, options(tmp_path / "cut"))
    begun_anew = second.seen[0]["fold"] == 0
    finished = first.seen[: len(whole.seen) - len(second.seen)]
    assert begun_anew
    assert finished + second.seen == whole.seen
    assert continued == expected
    assert (tmp_path / "cut" / "tuned.json").read_bytes() == (tmp_path / "whole" / "tuned.json").read_bytes()


def test_the_first_trial_is_the_defaults(tmp_path: Path) -> None:
    surface = Surface()
    tune("hash", "baseline", surface, options(tmp_path, trials=2))
    tried = {name: value for name, value in surface.seen[0].items() if name != "fold"}
    assert tried == pytest.approx(asdict(Settings()), abs=1e-7)


def test_a_finished_search_asked_for_no_more_trials_tries_nothing(tmp_path: Path) -> None:
    tune("hash", "baseline", Surface(), options(tmp_path, trials=3))
    again = Surface()
    tune("hash", "baseline", again, options(tmp_path, trials=3))
    assert again.seen == []


@pytest.mark.parametrize(("data_hash", "seed", "named"), [("other", 7, "data_hash"), ("hash", 8, "seed")])
def test_a_journal_of_another_search_is_refused_by_name(tmp_path: Path, data_hash: str, seed: int, named: str) -> None:
    tune("hash", "baseline", Surface(), options(tmp_path, trials=2))
    with pytest.raises(BadTrace, match=named) as refused:
        tune(data_hash, "baseline", Surface(), options(tmp_path, trials=2, seed=seed))
    assert refused.value.slug == "tune-journal-of-other-data"


def test_every_trial_carries_the_data_hash(tmp_path: Path) -> None:
    tune("the-hash", "baseline", Surface(), options(tmp_path, trials=3))
    lines = [json.loads(line) for line in (tmp_path / "journal.log").read_text(encoding="utf-8").splitlines()]
    assert sum(line.get("user_attr") == {"data_hash": "the-hash"} for line in lines) == 3


def test_a_gain_is_written_down_and_read_back(tmp_path: Path) -> None:
    found = tune("hash", "baseline", Surface(gain_low=0.01), options(tmp_path))
    settings, content = read_tuned(tmp_path / "tuned.json")
    assert found.better
    assert settings == found.settings != Settings()
    assert content["gain"] == asdict(found.gain)


def test_without_a_sure_gain_the_defaults_are_kept(tmp_path: Path) -> None:
    found = tune("hash", "baseline", Surface(gain_low=-0.001), options(tmp_path))
    assert not found.better
    assert read_tuned(tmp_path / "tuned.json")[0] == Settings()


def test_a_setting_good_on_one_fold_only_loses() -> None:
    assert objective([0.2, 0.2, 0.2]) == pytest.approx(0.2)
    assert objective([0.5, 0.1, 0.1]) < objective([0.22, 0.2, 0.2])


@pytest.mark.parametrize("content", ["{", "[]", '{"schema": "other"}', '{"schema": "leadtime.borg-tuned/1"}'])
def test_a_file_that_is_no_tuned_json_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "tuned.json").write_text(content, encoding="utf-8")
    with pytest.raises(BadTrace) as refused:
        read_tuned(tmp_path / "tuned.json")
    assert refused.value.slug == "tuned-broken"
