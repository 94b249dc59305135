"""Features → better settings than the defaults, or an honest "no gain". Stopped and continued, the same trials.

Optuna's seeded TPE over the space of the reference (borg-trace §3.2) with ``scale_pos_weight`` left at 1, a median
pruner over the folds, a journal file. Objective: mean weighted average precision over the rolling folds minus one
standard error. Trial 0 is the defaults. The gain is measured once on the calibration block, which no fold has seen,
with the interval of a paired bootstrap over collections; the test block stays closed.
"""

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, Trial, TrialState

from leadtime.domain.borg import PRIMARY_HORIZON_MIN
from leadtime.domain.errors import BadTrace
from leadtime.training.booster import Settings, settings_from
from leadtime.training.check import require_passed
from leadtime.training.folder_lock import sole_writer
from leadtime.training.manifest import disk_errors
from leadtime.training.progress import Progress, silent
from leadtime.training.sampling import open_features
from leadtime.training.train_plan import plan_for
from leadtime.training.tune_folds import FOLDS, FoldScorer
from leadtime.training.tune_result import Gain, Tuned, write_tuned

STUDY = "leadtime-borg-tune"
ABOUT = "about"
STARTUP_TRIALS = 8  # drawn at random before TPE has anything to go by


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneOptions:
    """One search. ``trials``: how many finished ones there are to be in the end, those of earlier runs included."""

    features: Path
    journal: Path
    out: Path
    allow: tuple[str, ...] = ()
    trials: int = 40
    timeout_s: float | None = None
    seed: int = 0
    threads: int = 2
    horizon_min: int = PRIMARY_HORIZON_MIN
    most_negatives: int = 300_000


class Scorer(Protocol):
    """What a search needs of the data; ``tune_folds.FoldScorer`` is the one there is."""

    def facts(self) -> dict[str, Any]:
        """What a journal must agree on to be continued; JSON."""
        ...

    def score(self, number: int, settings: Settings) -> float:
        """Weighted average precision of ``settings`` on fold ``number`` (0 … FOLDS - 1)."""
        ...

    def gain(self, before: Settings, after: Settings) -> Gain:
        """Difference of average precision on rows no fold has seen."""
        ...


def tune_features(options: TuneOptions, progress: Progress = silent) -> Tuned:
    """``tune`` on a features folder.

    Raises BadTrace when a gate of the data failed and was not allowed, or the horizon is not there.
    """
    data = open_features(options.features)
    require_passed(data.manifest, allow=options.allow, doing="tuning")
    if options.horizon_min not in data.horizons_min:
        raise BadTrace(
            "tune-horizon", "tuning", f"the features have no label for {options.horizon_min} min",
            f"name one of {', '.join(map(str, data.horizons_min))}",
        )  # fmt: skip
    scorer = FoldScorer(
        data, plan_for(data, seed=options.seed), horizon_min=options.horizon_min,
        most_negatives=options.most_negatives, seed=options.seed, threads=options.threads, progress=progress,
    )  # fmt: skip
    with disk_errors("tuning", options.journal.parent), sole_writer(options.journal.parent, doing="tuning"):
        return tune(data.data_hash, data.profile, scorer, options, progress)


def tune(data_hash: str, profile: str, scorer: Scorer, options: TuneOptions, progress: Progress = silent) -> Tuned:
    """Search until ``options.trials`` are finished or the time is over, then write ``options.out``.

    Raises BadTrace when the journal was written for other data, another seed or other folds.
    """
    study = _study(data_hash, scorer, options)
    begun = time.monotonic()
    while len(_finished(study)) < options.trials:
        if options.timeout_s is not None and time.monotonic() - begun > options.timeout_s and _finished(study):
            break
        progress("trials", len(_finished(study)), options.trials, "trials")
        _one_trial(study, scorer, data_hash, options.seed)
    progress("trials", len(_finished(study)), options.trials, "trials")
    tuned = _result(study, scorer)
    about = {"data_hash": data_hash, "profile": profile, "horizon_min": options.horizon_min}
    write_tuned(options.out, tuned, {**about, "seed": options.seed})
    return tuned


def _study(data_hash: str, scorer: Scorer, options: TuneOptions) -> optuna.Study:
    """Open or begin the journal; refuse one of other data by name; clear away what a stopped run left half-done."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    options.journal.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        storage = JournalStorage(JournalFileBackend(str(options.journal)))
    pruner = optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS, n_warmup_steps=0)
    study = optuna.create_study(
        study_name=STUDY, storage=storage, pruner=pruner, direction="maximize", load_if_exists=True
    )
    ours = {"data_hash": data_hash, "seed": options.seed, "horizon_min": options.horizon_min, **scorer.facts()}
    if ABOUT not in study.user_attrs:
        study.set_user_attr(ABOUT, ours)
    theirs = study.user_attrs[ABOUT]
    if theirs != ours:
        name = next(name for name in ours if theirs.get(name) != ours[name])
        raise BadTrace(
            "tune-journal-of-other-data", f"continuing {options.journal}",
            f"it was written for {name} {theirs.get(name)!r}, this run has {ours[name]!r}",
            "move the journal away to begin anew, or name the data it belongs to",
        )  # fmt: skip
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)
    return study


def _finished(study: optuna.Study) -> list[FrozenTrial]:
    return list(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)))


def _one_trial(study: optuna.Study, scorer: Scorer, data_hash: str, seed: int) -> None:
    """Try one set of settings. The sampler is seeded by how many trials are finished, so a continued run draws the same
    ones; a stop leaves a half-done trial, which the next run clears away and draws again."""
    done = len(_finished(study))
    study.sampler = optuna.samplers.TPESampler(seed=seed * 100_003 + done, n_startup_trials=STARTUP_TRIALS)
    if done == 0 and not study.get_trials(deepcopy=False, states=(TrialState.WAITING,)):
        study.enqueue_trial(_searched(Settings()), skip_if_exists=False)
    trial = study.ask()
    trial.set_user_attr("data_hash", data_hash)
    trial.set_user_attr("index", done)
    scores: list[float] = []
    settings = _drawn(trial)
    for number in range(FOLDS):
        scores.append(scorer.score(number, settings))
        trial.report(float(np.mean(scores)), number)
        if number < FOLDS - 1 and done > 0 and trial.should_prune():
            trial.set_user_attr("folds", scores)
            study.tell(trial, state=TrialState.PRUNED)
            return
    trial.set_user_attr("folds", scores)
    study.tell(trial, objective(scores))


def objective(scores: Sequence[float]) -> float:
    """Mean minus one standard error over folds: a setting that is good on one fold only is not good."""
    return float(np.mean(scores) - np.std(scores, ddof=1) / np.sqrt(len(scores)))


def _drawn(trial: Trial) -> Settings:
    """Settings of one trial; ranges: borg-trace §3.2."""
    return replace(
        Settings(),
        max_depth=trial.suggest_int("max_depth", 3, 10),
        eta=trial.suggest_float("eta", 0.01, 0.3, log=True),
        min_child_weight=trial.suggest_float("min_child_weight", 0.1, 300, log=True),
        subsample=trial.suggest_float("subsample", 0.5, 1.0),
        colsample_bytree=trial.suggest_float("colsample_bytree", 0.3, 1.0),
        gamma=trial.suggest_float("gamma", 1e-8, 10, log=True),
        reg_lambda=trial.suggest_float("reg_lambda", 1e-3, 100, log=True),
        reg_alpha=trial.suggest_float("reg_alpha", 1e-8, 10, log=True),
        max_bin=trial.suggest_int("max_bin", 64, 512),
        max_delta_step=trial.suggest_float("max_delta_step", 0, 10),
    )


def _searched(settings: Settings) -> dict[str, Any]:
    """The part of ``settings`` that is searched, inside the ranges (a rate of 0 is the smallest one)."""
    plain = {name: value for name, value in asdict(settings).items() if name not in {"rounds", "patience"}}
    return plain | {name: max(plain[name], 1e-8) for name in ("gamma", "reg_alpha")}


def _result(study: optuna.Study, scorer: Scorer) -> Tuned:
    """The best finished trial against the defaults, on the block no fold has seen."""
    whole = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    best = max(whole, key=lambda trial: (trial.value or 0.0, -trial.number))
    found = settings_from(best.params)
    gain = scorer.gain(Settings(), found) if best is not whole[0] else Gain(mean=0.0, low=0.0, high=0.0)
    return Tuned(
        settings=found if gain.low > 0 else Settings(), best_trial=int(best.user_attrs["index"]), finished=len(whole),
        pruned=len(_finished(study)) - len(whole), objective=float(best.value or 0.0),
        defaults_objective=float(whole[0].value or 0.0), gain=gain,
    )  # fmt: skip
