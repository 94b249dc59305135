"""The three classic scripts in an empty folder, on shards of cells b–g in mixed dialects: what they leave, and where.

The baseline and the advanced track leave each other alone.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from leadtime.domain.borg import Dialect
from leadtime.simulate.borg.generate import generate
from leadtime.simulate.borg.knobs import Knobs

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
CELLS = ("b", "c", "d", "e", "f", "g")
DIALECTS = (
    (Dialect.PARQUET,), (Dialect.NDJSON,), (Dialect.PARQUET_GZ,), (Dialect.DOTTED,), (Dialect.UNDERSCORED,),
    (Dialect.NDJSON, Dialect.PARQUET),
)  # fmt: skip
ROWS = 12_000
PARTS = {"raw", "processed", "models", "reports", "runtime", "config"}
ARTEFACTS = {
    "validation_predictions.parquet", "top_risk_alerts.parquet", "metrics.json", "metrics.txt", "report.html",
    "run.json", *(f"{cell}_forecaster.parquet" for cell in CELLS),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """``root``: everything the scripts may touch; ``start``: the empty folder they are started in."""

    root: Path
    start: Path

    @property
    def workspace(self) -> Path:
        return self.root / "borg_xgboost_workspace"

    @property
    def run(self) -> Path:
        return self.workspace / "reports" / "baseline" / "baseline"

    def script(self, name: str, *options: str) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            [sys.executable, str(SCRIPTS / name), *options],
            cwd=self.start, capture_output=True, text=True, check=False,
            env={
                **os.environ, "HOME": str(self.root / "home"), "BORG_DATA_DIR": str(self.root / "borg_data"),
                "BORG_PROCESSED_DIR": str(self.root / "borg_processed"),
                "BORG_XGBOOST_WORKSPACE": str(self.workspace),
            },
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""  # what is told goes to stderr; stdout is for --json
        return done

    def states(self, *parts: str) -> dict[str, tuple[str, int]]:
        """File → (hash, time of writing), of the parts of the workspace."""
        files = [path for part in parts for path in (self.workspace / part).rglob("*") if path.is_file()]
        return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The scripts run once, one after another, as the story writes them."""
    root = tmp_path_factory.mktemp("story")
    found = Place(root, root / "elsewhere")
    for folder in (found.start, root / "home"):
        folder.mkdir()
    for seed, (cell, dialects) in enumerate(zip(CELLS, DIALECTS, strict=True)):
        knobs = Knobs(rows=ROWS, cell=cell, seed=seed, mu=2.0, base_rate=0.02, dialects=dialects)
        generate(root / "borg_data" / cell, knobs)
    found.script("make_dataset.py")
    found.script("make_forecaster_dataset.py")
    found.script("train_forecaster_baseline.py", "--clusters", "b,c,d,e,f,g", "--feature-profile", "baseline")
    return found


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def rows_of(path: Path) -> int:
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def test_exactly_the_artefacts_of_the_story_are_left_and_nothing_elsewhere(place: Place) -> None:
    assert {path.name for path in place.run.iterdir()} == ARTEFACTS
    assert {path.name for path in place.workspace.iterdir()} == PARTS
    assert {path.name for path in place.root.iterdir()} == {
        "borg_data", "borg_processed", "borg_xgboost_workspace", "elsewhere", "home",
    }  # fmt: skip
    assert not list(place.start.iterdir())
    assert not list((place.root / "home").iterdir())
    assert {path.name for path in (place.root / "borg_data").iterdir()} == set(CELLS)
    assert not [path for path in place.root.rglob("*") if "unfinished" in path.name]


def test_predictions_are_sorted_by_falling_risk_and_alerts_are_among_them(place: Place) -> None:
    predictions = pl.read_parquet(place.run / "validation_predictions.parquet")
    assert predictions["risk_score"].is_sorted(descending=True)
    assert predictions["risk_score"].is_between(0, 1).all()
    assert predictions.height > ROWS  # a last block of six cells
    assert set(predictions["cell"]) == set(CELLS)
    alerts = pl.read_parquet(place.run / "top_risk_alerts.parquet")
    key = ["cell", "collection_id", "instance_index", "start_time_us", "end_time_us"]
    assert alerts.height > 0
    assert alerts.join(predictions, on=key, how="semi").height == alerts.height


def test_every_row_count_is_what_the_manifests_say(place: Place) -> None:
    told = read(place.run / "run.json")["files"]
    for name, about in told.items():
        content = (place.run / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == about["sha256"], name
        if name.endswith(".parquet"):
            assert rows_of(place.run / name) == about["rows"], name
    forecaster = read(place.workspace / "processed" / "baseline" / "forecaster.json")
    dataset = read(place.root / "borg_processed" / "dataset.json")
    assert forecaster["rows_in"] == dataset["rows"]
    for cell in CELLS:
        rows = sum(rows_of(path) for path in (place.root / "borg_processed" / f"cell={cell}" / "windows").iterdir())
        truth = place.root / "borg_data" / cell / "truth" / "truth_rows.parquet"
        assert forecaster["by_cell"][cell]["rows_in"] == rows == rows_of(truth)
        assert forecaster["by_cell"][cell]["rows"] == told[f"{cell}_forecaster.parquet"]["rows"]
    for part in forecaster["partitions"]:
        assert rows_of(place.workspace / "processed" / "baseline" / part["path"]) == part["rows"]


def test_metrics_and_page_can_be_opened_and_say_the_same(place: Place) -> None:
    metrics = read(place.run / "metrics.json")
    assert metrics["usable"]
    found = metrics["horizons"]["15"]
    page = (place.run / "report.html").read_text(encoding="utf-8")
    text = (place.run / "metrics.txt").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    for told in (f"{found['average_precision']:.4f}", "base rate"):
        assert told in page
        assert told in text
    assert set(metrics["by_cell"]) == set(CELLS)


def test_settings_are_kept_resolved(place: Place) -> None:
    config = place.workspace / "config"
    assert {str(path.relative_to(config)) for path in config.rglob("*.json")} == {
        "make-dataset.json", "baseline/make-forecaster-dataset.json", "baseline/baseline.json",
    }  # fmt: skip
    for path in config.rglob("*.json"):
        told = read(path)
        assert told["command"].startswith("borg ")
        assert told["cells"] == list(CELLS)
    assert read(config / "baseline" / "make-forecaster-dataset.json")["horizons_min"] == [5, 15, 30, 45, 60]
    assert read(config / "baseline" / "baseline.json")["split"]["unseen_cell"] == "g"


def test_rebuilding_one_track_leaves_the_other_alone(place: Place) -> None:
    def of(track: str) -> Mapping[str, tuple[str, int]]:
        return place.states(*(f"{part}/{track}" for part in ("processed", "models", "reports", "runtime", "config")))

    baseline = of("baseline")
    place.script("make_forecaster_dataset.py", "--feature-profile", "advanced", "--cells", "b,c")
    place.script("train_forecaster_baseline.py", "--clusters", "b,c", "--feature-profile", "advanced")
    assert of("baseline") == baseline
    advanced = of("advanced")
    assert any(path.endswith("validation_predictions.parquet") for path in advanced)
    for part in (place.workspace / "processed" / "baseline").rglob("part-*"):
        part.unlink()
    place.script("make_forecaster_dataset.py", "--feature-profile", "baseline", "--cells", "b,c")
    place.script("train_forecaster_baseline.py", "--clusters", "b,c", "--feature-profile", "baseline")
    assert of("advanced") == advanced
    assert of("baseline") != baseline
