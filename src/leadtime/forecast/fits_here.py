"""What was found out about one workload → whether leadtime fits here, each answer with the number that decided it.

Story C: it fits where nodes take longer than two or three minutes, demand is partly predictable and there is a week of
metrics; not where nodes are ready in 30 s, demand is random, or cost comes first. Every check answers from the user's
own numbers or says that it could not be made. One check that says no decides, whatever the others say.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from leadtime.forecast.explained import Explained
from leadtime.forecast.foresight import Foresight

HOUR_S, DAY_S = 3600, 86_400
WANTED_HISTORY_S = 7 * DAY_S  # Story C: at least a week
FAST_S, SLOW_FROM_S = 30, 120  # Story C: ready in 30 s; more than 2–3 minutes
RANDOM_RATIO = 0.10  # of the variation explained ten minutes ahead; see docs/doctor.md for what real series have
MOST_GAPS_RATIO = 0.20
COARSE_S = 600  # DESIGN and the data's README: series of up to ten minutes were forecast
LEAST_SHORT_MIN = 2  # worth.MIN_FEWER_MINUTES: less is luck


class Fit(StrEnum):
    """One answer. ``PARTLY``: something leadtime does is of use, but not the forecast."""

    FITS = "fits"
    PARTLY = "partly"
    NOT_YET = "not yet"
    DOES_NOT_FIT = "does not fit"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """How long until more is ready, in s: a pod on a node that stands, and on a new one. ``told_by``: in words.

    ``pod_s`` None: only the whole is known.
    """

    total_s: float
    pod_s: float | None
    told_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaAlone:
    """What the HPA alone would have done over ``days``: minutes short, when each pod comes ``lead_s`` after its wish.

    ``extra_ratio``: pod-hours above the HPA's that the cheapest steady headroom would have taken to halve them; None
    where none of those tried does.
    """

    short_minutes: int
    days: float
    lead_s: float
    capacity_per_pod: float
    capacity_told_by: str
    extra_ratio: float | None
    extra_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """All that is known of one series. Times in epoch seconds: values cover [from_s, until_s); None: not found out."""

    name: str
    from_s: int
    until_s: int
    step_s: int
    gap_ratio: float
    explained: Explained | None = None
    foresight: Foresight | None = None
    lead: Lead | None = None
    hpa: HpaAlone | None = None
    cost_first: bool = False

    @property
    def history_s(self) -> int:
        """From the first to the last bucket."""
        return self.until_s - self.from_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FitFinding:
    """One check: ``number`` (None: not known) beside ``limit``, both in ``unit``; and a sentence with both in it."""

    check: str
    fit: Fit
    number: float | None
    limit: float
    unit: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FitsHere:
    """The verdict on one workload: ``fit``, the ``sentence`` that decided it, and every check in the order asked."""

    name: str
    fit: Fit
    sentence: str
    findings: tuple[FitFinding, ...]


def judge_fit(seen: Observed) -> FitsHere:
    """Every check; the verdict is that of the gravest: no, not yet, not known, partly, yes."""
    findings = (
        _lead(seen), _random(seen), _gain(seen), *_cost(seen), _history(seen), _sampling(seen), _gaps(seen),
        _foreseen(seen),
    )  # fmt: skip
    order = (Fit.DOES_NOT_FIT, Fit.NOT_YET, Fit.NOT_KNOWN, Fit.PARTLY, Fit.FITS)
    gravest = min(findings, key=lambda finding: order.index(finding.fit))
    if gravest.fit is Fit.FITS:
        gain = next(one for one in findings if one.check == "gain")
        return FitsHere(
            name=seen.name, fit=Fit.FITS, sentence=f"leadtime fits here: {gain.sentence}", findings=findings
        )
    words = {
        Fit.DOES_NOT_FIT: "leadtime does not fit here",
        Fit.NOT_YET: "not yet",
        Fit.NOT_KNOWN: "not known",
        Fit.PARTLY: "leadtime fits in part",
    }
    sentence = f"{words[gravest.fit]}: {gravest.sentence}"
    return FitsHere(name=seen.name, fit=gravest.fit, sentence=sentence, findings=findings)


def _unknown(check: str, limit: float, unit: str, sentence: str) -> FitFinding:
    return FitFinding(check=check, fit=Fit.NOT_KNOWN, number=None, limit=limit, unit=unit, sentence=sentence)


def _lead(seen: Observed) -> FitFinding:
    lead = seen.lead
    if lead is None:
        text = "how long a new node takes is not known; give a ledger (--ledger) or say it (--lead 40m)"
        return _unknown("lead", SLOW_FROM_S, "s", text)
    if lead.total_s <= FAST_S:
        fit, text = Fit.DOES_NOT_FIT, f"more pods are ready in {lead.total_s:.0f} s: the HPA alone is quick enough"
    elif lead.total_s <= SLOW_FROM_S:
        fit, text = Fit.PARTLY, f"more pods are ready in {lead.total_s:.0f} s: little is gained by asking earlier"
    else:
        fit, text = Fit.FITS, f"more pods take {lead.total_s / 60:.3g} min"
    limit = FAST_S if lead.total_s <= FAST_S else SLOW_FROM_S
    return FitFinding(
        check="lead", fit=fit, number=lead.total_s, limit=limit, unit="s",
        sentence=f"{text} (P90, {lead.told_by}; it pays from {SLOW_FROM_S} s on, not up to {FAST_S} s)",
    )  # fmt: skip


def is_random(found: Explained | None) -> bool:
    """True where the past explains so little that no forecast is worth acting on; False where that is not known."""
    return found is not None and found.ratio <= RANDOM_RATIO


def _random(seen: Observed) -> FitFinding:
    found = seen.explained
    if found is None:
        text = "whether demand is random is not known: two days of buckets are needed"
        return _unknown("random", RANDOM_RATIO, "ratio", text)
    numbers = (
        f"{found.by} explains {found.ratio:.0%} ({found.lower:.0%} to {found.upper:.0%}) of the variation "
        f"{found.ahead_s / 60:g} min ahead, over {found.buckets:,} buckets; up to {RANDOM_RATIO:.0%} counts as random"
    )
    is_chance = is_random(found)
    return FitFinding(
        check="random", fit=Fit.DOES_NOT_FIT if is_chance else Fit.FITS, number=found.ratio, limit=RANDOM_RATIO,
        unit="ratio", sentence=f"demand is {'random' if is_chance else 'not random'}: {numbers}",
    )  # fmt: skip


def _gain(seen: Observed) -> FitFinding:
    hpa = seen.hpa
    if hpa is None:
        text = "what the HPA alone leaves short is not known: it takes a lead and a day of demand"
        return _unknown("gain", LEAST_SHORT_MIN, "minutes", text)
    numbers = (
        f"with {hpa.lead_s / 60:.3g} min until a pod is ready and {hpa.capacity_per_pod:.4g} a pod "
        f"({hpa.capacity_told_by}) the HPA alone would have been short for {hpa.short_minutes:,} minutes in "
        f"{hpa.days:.1f} days"
    )
    gains = hpa.short_minutes >= LEAST_SHORT_MIN
    return FitFinding(
        check="gain", fit=Fit.FITS if gains else Fit.DOES_NOT_FIT, number=float(hpa.short_minutes),
        limit=LEAST_SHORT_MIN, unit="minutes", sentence=numbers if gains else f"there is nothing to gain: {numbers}",
    )  # fmt: skip


def _cost(seen: Observed) -> Iterator[FitFinding]:
    """Only where the user says that cost comes first."""
    if not seen.cost_first:
        return
    extra = None if seen.hpa is None else seen.hpa.extra_ratio
    if extra is None:
        text = "cost comes first here (--cost-first), and capacity that stands before the demand is paid before it"
    else:
        assert seen.hpa is not None
        text = (
            f"cost comes first here (--cost-first), and half of the HPA's short minutes cost {extra:.1%} more "
            f"pod-hours ({seen.hpa.extra_by})"
        )
    fit = Fit.FITS if extra is not None and extra <= 0 else Fit.DOES_NOT_FIT
    yield FitFinding(check="cost", fit=fit, number=extra, limit=0.0, unit="ratio", sentence=text)


def _history(seen: Observed) -> FitFinding:
    have_s = seen.history_s
    have = f"{have_s / HOUR_S:.1f} h" if have_s < 2 * DAY_S else f"{have_s / DAY_S:.1f} days"
    fits = have_s >= WANTED_HISTORY_S
    return FitFinding(
        check="history", fit=Fit.FITS if fits else Fit.NOT_YET, number=float(have_s), limit=float(WANTED_HISTORY_S),
        unit="s", sentence=f"{have} of history; at least a week (168 h) is wanted",
    )  # fmt: skip


def _sampling(seen: Observed) -> FitFinding:
    lead_s = None if seen.lead is None else seen.lead.total_s
    limit = COARSE_S if lead_s is None else max(60.0, min(COARSE_S, lead_s))
    fits = seen.step_s <= limit
    text = f"one value every {seen.step_s} s; {limit:.0f} s apart is the most that is of use"
    return FitFinding(
        check="sampling", fit=Fit.FITS if fits else Fit.NOT_YET, number=float(seen.step_s), limit=limit, unit="s",
        sentence=text,
    )  # fmt: skip


def _gaps(seen: Observed) -> FitFinding:
    fits = seen.gap_ratio <= MOST_GAPS_RATIO
    return FitFinding(
        check="gaps", fit=Fit.FITS if fits else Fit.NOT_YET, number=seen.gap_ratio, limit=MOST_GAPS_RATIO,
        unit="ratio",
        sentence=f"{seen.gap_ratio:.1%} of the buckets have no value; at most {MOST_GAPS_RATIO:.0%} may lack",
    )  # fmt: skip


def _foreseen(seen: Observed) -> FitFinding:
    """Whether the forecast is of use at the lead; where it is not, a buffer stands in for it."""
    found, lead_s = seen.foresight, None if seen.lead is None else seen.lead.total_s
    limit = 0.0 if lead_s is None else lead_s
    one = None if found is None or lead_s is None else found.at(lead_s)
    if found is None or one is None or lead_s is None:
        text = "how far demand can be foreseen is not known" + ("" if found is None else f": {found.sentence}")
        return _unknown("foreseen", limit, "s", text)
    fits = one.foreseen and not is_random(seen.explained)
    text = (
        f"at the lead of {lead_s / 60:.3g} min demand is {'' if fits else 'not '}foreseen: "
        f"{one.within_10pct_ratio:.0%} of {one.scored:,} forecasts come within ±10 %, the naive one's "
        f"{one.naive_within_10pct_ratio:.0%}, one who knew the level {one.ceiling_within_10pct_ratio:.0%}"
    )
    if one.skill is not None:
        text += f" (skill {one.skill:.2f}, {one.skill_lower:.2f} to {one.skill_upper:.2f})"
    return FitFinding(
        check="foreseen", fit=Fit.FITS if fits else Fit.PARTLY, number=float(found.reach_s or 0), limit=limit, unit="s",
        sentence=text if fits else f"{text}; a steady buffer does instead",
    )  # fmt: skip
