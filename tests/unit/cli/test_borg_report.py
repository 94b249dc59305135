"""``leadtime borg train-baseline`` and ``leadtime borg report`` as a user types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leadtime.cli.app import app
from leadtime.domain.errors import BadTrace
from leadtime.testing.risk_toy import ToyTrace, write_features

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A workspace with features and one baseline run made by the command."""
    root = tmp_path_factory.mktemp("workspace")
    write_features(root / "processed" / "baseline", ToyTrace(tasks=300, windows=120, cells=("b", "c"), seed=4))
    done = RUNNER.invoke(app, ["borg", "train-baseline", "--clusters", "b,c"], env=environment(root))
    assert done.exit_code == 0, done.output
    return root


def environment(root: Path) -> dict[str, str]:
    return {"BORG_XGBOOST_WORKSPACE": str(root), "BORG_DATA_DIR": str(root / "none")}


def test_the_workspace_gets_run_model_and_settings_on_its_own_track(place):
    assert (place / "reports" / "baseline" / "baseline" / "run.json").exists()
    assert (place / "models" / "baseline" / "baseline" / "baseline.json").exists()
    assert json.loads((place / "config" / "baseline" / "baseline.json").read_text())["split"]["unseen_cell"] == "c"
    assert not list(place.glob("*/advanced"))


def test_json_on_stdout_has_the_contract(place):
    done = RUNNER.invoke(app, ["borg", "report", str(place / "reports/baseline/baseline"), "--json"])
    told = json.loads(done.stdout)
    assert {"horizons", "gates", "data_hash", "exclusions"} <= set(told)
    assert set(told["horizons"]) == {"5", "15", "30", "45", "60"}


def test_against_an_earlier_run_the_page_and_the_json_hold_the_comparison(place, tmp_path):
    folder = str(place / "reports/baseline/baseline")
    page = tmp_path / "compared.html"
    done = RUNNER.invoke(app, ["borg", "report", folder, "--against", folder, "--html", str(page), "--json"])
    assert "no difference beyond chance" in json.loads(done.stdout)["compared"]["sentence"]
    assert "Against baseline" in page.read_text()


@pytest.mark.parametrize("command", ["report", "check"])
def test_a_page_in_a_folder_that_is_not_there_is_refused_before_any_work(place, tmp_path, command):
    page = tmp_path / "absent" / "page.html"
    done = RUNNER.invoke(app, ["borg", command, str(place / "reports/baseline/baseline"), "--html", str(page)])
    assert done.exit_code == 2
    assert "there is no folder" in done.output
    assert not page.parent.exists()


def test_without_json_stdout_stays_empty(place):
    done = RUNNER.invoke(app, ["borg", "report", str(place / "reports/baseline/baseline")])
    assert done.stdout == ""
    assert "base rate" in done.stderr


def test_an_unusable_run_exits_with_1(place, tmp_path):
    for file in (place / "reports/baseline/baseline").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    (tmp_path / "metrics.json").write_text(json.dumps(metrics | {"usable": False}))
    assert RUNNER.invoke(app, ["borg", "report", str(tmp_path)]).exit_code == 1


def test_a_folder_that_is_no_run_is_named(tmp_path):
    done = RUNNER.invoke(app, ["borg", "report", str(tmp_path)])
    assert isinstance(done.exception, BadTrace)
    assert done.exception.slug == "run-absent"
