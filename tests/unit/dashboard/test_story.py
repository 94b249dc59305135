# ruff: noqa: E501 - tables read better wide
"""A ledger → the story: windows, caching, growth, forecasts, runs, scores, harms, answers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadtime.dashboard import answers, pages, tracks
from leadtime.dashboard.clock_text import epoch, instant
from leadtime.dashboard.drawer import decision_detail
from leadtime.dashboard.forecast_check import actual_demand, check_forecasts
from leadtime.dashboard.harm import harms
from leadtime.dashboard.runs import decision_runs
from leadtime.dashboard.scores import minute_sums, score_table
from leadtime.dashboard.story import Choice, LedgerBook, loaded_span, window_of
from leadtime.dashboard.views import Span, WorldMinutes
from leadtime.domain.errors import BadLedger
from leadtime.ledger.sqlite import SqliteLedger

HOUR = 3600
CHAT = "workload:serving/chat"


@pytest.fixture(scope="module")
def story(incident_ledger):
    return LedgerBook("recurring", incident_ledger).story(Choice())


def at(clock):
    return epoch(f"2026-03-02T{clock}:00Z")


def told_at(story, clock=None):
    return pages.told_until(story, at(clock) if clock else story.full.end_s)


def said(told, answer_id):
    return next(a.text for a in answers.answers(told) if a.id == answer_id)


# windows


def test_the_window_opens_around_the_hpas_threshold(story):
    assert (instant(story.window.start_s), instant(story.window.end_s)) == (
        "2026-03-02T04:00:00Z",
        "2026-03-02T07:45:00Z",
    )
    assert story.full == Span(start_s=at("03:00"), end_s=at("09:00"))


@given(start=st.integers(-5, 200), end=st.integers(-5, 200))
def test_any_choice_gives_a_window_inside_what_was_read(start, end):
    full = Span(start_s=0, end_s=100 * HOUR)
    choice = Choice(start_s=start * HOUR, end_s=end * HOUR)
    loaded = loaded_span(full, choice)
    window = window_of(full, loaded, choice, None, "w")
    assert full.start_s <= loaded.start_s <= window.start_s < window.end_s <= loaded.end_s <= full.end_s


def test_of_a_long_ledger_the_last_day_is_shown_first():
    full = Span(start_s=0, end_s=10 * 24 * HOUR)
    assert loaded_span(full, Choice()) == Span(start_s=9 * 24 * HOUR, end_s=10 * 24 * HOUR)


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    (tmp_path / "x.sqlite").write_text("no")
    with pytest.raises(BadLedger):
        LedgerBook("x", tmp_path / "x.sqlite")


def test_a_growing_ledger_is_read_again_and_only_its_new_ticks(synthetic, tmp_path):
    path = synthetic.write_ledger(tmp_path / "live.sqlite", end=200, with_report=False)
    book = LedgerBook("live", path)
    before = book.story(Choice())
    with SqliteLedger.resume(path) as ledger:
        ledger.append(synthetic.tick(200))
    after = book.story(Choice())
    assert len(after.ticks) == len(before.ticks) + 1
    assert after.ticks[0] is before.ticks[0]
    assert after.full.end_s == before.full.end_s + 60


def test_an_empty_ledger_has_no_story_yet(synthetic, tmp_path):
    path = synthetic.write_ledger(tmp_path / "empty.sqlite", end=synthetic.BEGIN, with_report=False)
    assert LedgerBook("empty", path).story(Choice()) is None


# the clock


def test_nothing_after_the_clock_is_told(story):
    told = told_at(story, "05:00")
    assert all(t.at_s < at("05:00") for t in told.story.ticks)
    assert all(world.at_s[-1] < at("05:00") for world in told.story.worlds.values())
    assert "05:06" not in " ".join(a.text for a in answers.answers(told))
    assert answers.verdict(told).startswith("So far, up to 05:00")


def test_the_scales_stand_still_while_the_clock_moves(story):
    early, late = (tracks.board(told_at(story, clock), tracks.DEFAULT_WORLDS) for clock in ("04:30", "08:59"))
    tops = [[t.top for t in board.tracks if isinstance(t, tracks.NumericTrack)] for board in (early, late)]
    assert tops[0] == tops[1]


def test_the_report_speaks_only_at_the_end(story):
    assert answers.verdict(told_at(story)).startswith("Prediction pays here")
    assert told_at(story).scores.source.startswith("report.json")
    assert told_at(story, "08:00").scores.source.startswith("summed over")


# forecasts


def test_the_band_is_that_issued_one_lead_earlier(story, synthetic):
    check = check_forecasts(story, story.full.end_s)
    assert {f.target_s - f.issued_at_s for f in check.band} == {synthetic.LEAD_MIN * 60}


def test_misses_are_the_minutes_outside_the_band(story, synthetic):
    check = check_forecasts(story, story.full.end_s)
    missed = {m.at_s for m in check.misses}
    for forecast in check.band:
        minute = (forecast.target_s - at("00:00")) // 60
        if minute < synthetic.END:
            outside = not forecast.lower <= synthetic.demand(minute) <= forecast.upper
            assert outside == (forecast.target_s in missed)


def test_a_surge_seen_over_several_ticks_is_one(story):
    (surge,) = check_forecasts(story, story.full.end_s).surges
    assert (surge[0].at_s, surge[-1].at_s) == (at("06:06"), at("06:11"))


# runs


def test_equal_decisions_in_a_row_are_one_run_and_cover_every_tick(story):
    runs = [r for r in decision_runs(story.ticks) if r.scope == CHAT]
    assert sum(len(r.decisions) for r in runs) == len(story.ticks)
    assert [(r.words, r.first.why.reason) for r in runs][:3] == [
        ("nothing", "EnoughCapacity"),
        ("room for 0 → 420 more pods on gpu", "NodesNeededAhead"),
        ("room ahead 420 pods, renewed", "NodesNeededAhead"),
    ]
    assert "floor 580 → 900 pods in 16 steps" in [r.words for r in runs]


def test_a_missing_tick_ends_a_run(story):
    holed = [t for t in story.ticks if not at("03:30") <= t.at_s < at("03:40")]
    runs = [r for r in decision_runs(holed) if r.scope == CHAT]
    assert runs[0].end_s == at("03:30")
    assert runs[1].start_s == at("03:40")


# scores and harm


def world(name, *, unserved=(), ready=10, pending=0, minutes=120):
    at_s = [60 * i for i in range(minutes)]
    lost = [10.0 if i in unserved else 0.0 for i in range(minutes)]
    same = [ready] * minutes
    return WorldMinutes(
        world=name, step_s=60, at_s=at_s, demand=[10.0] * minutes, arrived=[600.0] * minutes, unserved=lost,
        wanted=same, ready=same, starting=[0] * minutes, pending=[pending] * minutes, floor=same, nodes=[{"ready": 2}] * minutes,
    )  # fmt: skip


def test_sums_over_minutes_are_those_of_the_design():
    sums = minute_sums(world("hpa", unserved={3, 4, 50}), 60 * 60)
    assert sums == pytest.approx(
        {
            "unserved_ratio": 30 / 36_000, "unserved_ratio_peak": 20 / 3000, "shortfall_minutes": 3, "pod_hours": 10.0,
            "gpu_node_hours": 2.0, "pending_pod_minutes": 0.0,
        }
    )  # fmt: skip


def test_a_gap_is_not_zero():
    holed = replace(world("hpa"), arrived=[None] * 120, unserved=[None] * 120)
    sums = minute_sums(holed, 7200)
    assert sums["unserved_ratio"] is None
    assert sums["shortfall_minutes"] is None


def acting_story(story, ours, hpa):
    """One decision of leadtime at second 0 with these two worlds around it."""
    tick = next(t for t in story.ticks if t.at_s == at("05:06"))
    decisions = tuple(replace(d, at_s=0) for d in tick.decisions)
    span = Span(start_s=0, end_s=7200)
    return replace(
        story, ticks=(replace(tick, at_s=0, decisions=decisions),), worlds={"leadtime": ours, "hpa": hpa}, report=None,
        full=span, loaded=span, window=span,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "kind"),
    [
        pytest.param(
            world("leadtime", unserved={10, 20, 30, 40}), "more requests unserved", id="more unserved than the HPA"
        ),
        pytest.param(world("leadtime", pending=1), "more pods pending", id="more pending than the HPA"),
        pytest.param(world("leadtime", ready=11), "paid for nothing", id="dearer and nothing won"),
    ],
)
def test_harm_is_marked_by_kind(story, ours, kind):
    (harm,) = harms(acting_story(story, ours, world("hpa")), 7200)
    assert (harm.at_s, harm.scope, harm.kind) == (0, CHAT, kind)


@pytest.mark.parametrize(
    ("ours", "hpa", "until_s"),
    [
        pytest.param(world("leadtime"), world("hpa"), 7200, id="no difference"),
        pytest.param(
            world("leadtime", ready=12), world("hpa", unserved=range(30)), 7200, id="dearer, and it served more"
        ),
        pytest.param(world("leadtime", pending=1), world("hpa"), 3599, id="its hour has not passed"),
        pytest.param(world("leadtime", ready=12), world("hpa"), 7199, id="dearer, and its two hours have not passed"),
        pytest.param(
            world("leadtime", ready=12), world("hpa", unserved=range(70, 100)), 7200, id="it served more an hour later"
        ),
    ],
)
def test_no_harm_is_marked(story, ours, hpa, until_s):
    assert harms(acting_story(story, ours, hpa), until_s) == ()


def test_a_buffer_is_judged_like_a_floor_before_the_end_and_at_it(story):
    acting = acting_story(story, world("leadtime", ready=12), world("hpa"))
    (tick,) = acting.ticks
    room = replace(next(d for d in tick.decisions if d.scope == CHAT), scope="pool:gpu/serving/chat")
    both = replace(acting, ticks=(replace(tick, decisions=(*tick.decisions, room)),))
    assert {harm.scope for harm in harms(both, 7200)} == {CHAT, "pool:gpu/serving/chat"}
    told = {
        "first_at": "2026-03-02T06:42:00Z", "last_at": "2026-03-02T06:50:00Z", "decisions": 9, "reason": "Renewed",
        "asks": "room", "kinds": ["paid_for_nothing"], "extra_unserved_requests": 0.0,
        "extra_pending_pod_minutes": 0.0, "extra_pod_hours": 61.2,
    }  # fmt: skip
    report = {"story": {"harms": [{**told, "scope": scope} for scope in (CHAT, "pool:gpu/serving/chat", "pool:gpu")]}}
    assert len(harms(replace(story, report=report), story.full.end_s)) == 2


def test_a_list_that_the_report_cut_off_is_not_taken_for_all(story):
    acting = acting_story(story, world("leadtime", ready=12), world("hpa"))
    cut = replace(acting, report={"story": {"harms": [], "harms_total": 21}})
    assert [harm.at_s for harm in harms(cut, cut.full.end_s)] == [0]


def test_the_reports_own_list_of_harms_is_shown_at_the_end(story):
    told = {
        "first_at": "2026-03-02T06:42:00Z", "last_at": "2026-03-02T06:50:00Z", "decisions": 9, "scope": CHAT,
        "reason": "Renewed", "asks": "floor 900", "kinds": ["paid_for_nothing"], "extra_unserved_requests": 0.0,
        "extra_pending_pod_minutes": 0.0, "extra_pod_hours": 61.2,
    }  # fmt: skip
    (harm,) = harms(replace(story, report={"story": {"harms": [told]}}), story.full.end_s)
    assert (harm.at_s, harm.kind) == (at("06:42"), "paid for nothing")
    assert "61 pod-hours more" in harm.sentence


def test_a_figure_the_report_does_not_have_says_why(story):
    table = score_table(story, story.full.end_s)
    column = [m.key for m in table.measures].index("latency_p95_s")
    cell = next(row for row in table.rows if row.world == "leadtime").cells[column]
    assert (cell.value, cell.reason) == (None, "no request was late")


# answers


def test_the_questions_are_answered_as_the_report_has_it(story):
    told = told_at(story)
    assert "threshold was crossed at 06:05" in said(told, "hpa-reacted")
    assert "first new node was ready at 06:48" in said(told, "hpa-reacted")
    assert "197 pods were pending" in said(told, "hpa-reacted")
    assert said(told, "leadtime-reacted").startswith("At 05:06: room for 0 → 420 more pods on gpu, 59 min before")
    assert "NodesNeededAhead" in said(told, "why")
    assert "Outranked 5×, QueueBeforeCost 4×" in said(told, "what-lost")
    assert "1.12 × HPA alone, 1.09 × the oracle" in said(told, "cost")
    assert "06:06" in said(told, "forecast-wrong")
    assert "05:07" in said(told, "first-request")
    assert "1 h 1 min earlier" in said(told, "first-request")


def test_without_minutes_and_report_the_answers_say_what_is_missing(story):
    bare = replace(story, worlds={}, report=None, ticks=())
    told = told_at(bare)
    assert answers.verdict(told) == "Nothing measured yet: no minute of any world is on record."
    assert "not known" in said(told, "cost")
    assert said(told, "forecast-wrong").startswith("Not known")
    assert said(told, "harm").startswith("Not known")
    assert "No tick of leadtime" in said(told, "leadtime-reacted")


def test_leadtime_standing_back_is_said_with_its_reason(story):
    ticks = tuple(
        replace(
            t,
            decisions=tuple(replace(d, action=None) for d in t.decisions),
            workloads={k: replace(w, may_act=False) for k, w in t.workloads.items()},
        )
        for t in story.ticks
    )
    assert "It stood back" in said(told_at(replace(story, ticks=ticks)), "leadtime-reacted")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"warm_pods_needed": 412, "warm_gpu_hours_per_day": 9888.0}, "412 more would have served everything; they"),
        ({"warm_pods_needed": None, "warm_pods_needed_reason": "no shortfall"}, "is not known: no shortfall"),
    ],
)  # fmt: skip
def test_what_would_have_helped_a_sudden_surge_is_told_where_the_report_has_it(story, fields, text):
    told = told_at(replace(story, report={**story.report, **fields}))
    assert text in said(told, "warm-pods")


def test_a_buffer_on_a_pool_counts_as_leadtimes_reaction(story):
    """The room for a workload on a pool has a scope of its own (``pool:gpu/serving/chat``)."""
    moved = tuple(
        replace(
            t,
            decisions=tuple(
                replace(d, scope="pool:gpu/serving/chat") if d.action and d.action.kind == "buffer" else d
                for d in t.decisions
            ),
        )
        for t in story.ticks
    )
    assert said(told_at(replace(story, ticks=moved)), "leadtime-reacted").startswith("At 05:06: room for 0 → 420")


# the drawer


def detail_at(story, incident_ledger, clock):
    raw = LedgerBook("recurring", incident_ledger).tick(at(clock))
    return decision_detail(raw, CHAT, story, decision_runs(story.ticks))


def test_the_drawer_has_evidence_losers_verdicts_and_the_hpas_wish(story, incident_ledger):
    detail = detail_at(story, incident_ledger, "05:42")
    assert [e.id for e in detail.evidence if e.points_here] == ["ev-demand", "ev-lead", "ev-rate"]
    assert [(p.agent, p.fate_why.reason) for p in detail.decision.losers] == [("scaling", "Outranked")]
    assert ("Limited", "RateLimit") in [(v.answer, v.why[0].reason) for v in detail.verdicts if v.why]
    assert "would have wanted 480 pods" in detail.hpa_words
    assert detail.outcomes[0].rollback == "expires by itself after 15 min"
    assert next(e for e in detail.evidence if e.id == "ev-queue").value == "missing"


def test_what_came_of_it_is_read_from_the_minutes_after(story, incident_ledger, synthetic):
    detail = detail_at(story, incident_ledger, "06:00")
    rows = {(r.after, r.world): r for r in detail.after}
    assert rows["15 min", "hpa"].pending == str(synthetic.pods("hpa", 375)[3])
    assert rows["5 min", "leadtime"].ready == str(synthetic.pods("leadtime", 365)[1])


def test_what_lies_after_the_record_is_said_not_guessed(story, incident_ledger):
    detail = detail_at(story, incident_ledger, "08:50")
    hour_later = next(r for r in detail.after if r.after == "1 h" and r.world == "hpa")
    assert hour_later.absent == "the record ends at 09:00"
    assert hour_later.ready == "–"


def test_a_thinned_row_stands_for_all_its_minutes():
    thin = replace(world("hpa", minutes=3), step_s=1560, at_s=[0, 1560, 3120])
    assert [thin.index_at(s) for s in (-1, 0, 1559, 1560, 4679, 4680)] == [None, 0, 0, 1, 2, None]


def test_of_a_day_of_a_long_run_only_that_days_instants_are_told(story):
    """The report's threshold and comparison are about the whole run; on another day they would mislead."""
    longer = replace(story, full=Span(start_s=story.full.start_s - 90 * 24 * HOUR, end_s=story.full.end_s))
    told = told_at(longer)
    assert "1 h 1 min earlier" not in said(told, "first-request")
    assert "Demand outgrew" not in said(told, "leadtime-reacted")
    assert "all over the whole run" in said(told, "cost")
    titles = [j.title for j in pages.windows(longer, pages.wish_of(None, None, None, None, None), None)]
    assert titles[:2] == ["← day", "whole day"]


def test_a_threshold_crossed_on_another_day_is_not_this_days(story):
    report = {**story.report, "timeline": {"hpa": {"serving/chat": {"threshold_crossed_at": "2026-02-01T06:05:00Z"}}}}
    assert "threshold" not in said(told_at(replace(story, report=report)), "hpa-reacted")


def test_without_worlds_demand_is_what_the_ticks_saw_at_the_minute_their_evidence_names(story, synthetic):
    seen = actual_demand(replace(story, worlds={}))
    tick = next(t for t in story.ticks if t.at_s == at("06:00"))
    assert seen[tick.workloads["serving/chat"].demand_at_s] == synthetic.demand(359)


def test_of_a_thinned_world_the_ticks_finer_demand_is_taken(story):
    thin = replace(story.worlds["leadtime"], step_s=1560, at_s=[at("03:00")], demand=[1.0])
    found = actual_demand(replace(story, worlds={"leadtime": thin}, ticks=story.ticks[:3]))
    assert found[at("03:25")] == 1.0
    assert any(value != 1.0 for value in found.values())
