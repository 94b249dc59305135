"""What a tick looks like on disk: sorted, compact, the same bytes for an equal tick."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from leadtime.domain.refs import WorkloadRef
from leadtime.domain.risk import PodEnd, PodEnding, RiskDriver, RiskScore
from leadtime.domain.series import Missing
from leadtime.ledger import wire


def test_equal_ticks_have_equal_bytes(build_tick):
    assert wire.encode_tick(build_tick()) == wire.encode_tick(build_tick())


def test_keys_are_sorted_at_every_level(build_tick):
    def walk(node):
        if isinstance(node, dict):
            assert list(node) == sorted(node)
            for below in node.values():
                walk(below)
        elif isinstance(node, list):
            for below in node:
                walk(below)

    walk(json.loads(wire.encode_tick(build_tick())))


def test_there_is_no_space_and_no_newline_between_parts(build_tick):
    text = wire.encode_tick(build_tick())
    assert text == json.dumps(json.loads(text), separators=(",", ":"), ensure_ascii=False)


def test_actions_say_which_they_are(build_tick):
    tick = wire.decode_tick(wire.encode_tick(build_tick()))
    assert [proposal["action"]["type"] for proposal in tick["proposals"]] == [
        "SetFloor",
        "SetBuffer",
        "SetConsolidation",
    ]
    assert tick["verdicts"][0]["allowed_action"]["type"] == "SetFloor"
    assert tick["verdicts"][1]["allowed_action"] is None
    assert tick["decisions"][0]["action"] == {
        "expires_at": "2026-03-02T05:25:00Z",
        "replicas": 510,
        "type": "SetFloor",
        "workload": {"kind": "Deployment", "name": "chat", "namespace": "serving"},
    }
    assert tick["decisions"][1]["action"] is None


def test_instants_are_rfc3339_and_durations_iso8601(build_tick):
    tick = wire.decode_tick(wire.encode_tick(build_tick()))
    assert tick["as_of"] == "2026-03-02T05:10:00Z"
    assert tick["assessments"][0]["forecasts"][0]["horizon"] == "PT840S"


def test_enums_are_their_values(build_tick):
    tick = wire.decode_tick(wire.encode_tick(build_tick()))
    assert tick["decisions"][0]["why"]["reason"] == "ForecastAboveReady"
    assert tick["verdicts"][0]["answer"] == "Limited"
    assert tick["decisions"][0]["scope"] == {"kind": "workload", "name": "serving/chat"}


def test_missing_demand_is_a_record_and_not_zero(build_tick):
    tick = wire.decode_tick(wire.encode_tick(build_tick(demand=Missing(source="csv", reason="gap"))))
    assert tick["assessments"][0]["demand"] == {"reason": "gap", "since": None, "source": "csv"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_json_does_not_have_become_null(build_tick, value):
    assert wire.decode_tick(wire.encode_tick(build_tick(demand=value)))["assessments"][0]["demand"] is None


def test_numpy_numbers_are_written_as_plain_numbers(build_tick):
    assert wire.encode_tick(build_tick(demand=np.float64(576.0))) == wire.encode_tick(build_tick(demand=576.0))


def test_a_value_without_json_form_is_refused(build_tick):
    with pytest.raises(TypeError, match="no JSON form"):
        wire.encode_tick(build_tick(demand=object()))


def test_microseconds_survive_the_way_there_and_back():
    at = datetime(2026, 3, 2, 5, 10, 0, 123457, tzinfo=UTC)
    assert wire.from_us(wire.to_us(at)) == at


def test_the_zone_of_an_instant_does_not_matter():
    here = datetime(2026, 3, 2, 6, 10, tzinfo=timezone(timedelta(hours=1)))
    assert wire.to_us(here) == wire.to_us(datetime(2026, 3, 2, 5, 10, tzinfo=UTC))


def test_risk_is_left_out_while_there_is_none_and_read_back_where_there_is(build_tick):
    plain = build_tick()
    assert {"risks", "pod_ends"}.isdisjoint(wire.decode_tick(wire.encode_tick(plain)))
    at = plain.as_of
    risk = RiskScore(
        pod="serving/chat-7", node="gpu-3", workload=WorkloadRef(namespace="serving", name="chat"), as_of=at,
        window_end=at, horizon=timedelta(minutes=30), probability=0.21, base_rate=0.009, expires_at=at, model="m@1",
        drivers=(RiskDriver(feature="cpu_ratio", value=None, effect=1.5),),
    )  # fmt: skip
    gone = PodEnd(pod="serving/chat-8", workload=None, node=None, at=at, how=PodEnding.FAILED)
    read = wire.decode_tick(wire.encode_tick(replace(plain, risks=(risk,), pod_ends=(gone,))))
    assert read["risks"][0]["drivers"] == [{"effect": 1.5, "feature": "cpu_ratio", "value": None}]
    assert (read["risks"][0]["horizon"], read["risks"][0]["workload"]["name"]) == ("PT1800S", "chat")
    assert read["pod_ends"][0]["how"] == "failed"
