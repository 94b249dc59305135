"""policy check, show and explain from the command line."""

import json
from pathlib import Path

import pytest

from leadtime.cli import entry
from leadtime.cli.simulated_policy import simulated_policy
from leadtime.policy import Policy
from leadtime.policy.fields import all_fields
from leadtime.policy.schema import Stage

SOUND = "--min 8 --max 300 --capacity-per-pod 20 --peak 1400 --hpa-target 0.7 --pods-now 20 --pod-lead 10m".split()  # noqa: SIM905


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    """A sound policy."""
    path = tmp_path / "serving.yaml"
    path.write_text("actuation: {stage: hpa_floor}\nscaling: {surge_pods_added_per_min: 30}\n")
    return path


def test_check_exits_0_for_a_sound_policy_and_1_when_a_threshold_is_out_of_reach(
    policy_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry.run(["policy", "check", str(policy_file), *SOUND]) == 0
    assert "2 of" in capsys.readouterr().out
    assert entry.run(["policy", "check", str(policy_file), *SOUND, "--highest-utilisation", "0.7"]) == 1
    assert "! HPA target, never reached" in capsys.readouterr().out


def test_check_names_every_problem_of_a_bad_policy_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("scaling: {target_utilisation_ratio: 70, replica_cap: 0}")
    assert entry.run(["policy", "check", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out.count("! ") == 2
    assert err.count("\n") == 1
    assert err.endswith("[policy-refused]\n")
    assert entry.run(["policy", "check", str(path), "--json"]) == 2
    assert len(json.loads(capsys.readouterr().out)["problems"]) == 2


def test_check_as_json(policy_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["policy", "check", str(policy_file), "--min", "8", "--max", "300", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["findings"][0]["threshold"] == "scaling.replica_cap"
    assert answer["not_checked"]


def test_show_marks_what_differs_from_the_default(policy_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["policy", "show", "--policy", str(policy_file)]) == 0
    out = capsys.readouterr().out
    assert "30 pods/min  (changed, default 20)" in out
    assert out.count("(changed") == 2
    assert entry.run(["policy", "show", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["policy_hash"] == Policy().hash
    assert list(answer["thresholds"]) == [field.path for field in all_fields()]


def test_explain_tells_unit_bounds_reason_rules_and_effect(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["policy", "explain", "scaling.surge_pods_added_per_min"]) == 0
    out = capsys.readouterr().out
    for part in ("20 pods/min", "1–1000", "Story C", "120 after 3", "rule surge-rate-not-below-normal"):
        assert part in out
    assert entry.run(["policy", "explain", "kill_switch", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["default"] is False
    assert entry.run(["policy", "explain", "nothing"]) == 2


def test_a_check_that_was_not_made_names_the_option_that_is_missing(
    policy_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry.run(["policy", "check", str(policy_file), "--min", "8"])
    assert "surge-reach (needs --node-lead, --pod-lead)" in capsys.readouterr().out


def test_the_beginning_of_a_name_is_enough_to_be_told_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["policy", "explain", "scaling.surge"]) == 2
    assert "did you mean scaling.surge_pods_added_per_min?" in capsys.readouterr().err


def test_a_simulated_world_is_written_to_unless_the_policy_names_a_stage(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("scaling: {replica_cap: 900}\n")
    assert simulated_policy(path).actuation.stage is Stage.HPA_FLOOR
    assert simulated_policy(path).scaling.replica_cap == 900
    path.write_text("actuation: {stage: shadow}\n")
    assert simulated_policy(path).actuation.stage is Stage.SHADOW
    assert simulated_policy(None).actuation.stage is Stage.HPA_FLOOR
