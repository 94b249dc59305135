"""The doctor on real demand: each verdict with the number that decided it, from the minutes the report names."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from leadtime.cli.doctor_series import Checkup, Patient, examine
from leadtime.forecast.fits_here import Fit, FitFinding, Lead
from leadtime.forecast.foresight import Recorded
from leadtime.policy.schema import Policy
from leadtime.sources.demand_file import DemandFileOptions, TimeUnit, ValueUnit, read_demand
from leadtime.training.backtest.series import from_file

pytestmark = [pytest.mark.data, pytest.mark.slow]
DAY_S = 86_400
STORY = Lead(total_s=2400.0, pod_s=None, told_by="as stated")


@dataclass(frozen=True, kw_only=True)
class Real:
    """A file, how it is read, and how many of its newest days are looked at (0: all)."""

    path: str
    options: DemandFileOptions
    days: int = 0


def csv(path: str, days: int = 0, value_unit: ValueUnit = ValueUnit.RPS) -> Real:
    """Columns timestamp and value."""
    options = DemandFileOptions(time_column="timestamp", value_column="value", value_unit=value_unit)
    return Real(path=path, options=options, days=days)


SERIES = {
    "mongo-01": csv("cloud-monitoring/mongo-01.csv"),
    "ingress-01": csv("cloud-monitoring/ingress-01.csv"),
    "world-cup": csv("web-requests/worldcup98_minute.csv", 9, ValueUnit.PER_MINUTE),
    "nasa": csv("web-requests/nasa_1995-07_minute.csv", 9, ValueUnit.PER_MINUTE),
    "elb": csv("nab/realAWSCloudwatch/elb_request_count_8c0756.csv", 9),
    "genai": Real(
        path="genai-serving-2026/qps.parquet",
        options=DemandFileOptions(
            time_column="timestamp_s", value_column="value", time_unit=TimeUnit.S, group_by="container_ip",
            where=(("request_type", "Generative Requests"),),
        ),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def examined(data_dir: Path) -> dict[str, Checkup]:
    """Every series at a lead of 40 min and a hundredth of its peak a pod."""
    found = {}
    for name, real in SERIES.items():
        file = from_file(read_demand(data_dir / real.path, real.options), name)
        keep = real.days * DAY_S // file.step_s
        start_s = file.start_s + (len(file.values) - keep) * file.step_s if keep else file.start_s
        patient = Patient(
            name=name, source=real.path,
            series=Recorded(start_s=start_s, step_s=file.step_s, values=file.values[-keep:]), lead=STORY,
            capacity_per_pod=None, capacity_minutes=None, gpus_per_pod=1, cost_first=False,
        )  # fmt: skip
        found[name] = examine(patient, Policy(), lambda _what, _share: None)
    return found


def check(checkup: Checkup, name: str) -> FitFinding:
    """The finding of one check."""
    return next(one for one in checkup.verdict.findings if one.check == name)


def number(checkup: Checkup, name: str) -> float:
    """The number that decided it."""
    value = check(checkup, name).number
    assert value is not None
    return value


def test_mongo_fits_for_the_hpa_is_short_and_the_lead_is_foreseen(examined: dict[str, Checkup]) -> None:
    mongo = examined["mongo-01"]
    assert mongo.verdict.fit is Fit.FITS
    assert number(mongo, "gain") == pytest.approx(667, abs=30)
    assert number(mongo, "random") == pytest.approx(0.915, abs=0.005)
    assert mongo.observed.foresight is not None
    at_lead = mongo.observed.foresight.at(2400)
    assert at_lead is not None
    assert at_lead.naive_within_10pct_ratio == pytest.approx(0.43, abs=0.01)
    assert at_lead.skill_lower is not None
    assert at_lead.skill_lower > 0.0
    assert mongo.buffer is None
    assert mongo.plans is not None
    assert mongo.plans.from_s == mongo.observed.from_s + 2 * DAY_S


def test_elb_does_not_fit_for_its_demand_is_random(examined: dict[str, Checkup]) -> None:
    elb = examined["elb"]
    assert elb.verdict.fit is Fit.DOES_NOT_FIT
    assert "demand is random" in elb.verdict.sentence
    assert 0.03 < number(elb, "random") < 0.10
    assert check(elb, "foreseen").fit is Fit.PARTLY
    assert elb.buffer_kind == "warm pods"


def test_genai_has_hours_and_a_week_is_wanted(examined: dict[str, Checkup]) -> None:
    genai = examined["genai"]
    assert genai.verdict.fit is Fit.NOT_YET
    assert number(genai, "history") == pytest.approx(6.8 * 3600, abs=180)
    assert "6.8 h of history; at least a week (168 h)" in genai.verdict.sentence
    assert check(genai, "random").fit is Fit.NOT_KNOWN


@pytest.mark.parametrize(("name", "ratio"), [("world-cup", 0.9), ("nasa", 0.55), ("ingress-01", 0.9)])
def test_real_services_are_not_random(examined: dict[str, Checkup], name: str, ratio: float) -> None:
    assert number(examined[name], "random") > ratio
    assert check(examined[name], "history").fit is Fit.FITS
    assert number(examined[name], "gain") >= 60
    assert examined[name].verdict.fit in {Fit.FITS, Fit.PARTLY}


def test_where_the_lead_is_not_foreseen_a_buffer_holds_what_it_states(examined: dict[str, Checkup]) -> None:
    """Ingress is within ±10 % by last value as often as by any model 40 min ahead: a steady buffer does instead."""
    ingress = examined["ingress-01"]
    assert check(ingress, "foreseen").fit is Fit.PARTLY
    assert ingress.buffer is not None
    assert max(ingress.buffer.rise_ratio) == pytest.approx(1.15, abs=0.01)
    assert ingress.buffer.held_ratio > 0.9
    assert ingress.buffer.gpu_hours_per_day == pytest.approx(291, abs=5)
    for name in ("mongo-01", "world-cup", "nasa", "elb"):
        buffer = examined[name].buffer
        assert buffer is None or buffer.held_ratio > 0.85, name


def test_every_verdict_names_its_minutes(examined: dict[str, Checkup]) -> None:
    for one in examined.values():
        seen = one.observed
        assert seen.until_s > seen.from_s
        if one.plans is not None:
            assert seen.from_s <= one.plans.from_s < one.plans.until_s <= seen.until_s
            assert one.plans.alone.days == pytest.approx((one.plans.until_s - one.plans.from_s) / DAY_S)
        assert np.isfinite(one.sized.per_pod)
