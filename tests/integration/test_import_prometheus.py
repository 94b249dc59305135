"""A built day of a cluster in a real Prometheus → import, check, make-dataset: labels stand where its ends are."""

import json
from collections.abc import Iterator
from pathlib import Path

import cluster_history as day
import httpx2
import polars as pl
import pytest
from metric_servers import prometheus_server

from leadtime.cli import entry
from leadtime.domain.borg import TRACE_START_US, EventType
from leadtime.risk.kube_lives import Owner, stable_id
from leadtime.training.dataset import make_dataset
from leadtime.training.import_prometheus import ImportRequest, import_prometheus

pytestmark = pytest.mark.slow
LEAKY = Owner(namespace="shop", kind="Deployment", name="leaky").collection_id


def us(second_of_day: int) -> int:
    """On the trace's clock."""
    return second_of_day * 1_000_000 + TRACE_START_US


@pytest.fixture(scope="module")
def server(prometheus: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a Prometheus that holds the built day."""
    folder = tmp_path_factory.mktemp("prometheus")
    day.openmetrics(folder / "day.om")
    with (folder / "day.om").open(encoding="utf-8") as lines:
        made = prometheus_server(prometheus, folder, lines)
    try:
        made.start()
        yield made.url
    finally:
        made.stop()


@pytest.fixture(scope="module")
def imported(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The day as a trace, by the command."""
    out = tmp_path_factory.mktemp("trace") / "mine"
    arguments = ["--url", server, "--start", "2026-03-02T00:00:00Z", "--end", "2026-03-03T00:00:00Z", "--step", "5m",
                 "--cell", "mine", "--out", str(out)]  # fmt: skip
    assert entry.run(["borg", "import-prometheus", *arguments]) == 0
    return out


@pytest.fixture(scope="module")
def windows(imported: Path, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """Joined windows; no gate fails."""
    dataset = make_dataset(imported, tmp_path_factory.mktemp("windows"))
    assert dataset.failed_gates == ()
    return pl.read_parquet(dataset.folder / "cell=mine" / "windows" / "*.parquet")


def events(imported: Path) -> pl.DataFrame:
    """The trace's instance events."""
    return pl.read_parquet(imported / "instance_events-000000000000.parquet")


def of_workload(frame: pl.DataFrame, kind: str, name: str) -> pl.DataFrame:
    """Rows of one workload."""
    return frame.filter(pl.col("collection_id") == Owner(namespace="shop", kind=kind, name=name).collection_id)


def test_every_end_is_found_with_its_rule(imported: Path) -> None:
    report = json.loads((imported / "import.json").read_text())
    assert {rule: count for rule, count in report["ends"].items() if count} == {
        "container-failed": len(day.OOMS) + len(day.LOOPS), "pod-succeeded": 4, "pod-evicted": 1, "node-gone": 1,
        "deleted": 1, "replaced": 6, "scrape-gap": 1, "vanished": 1,
    }  # fmt: skip
    assert (report["pods"], report["nodes"], report["restarts_unseen"]) == (28, 3, 0)
    assert report["instants_missing"] == 5  # 22:05 to 22:25
    assert report["largest_node"] == {"cpu_cores": 32.0, "memory_bytes": 128.0 * 2**30}
    assert not (imported / ".import").exists()


def test_crashes_are_failures_at_their_own_second(imported: Path) -> None:
    told = events(imported)
    failures = told.filter(pl.col("type") == EventType.FAIL)
    assert sorted(of_workload(failures, "Deployment", "leaky")["time"]) == [us(at) for at in day.OOMS]
    assert sorted(of_workload(failures, "Deployment", "loop")["time"]) == [us(at) for at in day.LOOPS]
    again = of_workload(told, "Deployment", "loop").filter(
        (pl.col("type") == EventType.SCHEDULE) & (pl.col("time") > 0)
    )
    assert sorted(again["time"]) == [us(at + 90) for at in day.LOOPS]


def test_a_vanished_node_evicts_its_pods_in_the_same_second(imported: Path) -> None:
    machines = pl.read_parquet(imported / "machine_events-000000000000.parquet")
    removed = machines.filter(pl.col("type") == 2)
    assert removed["machine_id"].to_list() == [stable_id("n3")]
    evicted = of_workload(events(imported), "StatefulSet", "db").filter(pl.col("type") == EventType.EVICT)
    assert evicted.select("instance_index", "time").row(0) == (1, removed["time"][0])
    later = of_workload(events(imported), "StatefulSet", "db").filter(
        (pl.col("instance_index") == 1) & (pl.col("time") > evicted["time"][0])
    )
    assert later["type"].to_list() == [EventType.SUBMIT, EventType.SCHEDULE]  # the same slot lives again
    assert later["machine_id"].to_list() == [None, stable_id("n2")] or later["machine_id"].to_list() == [
        0,
        stable_id("n2"),
    ]


def test_a_rollout_kills_and_a_gap_loses(imported: Path) -> None:
    web = of_workload(events(imported), "Deployment", "web")
    assert sorted(web["instance_index"].unique()) == list(range(12))  # both ReplicaSets are one workload
    killed = web.filter(pl.col("type") == EventType.KILL)
    assert killed["time"].is_between(us(day.ROLLOUT), us(day.ROLLOUT + 400)).all()
    lost = events(imported).filter(pl.col("type") == EventType.LOST)
    assert lost.height == 2


def test_check_finds_nothing_wrong_with_it(imported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["borg", "check", str(imported), "--json"]) == 0
    gates = json.loads(capsys.readouterr().out)["gates"]
    proof = next(gate for gate in gates if gate["name"] == "enum-proof" and gate["standing"] == "passed")
    assert proof["figures"]["stands"] == ["v3"]


def test_labels_stand_where_the_day_has_its_ends(windows: pl.DataFrame) -> None:
    mine = windows.filter((pl.col("collection_id") == LEAKY) & (pl.col("instance_index") == 0) & pl.col("is_running"))
    assert mine.height > 200
    for p, at, kind in mine.select("end_time_us", "next_terminal_time_us", "next_terminal_type").iter_rows():
        coming = [us(oom) for oom in day.OOMS if us(oom) > p]
        assert (at, kind) == ((coming[0], EventType.FAIL) if coming else (None, None))
    quiet = windows.filter((pl.col("collection_id") == LEAKY) & (pl.col("instance_index") > 0))
    assert quiet["next_terminal_type"].null_count() == quiet.height
    assert windows.filter(pl.col("next_terminal_cause") == "machine")["collection_id"].n_unique() == 1


def test_gaps_stay_gaps_and_a_counter_reset_is_no_negative_usage(windows: pl.DataFrame) -> None:
    inside = windows.filter(pl.col("end_time_us").is_between(us(day.GAP[0] + 300), us(day.GAP[1])))
    assert inside.height == 0
    steady = windows.filter((pl.col("collection_id") == LEAKY) & (pl.col("instance_index") > 0))
    assert steady["avg_cpu"].to_numpy() == pytest.approx(0.4 / 32, rel=0.03)
    crashing = windows.filter((pl.col("collection_id") == LEAKY) & (pl.col("instance_index") == 0))
    assert crashing["avg_cpu"].is_between(0, 0.45 / 32).all()
    assert crashing["request_cpu"].to_numpy() == pytest.approx(0.8 / 32)
    assert crashing["avg_memory"].max() > 3 * crashing["avg_memory"].min()  # type: ignore[operator]


def test_a_namespace_that_is_not_there_is_named_as_missing(server: str, tmp_path: Path) -> None:
    asked = ["--url", server, "--start", "2026-03-02T00:00:00Z", "--end", "2026-03-02T02:00:00Z", "--cell", "x",
             "--namespace", "nobody.*", "--out", str(tmp_path / "x")]  # fmt: skip
    assert entry.run(["borg", "import-prometheus", *asked]) == 2


def test_a_wrong_regular_expression_is_refused_by_the_server(server: str, tmp_path: Path) -> None:
    asked = ["--url", server, "--start", "2026-03-02T00:00:00Z", "--end", "2026-03-02T02:00:00Z", "--cell", "x",
             "--namespace", "(", "--out", str(tmp_path / "x")]  # fmt: skip
    assert entry.run(["borg", "import-prometheus", *asked]) == 2


def test_equal_history_gives_equal_bytes_and_stopped_goes_on(server: str, imported: Path, tmp_path: Path) -> None:
    asked = ImportRequest(url=server, start_s=day.MIDNIGHT, end_s=day.MIDNIGHT + day.DAY_S, cell="mine")
    served = 0

    def stopping(request: httpx2.Request) -> httpx2.Response:
        nonlocal served
        served += 1
        if served == 12:
            raise KeyboardInterrupt
        with httpx2.Client() as real:
            told = real.post(str(request.url), content=request.content, headers=request.headers)
            return httpx2.Response(told.status_code, content=told.content)

    with pytest.raises(KeyboardInterrupt):
        import_prometheus(asked, tmp_path / "again", transport=httpx2.MockTransport(stopping))
    assert not (tmp_path / "again" / "trace.json").exists()
    import_prometheus(asked, tmp_path / "again", transport=httpx2.MockTransport(stopping))
    assert served == 12 + 32 - 11  # 32 queries, 11 of them had been answered
    for file in sorted(path.name for path in imported.iterdir()):
        assert (tmp_path / "again" / file).read_bytes() == (imported / file).read_bytes(), file
