"""Live usage through the pipeline of training: the same features, missing stays missing, no score without usage."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import isnan

import pytest

from leadtime.domain.borg import EventType
from leadtime.domain.errors import BadTrace
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.risk import PodEnd, PodEnding, PodFacts, PodUsage, RiskDriver, RiskReading, UsageWindow
from leadtime.domain.series import Missing
from leadtime.risk.features import FEATURES, Profile
from leadtime.risk.live import LiveScorer, canonical, profile_of, to_us

T0 = datetime(2026, 3, 2, tzinfo=UTC)
API, OTHER = WorkloadRef(namespace="serving", name="api"), WorkloadRef(namespace="serving", name="search")
NAMES = ("cpu_ratio", "memory_ratio", "requested_cpu")
ASKED = {"horizon": timedelta(minutes=30), "expiry": timedelta(minutes=10), "explain_from": 0.5}


class Model:
    """P within 30 min = the cpu ratio; keeps the rows it was asked about."""

    name = "ratio@0123"

    def __init__(self, features: Sequence[str] = NAMES, horizons: Sequence[int] = (15, 30)) -> None:
        self.features = tuple(features)
        self.base_rates = dict.fromkeys(horizons, 0.01)
        self.rows: list[list[float]] = []

    def probabilities(self, rows: Sequence[Sequence[float]]) -> Mapping[int, Sequence[float]]:
        self.rows = [list(row) for row in rows]
        return {m: [min(1.0, row[0]) * m / 30 for row in rows] for m in self.base_rates}

    def drivers(self, row: Sequence[float], horizon_min: int, *, most: int = 3) -> Sequence[RiskDriver]:
        return (RiskDriver(feature=self.features[0], value=row[0], effect=1.0),)


def pod(name: str, workload: WorkloadRef | None = API, node: str | None = "gpu-1", restarts: int = 0) -> PodFacts:
    return PodFacts(
        pod=name, workload=workload, node=node, created_at=T0, started_at=T0 + timedelta(minutes=1), request_cpu=0.2,
        request_memory=0.1, capacity_cpu=0.6, capacity_memory=0.5, restarts=restarts,
    )  # fmt: skip


def window(name: str, number: int, ratio: float | None) -> UsageWindow:
    start = T0 + timedelta(minutes=5 * number)
    cpu = None if ratio is None else ratio * 0.2
    return UsageWindow(pod=name, start=start, end=start + timedelta(minutes=5), avg_cpu=cpu, avg_memory=0.05)


def usage(**more: object) -> PodUsage:
    pods = (pod("serving/api-1"), pod("serving/api-2", node="gpu-2"), pod("serving/search-9", OTHER))
    windows = tuple(
        window(name, i, ratio) for name, ratio in (("serving/api-1", 0.8), ("serving/api-2", 0.4)) for i in range(1, 6)
    )
    found = PodUsage(as_of=T0 + timedelta(minutes=31), pods=pods, windows=windows)
    return replace(found, **more)


def scores(given: PodUsage, model: Model | None = None) -> RiskReading:
    found = LiveScorer(model or Model()).scores(given, **ASKED)
    assert isinstance(found, RiskReading)
    return found


def test_each_running_pod_with_usage_has_one_score_of_its_newest_window():
    found = scores(usage())
    assert [(one.pod, one.node, one.workload) for one in found.scores] == [
        ("serving/api-1", "gpu-1", API), ("serving/api-2", "gpu-2", API),
    ]  # fmt: skip
    first = found.scores[0]
    assert first.probability == pytest.approx(0.8, abs=1e-6)
    assert first.window_end == T0 + timedelta(minutes=30)
    assert first.expires_at == first.window_end + timedelta(minutes=10)
    assert (first.horizon, first.base_rate, first.model) == (timedelta(minutes=30), 0.01, "ratio@0123")


def test_a_pod_without_usage_has_no_score_and_is_named():
    assert scores(usage()).unscored == {"serving/search-9": "no usage window"}
    assert scores(usage(windows=())).scores == ()


def test_drivers_are_told_from_the_asked_probability_on():
    assert [len(one.drivers) for one in scores(usage()).scores] == [1, 0]


def test_what_was_not_measured_is_missing_and_not_zero():
    model = Model()
    given = usage(windows=(window("serving/api-1", 5, None), window("serving/api-2", 5, 0.4)))
    scores(given, model)
    assert isnan(model.rows[0][0])
    assert model.rows[1] == pytest.approx([0.4, 0.5, 0.2], abs=1e-6)


def test_a_pod_that_ended_has_no_score_and_its_end_is_an_event():
    gone = PodEnd(pod="serving/api-1", workload=API, node="gpu-1", at=T0 + timedelta(minutes=30), how=PodEnding.FAILED)
    given = usage(ends=(gone,))
    assert [one.pod for one in scores(given).scores] == ["serving/api-2"]
    events = canonical(given).instance_events
    ends = events.filter(events["type"] == EventType.FAIL)
    assert ends["time_us"].to_list() == [to_us(gone.at)]


def test_a_restarted_pod_has_a_run_for_each_start():
    frames = canonical(usage(pods=(pod("serving/api-1", restarts=2), pod("serving/api-2")), windows=()))
    key = next(key for key, facts in frames.pods.items() if facts.pod == "serving/api-1")
    events = frames.instance_events
    mine = events.filter((events["collection_id"] == key[0]) & (events["instance_index"] == key[1]))
    assert mine.filter(mine["type"] == EventType.SCHEDULE).height == 3


def test_windows_after_the_reading_change_nothing():
    later = usage()
    later = replace(later, windows=(*later.windows, window("serving/api-1", 6, 3.0)))
    assert scores(later).scores == scores(usage()).scores


def test_the_shortest_horizon_that_is_long_enough_is_taken():
    assert scores(usage(), Model(horizons=(15, 45, 60))).scores[0].horizon == timedelta(minutes=45)
    none = LiveScorer(Model(horizons=(5, 15))).scores(usage(), **ASKED)
    assert isinstance(none, Missing)
    assert none.reason == "it knows 5, 15 min, none of them as long as 30 min"


def test_every_feature_of_both_profiles_can_be_made_live():
    names = [feature.name for feature in FEATURES if Profile.ADVANCED in feature.profiles]
    model = Model(features=["cpu_ratio", *(name for name in names if name != "cpu_ratio")])
    scores(usage(), model)
    assert [len(row) for row in model.rows] == [len(names)] * 2
    assert profile_of(names) is Profile.ADVANCED
    assert profile_of(["cpu_ratio"]) is Profile.BASELINE


def test_a_model_that_asks_for_an_unknown_feature_is_refused():
    with pytest.raises(BadTrace, match="feature 'phase_of_the_moon', which is not made here"):
        LiveScorer(Model(features=["cpu_ratio", "phase_of_the_moon"]))
