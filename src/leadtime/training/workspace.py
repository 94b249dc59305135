"""Environment and options → the folders of the Borg work: raw shards, processed data, models, reports, runtime, config.

``BORG_DATA_DIR`` (raw shards), ``BORG_PROCESSED_DIR`` (joined windows) and ``BORG_XGBOOST_WORKSPACE`` (everything
else) are the story's names; the environment is handed in as a mapping. The baseline and the advanced track have
folders of their own in every part, so that rebuilding one leaves the other's bytes alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

DOCUMENTS = Path("~/Documents")
DATA_DIR = "BORG_DATA_DIR"
PROCESSED_DIR = "BORG_PROCESSED_DIR"
WORKSPACE = "BORG_XGBOOST_WORKSPACE"
PARTS = ("raw", "processed", "models", "reports", "runtime", "config")


class Track(StrEnum):
    """Feature profiles, and the track of folders each owns."""

    BASELINE = "baseline"
    ADVANCED = "advanced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Where things lie. Nothing is created by asking."""

    data: Path  # raw shards, one folder a cell: <data>/<cell>/instance_usage-000000000000.json.gz
    windows: Path  # make-dataset's output: <windows>/dataset.json and <windows>/cell=<cell>/…
    root: Path  # the workspace with PARTS below it

    def part(self, part: str, track: Track | None = None) -> Path:
        """``root``/part[/track]; ``part`` is one of PARTS."""
        folder = self.root / part
        return folder if track is None else folder / track.value

    def features(self, track: Track) -> Path:
        """make-forecaster-dataset's output."""
        return self.part("processed", track)

    def model(self, track: Track, name: str) -> Path:
        """One model's folder."""
        return self.part("models", track) / name

    def report(self, track: Track, name: str) -> Path:
        """One run's metrics, predictions and report."""
        return self.part("reports", track) / name

    def journal(self, track: Track, name: str) -> Path:
        """State that lets a stopped run go on."""
        return self.part("runtime", track) / name

    def config(self, track: Track, name: str) -> Path:
        """Resolved settings of one run."""
        return self.part("config", track) / f"{name}.json"


def workspace(environment: Mapping[str, str]) -> Workspace:
    """Folders as the environment names them; the story's places in ~/Documents where it names none."""

    def folder(variable: str, otherwise: str) -> Path:
        named = environment.get(variable)
        return (Path(named) if named else DOCUMENTS / otherwise).expanduser()

    return Workspace(
        data=folder(DATA_DIR, "borg_data"),
        windows=folder(PROCESSED_DIR, "borg_processed"),
        root=folder(WORKSPACE, "borg_xgboost_workspace"),
    )
