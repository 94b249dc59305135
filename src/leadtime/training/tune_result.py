"""What a search for settings found → tuned.json and back."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leadtime.domain.errors import BadTrace
from leadtime.training.booster import Settings, settings_from
from leadtime.training.manifest import write_json

TUNED_SCHEMA = "leadtime.borg-tuned/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Difference of average precision, tuned minus defaults, with the middle 95 % of a paired bootstrap."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """What a search found. ``settings`` are the defaults where the gain's interval does not lie above 0."""

    settings: Settings
    best_trial: int
    finished: int
    pruned: int
    objective: float
    defaults_objective: float
    gain: Gain

    @property
    def better(self) -> bool:
        """The whole interval of the gain lies above 0."""
        return self.gain.low > 0


def write_tuned(path: Path, tuned: Tuned, about: Mapping[str, Any]) -> None:
    """Write tuned.json; ``about``: data hash, profile, horizon and seed of the search."""
    write_json(path, {"schema": TUNED_SCHEMA, **about, **as_json(tuned)})


def as_json(tuned: Tuned) -> dict[str, Any]:
    """For tuned.json and ``--json``."""
    return {
        "settings": asdict(tuned.settings), "better_than_defaults": tuned.better, "gain": asdict(tuned.gain),
        "objective": tuned.objective, "defaults_objective": tuned.defaults_objective,
        "best_trial": tuned.best_trial, "finished": tuned.finished, "pruned": tuned.pruned,
    }  # fmt: skip


def read_tuned(path: Path) -> tuple[Settings, Mapping[str, Any]]:
    """Settings and the whole content of a tuned.json. Raises BadTrace where it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.get("schema") != TUNED_SCHEMA:
            raise ValueError(f"schema {content.get('schema')!r}")
        return settings_from(content["settings"]), content
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise BadTrace(
            "tuned-broken", f"reading {path}", f"it is no tuned.json of leadtime ({error})",
            "run 'leadtime borg tune', or train with --defaults",
        ) from None  # fmt: skip
