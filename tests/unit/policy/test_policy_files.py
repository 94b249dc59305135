"""Policy files: every problem is named, with the field, what it holds, what it must be and what to write."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadtime.domain.errors import BadPolicy, LeadtimeError
from leadtime.policy import Policy
from leadtime.policy.files import PolicyRefused, load_policy


def write(tmp_path: Path, text: str, name: str = "serving.yaml") -> Path:
    """A policy file."""
    path = tmp_path / name
    path.write_text(text)
    return path


def test_no_file_is_the_default_policy() -> None:
    assert load_policy(None) == Policy()


def test_what_is_not_written_keeps_its_default(tmp_path: Path) -> None:
    policy = load_policy(write(tmp_path, "scaling: {replica_cap: 300}\nactuation: {stage: hpa_floor}"))
    assert (policy.scaling.replica_cap, policy.actuation.stage.value) == (300, "hpa_floor")
    assert policy.loop == Policy().loop
    same = write(tmp_path, '{"actuation": {"stage": "hpa_floor"}, "scaling": {"replica_cap": 300}}', "p.json")
    assert load_policy(same).hash == policy.hash


def test_the_error_has_the_agreed_form(tmp_path: Path) -> None:
    path = write(tmp_path, "scaling: {target_utilisation_ratio: 70}")
    with pytest.raises(PolicyRefused) as caught:
        load_policy(path)
    assert str(caught.value) == (
        f"loading policy {path}: scaling.target_utilisation_ratio is 70 (share of a pod's capacity), "
        "must be 0.05–0.95; write 0.70 for 70 %"
    )


@pytest.mark.parametrize(
    ("text", "wrong", "cure"),
    [
        ("scaling: {target_utilization_ratio: 0.7}", "there is no scaling.target_utilization_ratio",
         "did you mean target_utilisation_ratio?"),
        ("loop: {replica_cap: 9}", "there is no loop.replica_cap", "did you mean scaling.replica_cap?"),
        ("scalling: {}", "there is no scalling", "did you mean scaling?"),
        ("replica_cap: 9", "there is no replica_cap", "did you mean scaling.replica_cap?"),
        ("zzz: {}", "there is no zzz", "policy show"),
        ("scaling: 9", "scaling is 9, must be a section", "under it"),
        ("scaling: {replica_cap: 0}", "scaling.replica_cap is 0 (pods), must be a whole number 1–100000", "write 2000"),
        ("scaling: {replica_cap: 2.5}", "scaling.replica_cap is 2.5", "write 2000"),
        ("scaling: {replica_cap: true}", "scaling.replica_cap is true", "write 2000"),
        ("scaling: {replica_cap: '9'}", "scaling.replica_cap is '9'", "write 2000"),
        ("scaling: {floor_tolerance_ratio: .nan}", "scaling.floor_tolerance_ratio is nan", "write 0.02"),
        ("actuation: {floor_expiry_s: 15m}", "actuation.floor_expiry_s is '15m' (s)", "write 900, the seconds in 15m"),
        ("actuation: {floor_expiry_s: 15d}", "actuation.floor_expiry_s is '15d' (s)", "write 900, the default"),
        ("actuation: {stage: act}", "must be off or shadow or capacity_buffer or hpa_floor", "write shadow"),
        ("actuation: {kill_switch: 3}", "must be true or false", "without quotes"),
        ("forecast: {time_zone: Mars/Olympus}", "is 'Mars/Olympus', which is no time zone", "Europe/Berlin"),
        ("version: 2", "version is 2, must be 1", "write version: 1"),
        ("scaling: {surge_pods_added_per_min: 5}",
         ("scaling.surge_pods_added_per_min is 5, scaling.normal_pods_added_per_min is 10, "
          "against rule surge-rate-not-below-normal"), "raise the surge rate"),
    ],
)  # fmt: skip
def test_one_problem(tmp_path: Path, text: str, wrong: str, cure: str) -> None:
    with pytest.raises(PolicyRefused) as caught:
        load_policy(write(tmp_path, text))
    (problem,) = caught.value.problems
    assert wrong in problem.wrong
    assert cure in problem.cure


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    text = "scaling: {target_utilisation_ratio: 70, replica_kap: 3}\nloop: {tick_s: 1}\nactuation: {stage: act}"
    with pytest.raises(PolicyRefused) as caught:
        load_policy(write(tmp_path, text))
    assert {problem.about for problem in caught.value.problems} == {
        "scaling.replica_kap", "scaling.target_utilisation_ratio", "loop.tick_s", "actuation.stage",
    }  # fmt: skip
    assert "4 problems" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "name", "slug", "says"),
    [
        (b"", "p.yaml", "policy-empty", "holds nothing"),
        (b"- 1\n", "p.yaml", "policy-unreadable", "not sections"),
        (b"scaling: [1", "p.yaml", "policy-unreadable", "line 1: "),
        (b"a: 1\nscaling: {}\nscaling: {}\n", "p.yaml", "policy-unreadable", "line 3: 'scaling' stands there twice"),
        (b'{"a": 1, "a": 2}', "p.json", "policy-unreadable", "'a' stands there twice"),
        (b'{"a": 1,', "p.json", "policy-unreadable", "neither YAML nor JSON"),
        (b"\xff\xfe\x00", "p.yaml", "policy-unreadable", "cannot be read"),
        (b"? {a: 1}\n: 2\n", "p.yaml", "policy-unreadable", ""),
        (b"!!python/object:os.system {}\n", "p.yaml", "policy-unreadable", "constructor"),
        (b"x: " + b"[" * 1000, "p.yaml", "policy-unreadable", ""),
    ],
)
def test_files_that_are_no_policy(tmp_path: Path, content: bytes, name: str, slug: str, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadPolicy) as caught:
        load_policy(path)
    assert caught.value.slug == slug
    assert says in caught.value.wrong
    assert "\n" not in caught.value.cure


def test_an_absent_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(BadPolicy) as caught:
            load_policy(path)
        assert caught.value.slug == "policy-file-absent"


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=60))
def test_no_text_ever_gives_a_traceback(tmp_path_factory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(BadPolicy):
        load_policy(path)


SCALAR = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=2)
)
NAMES = st.sampled_from(
    ["replica_cap", "tick_s", "stage", "order", "version", "nope", "prior_node_p50_s", "hold_max_s"]
)


@settings(max_examples=200, deadline=None)
@given(
    content=st.dictionaries(
        st.sampled_from(["scaling", "loop", "actuation", "referee", "version", "lead_time", "missing_data", "x"]),
        st.one_of(SCALAR, st.dictionaries(NAMES, SCALAR, max_size=3)),
        min_size=1,
        max_size=4,
    )
)
def test_any_values_give_a_policy_or_named_problems(tmp_path_factory, content) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(content))
    try:
        policy = load_policy(path)
    except LeadtimeError as error:
        assert error.slug == "policy-refused"  # noqa: PT017 - some are refused, some are read
    else:
        assert policy == Policy.model_validate(policy.model_dump())
