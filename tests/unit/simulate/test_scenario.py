"""Scenario files: the shipped ones hold what the incident page says; bad ones say what is wrong where."""

from pathlib import Path

import pytest

from leadtime.domain.errors import BadScenario
from leadtime.simulate import scenario

GOOD = """
name: mine
slo_s: 5
service_time_s: 1
workloads:
  - {name: chat, queue: q, pool: gpu, capacity_per_pod_rps: 5, min_replicas: 2, max_replicas: 9}
pools:
  - {name: gpu, gpus_per_node: 8, max_nodes: 4, stages: [{name: boot, p50_s: 60}]}
"""


@pytest.mark.parametrize("name", ["incident", "gpu-40min"])
def test_shipped_scenarios_have_the_incidents_stage_times(name: str) -> None:
    assert name in scenario.shipped()
    loaded = scenario.load(name)
    (pool,), (work,) = loaded.pools, loaded.workloads
    assert [stage.name for stage in pool.stages] == ["request", "boot", "join", "driver", "device-plugin"]
    assert sum(stage.p50_s for stage in pool.stages) == 2400
    # Karpenter's own limits: launched within 300 s, joined within 900 s.
    assert pool.stages[0].p50_s < 300
    assert sum(stage.p50_s for stage in pool.stages[:3]) < 900
    assert (work.image.p50_s, work.weights.p50_s, work.weights.item_p90_over_p50) == (300, 270, 1.3)
    assert (work.hpa.target_ratio, work.hpa.behavior, work.gpus_per_pod) == (0.7, "default", 1)


@pytest.mark.parametrize(("ratio", "total"), [("day_p90_over_p50", 1.05), ("item_p90_over_p50", 1.02)])
def test_the_stages_spread_adds_up_to_the_whole_nodes(ratio: str, total: float) -> None:
    stages = scenario.load("incident").pools[0].stages
    # Independent log-normals of small spread: the sum's spread is the root of the squares, weighted by share.
    spread = sum(((getattr(s, ratio) - 1.0) * s.p50_s / 2400) ** 2 for s in stages) ** 0.5
    assert 1.0 + spread == pytest.approx(total, abs=0.003)


def test_the_incident_has_forty_free_slots_and_the_forty_minute_scenario_room_for_its_minimum() -> None:
    incident, plain = scenario.load("incident"), scenario.load("gpu-40min")
    assert incident.pools[0].static_nodes * 8 - incident.workloads[0].min_replicas == 40
    assert (incident.workloads[0].min_replicas, incident.workloads[0].max_replicas) == (480, 2000)
    assert plain.pools[0].static_nodes * 8 >= plain.workloads[0].min_replicas == 8
    assert plain.workloads[0].max_replicas == 300 <= plain.pools[0].max_nodes * 8


def test_capacity_can_be_set_from_outside() -> None:
    changed = scenario.load("gpu-40min").with_capacity(12.5)
    assert changed.workloads[0].capacity_per_pod_rps == 12.5
    assert scenario.load("gpu-40min").workloads[0].capacity_per_pod_rps == 5


def test_a_file_is_loaded_like_a_shipped_one(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD)
    loaded = scenario.load(str(file))
    assert loaded.workload("serving/chat").pool == "gpu"
    with pytest.raises(KeyError):
        loaded.workload("serving/other")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        pytest.param("slo_s: 5", "slo: 5", "slo", id="a misspelt field"),
        pytest.param("queue: q, pool: gpu", "queue: q, pool: cpu", "pool cpu is not among gpu", id="an unknown pool"),
        pytest.param("min_replicas: 2", "min_replicas: 20", "must stand in this order", id="minimum above maximum"),
        pytest.param("max_nodes: 4", "max_nodes: 4, static_nodes: 5", "above max_nodes 4", id="too many static nodes"),
        pytest.param("p50_s: 60", "p50_s: -1", "pools.0.stages.0.p50_s", id="a negative duration"),
        pytest.param("name: boot", "name: ready", "none may be 'ready'", id="a stage called ready"),
        pytest.param("name: mine", "name: mine\nstep_s: 7", "must divide a minute", id="an odd step"),
        pytest.param(
            "capacity_per_pod_rps: 5", "capacity_per_pod_rps: 5, gpus_per_pod: 9", "fits no node", id="too big"
        ),
        pytest.param("name: mine", "- mine", "", id="not a mapping"),
        pytest.param("name: mine", "name: [", "", id="not YAML"),
    ],
)
def test_a_bad_scenario_says_what_is_wrong_where(old: str, new: str, says: str) -> None:
    with pytest.raises(BadScenario) as caught:
        scenario.parse(GOOD.replace(old, new), "here")
    assert str(caught.value).startswith("loading scenario here: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_pools_for_one_queue_and_names_given_twice_are_refused() -> None:
    second = (
        "  - {name: two, queue: q, pool: other, capacity_per_pod_rps: 5, min_replicas: 2, max_replicas: 9}\npools:\n"
    )
    other = "  - {name: other, gpus_per_node: 8, max_nodes: 4, stages: [{name: boot, p50_s: 60}]}\n"
    with pytest.raises(BadScenario, match="queue q: its workloads name pools gpu and other"):
        scenario.parse(GOOD.replace("pools:\n", second) + other, "here")
    with pytest.raises(BadScenario, match="named twice: gpu"):
        scenario.parse(GOOD + other.replace("other", "gpu"), "here")


def test_an_unknown_name_lists_the_shipped_ones(tmp_path: Path) -> None:
    with pytest.raises(
        BadScenario, match="no such scenario and no such file; use a file or one of gpu-40min, gpu-failures, incident"
    ):
        scenario.load(str(tmp_path / "nothing.yaml"))


def test_a_file_that_is_no_text_or_far_too_large_is_refused(tmp_path: Path) -> None:
    binary, large = tmp_path / "binary.yaml", tmp_path / "large.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    large.write_bytes(b"#" * 1_000_001)
    with pytest.raises(BadScenario, match="UTF-8"):
        scenario.load(str(binary))
    with pytest.raises(BadScenario, match="larger than 1 MB"):
        scenario.load(str(large))
