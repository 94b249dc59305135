"""Each reason not to fit decides by its own number at its own limit; what is not known is said to be not known."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.forecast.explained import Explained
from leadtime.forecast.fits_here import Fit, FitFinding, FitsHere, HpaAlone, Lead, Observed, judge_fit
from leadtime.forecast.foresight import Foresight, HorizonSkill

DAY_S = 86_400
AT_40_MIN = HorizonSkill(
    horizon_s=2400, scored=1000, blocks=30, within_10pct_ratio=0.6, naive_within_10pct_ratio=0.4,
    ceiling_within_10pct_ratio=0.98, skill=0.34, skill_lower=0.2, skill_upper=0.5, foreseen=True,
)  # fmt: skip
SEEN = Foresight(
    horizons=(AT_40_MIN,), reach_s=2400, is_longest_tried=True, scored_from_s=0, scored_until_s=9 * DAY_S,
    sentence="foreseen 40 min ahead",
)  # fmt: skip
HPA = HpaAlone(
    short_minutes=300, days=9.0, lead_s=2400.0, capacity_per_pod=10.0, capacity_told_by="as given", extra_ratio=0.15,
    extra_by="plan headroom-10",
)  # fmt: skip
GOOD = Observed(
    name="chat", from_s=0, until_s=11 * DAY_S, step_s=60, gap_ratio=0.01,
    explained=Explained(ratio=0.9, lower=0.88, upper=0.92, by="last value", ahead_s=600, buckets=15_000,
                        day_correlation=0.8),
    foresight=SEEN, lead=Lead(total_s=2400.0, pod_s=None, told_by="as stated"), hpa=HPA,
)  # fmt: skip


def check(verdict: FitsHere, name: str) -> FitFinding:
    """The finding of one check."""
    return next(one for one in verdict.findings if one.check == name)


def test_it_fits_where_every_check_says_so() -> None:
    verdict = judge_fit(GOOD)
    assert verdict.fit is Fit.FITS
    assert verdict.sentence.startswith("leadtime fits here: with 40 min")
    assert {one.fit for one in verdict.findings} == {Fit.FITS}


@pytest.mark.parametrize(
    ("lead_s", "fit"),
    [(5, Fit.DOES_NOT_FIT), (30, Fit.DOES_NOT_FIT), (31, Fit.PARTLY), (120, Fit.PARTLY), (121, Fit.FITS)],
)
def test_fast_nodes_decide_by_their_seconds(lead_s: float, fit: Fit) -> None:
    seen = replace(GOOD, lead=Lead(total_s=lead_s, pod_s=None, told_by="as stated"), step_s=60)
    found = check(judge_fit(seen), "lead")
    assert (found.fit, found.number) == (fit, lead_s)


@pytest.mark.parametrize(("ratio", "fit"), [(0.0, Fit.DOES_NOT_FIT), (0.10, Fit.DOES_NOT_FIT), (0.101, Fit.FITS)])
def test_random_demand_decides_by_the_share_explained(ratio: float, fit: Fit) -> None:
    assert GOOD.explained is not None
    verdict = judge_fit(replace(GOOD, explained=replace(GOOD.explained, ratio=ratio)))
    assert verdict.fit is fit
    assert check(verdict, "random").number == ratio


@pytest.mark.parametrize(("minutes", "fit"), [(0, Fit.DOES_NOT_FIT), (1, Fit.DOES_NOT_FIT), (2, Fit.FITS)])
def test_an_hpa_that_is_never_short_leaves_nothing_to_gain(minutes: int, fit: Fit) -> None:
    verdict = judge_fit(replace(GOOD, hpa=replace(HPA, short_minutes=minutes)))
    assert verdict.fit is fit
    assert f"{minutes} minutes" in check(verdict, "gain").sentence


def test_cost_first_decides_by_what_half_of_the_minutes_cost() -> None:
    verdict = judge_fit(replace(GOOD, cost_first=True))
    assert verdict.fit is Fit.DOES_NOT_FIT
    assert "15.0% more pod-hours (plan headroom-10)" in verdict.sentence
    free = judge_fit(replace(GOOD, cost_first=True, hpa=replace(HPA, extra_ratio=0.0)))
    assert free.fit is Fit.FITS
    unknown = judge_fit(replace(GOOD, cost_first=True, hpa=replace(HPA, extra_ratio=None)))
    assert unknown.fit is Fit.DOES_NOT_FIT


@pytest.mark.parametrize(("days", "fit"), [(6.99, Fit.NOT_YET), (7.0, Fit.FITS)])
def test_less_than_a_week_is_not_yet(days: float, fit: Fit) -> None:
    assert judge_fit(replace(GOOD, until_s=int(days * DAY_S))).fit is fit


def test_hours_of_history_are_told_in_hours() -> None:
    assert "6.8 h of history; at least a week (168 h)" in judge_fit(replace(GOOD, until_s=24_480)).sentence


@pytest.mark.parametrize(
    ("change", "name", "fit"),
    [
        ({"step_s": 3600}, "sampling", Fit.NOT_YET),
        ({"gap_ratio": 0.21}, "gaps", Fit.NOT_YET),
        ({"lead": None, "hpa": None}, "lead", Fit.NOT_KNOWN),
        ({"hpa": None}, "gain", Fit.NOT_KNOWN),
        ({"explained": None}, "random", Fit.NOT_KNOWN),
        ({"foresight": None}, "foreseen", Fit.NOT_KNOWN),
        (
            {"foresight": replace(SEEN, horizons=(replace(AT_40_MIN, foreseen=False),), reach_s=0)},
            "foreseen",
            Fit.PARTLY,
        ),
    ],
)
def test_what_is_missing_or_not_foreseen_is_said(change: dict[str, object], name: str, fit: Fit) -> None:
    verdict = judge_fit(replace(GOOD, **change))  # type: ignore[arg-type]
    assert verdict.fit is fit
    assert check(verdict, name).fit is fit


def test_one_no_decides_whatever_the_others_say() -> None:
    assert GOOD.explained is not None
    verdict = judge_fit(replace(GOOD, explained=replace(GOOD.explained, ratio=0.05), until_s=DAY_S, lead=None))
    assert verdict.fit is Fit.DOES_NOT_FIT
    assert "demand is random" in verdict.sentence


@given(
    lead=st.none() | st.floats(0.1, 10_000), ratio=st.none() | st.floats(0, 1), short=st.none() | st.integers(0, 999),
    days=st.floats(0.01, 60), cost=st.booleans(),
)  # fmt: skip
def test_every_verdict_is_that_of_one_of_its_findings_and_names_numbers(
    lead: float | None, ratio: float | None, short: int | None, days: float, *, cost: bool
) -> None:
    assert GOOD.explained is not None
    verdict = judge_fit(
        replace(
            GOOD,
            lead=None if lead is None else Lead(total_s=lead, pod_s=None, told_by="as stated"),
            explained=None if ratio is None else replace(GOOD.explained, ratio=ratio),
            hpa=None if short is None else replace(HPA, short_minutes=short),
            until_s=int(days * DAY_S),
            cost_first=cost,
        )
    )
    assert verdict.fit in {one.fit for one in verdict.findings}
    assert any(one.sentence in verdict.sentence for one in verdict.findings)
    for one in verdict.findings:
        assert one.number is not None or one.fit in {Fit.NOT_KNOWN, Fit.DOES_NOT_FIT}
