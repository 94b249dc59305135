"""sacct text → canonical jobs: steps folded, units and clocks put right, what is missing stays missing."""

from pathlib import Path

import pytest

from leadtime.domain.errors import BadTrace
from leadtime.domain.jobs import JobFormat
from leadtime.sources.jobs_file import read_jobs

HEADER = "JobID|User|Partition|State|ExitCode|Submit|Eligible|Start|End|Timelimit|ReqCPUS|ReqMem|ReqTRES|NNodes"
DONE = "1|ada|gpu|COMPLETED|0:0|2026-03-02T06:00:00|2026-03-02T06:00:00|2026-03-02T06:05:00|2026-03-02T07:00:00"


def sacct(tmp_path: Path, *lines: str, header: str = HEADER) -> Path:
    """The text as a file."""
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def read(path: Path, zone: str | None = "Europe/Berlin") -> list[dict[str, object]]:
    """Its jobs as rows."""
    return read_jobs(path, JobFormat.SACCT, time_zone=zone).frame.to_dicts()


def test_a_job_is_read_with_its_sizes_limit_and_times_in_utc(tmp_path: Path) -> None:
    (row,) = read(sacct(tmp_path, f"{DONE}|1-02:00:00|8|4Gc|cpu=8,mem=32G,gres/gpu:a100=2,node=2|2"))
    assert row["submitted_s"] == 1772427600  # 05:00 UTC
    assert (row["started_s"], row["ended_s"]) == (1772427600 + 300, 1772427600 + 3600)
    assert (row["cpus"], row["gpus"], row["nodes"], row["memory_bytes"]) == (8, 2, 2, 32 * 2**30)
    assert (row["time_limit_s"], row["outcome"], row["censored"]) == (26 * 3600, "completed", False)


@pytest.mark.parametrize(("asked", "whole"), [("4Gc", 32), ("4Gn", 8), ("4G", 4), ("2048", 2)])
def test_memory_a_cpu_or_a_node_becomes_the_jobs_memory(tmp_path: Path, asked: str, whole: int) -> None:
    (row,) = read(sacct(tmp_path, f"{DONE}|UNLIMITED|8|{asked}||2"))
    assert row["memory_bytes"] == whole * 2**30
    assert row["time_limit_s"] is None


def test_steps_are_folded_and_counted(tmp_path: Path) -> None:
    step = "1.batch|||FAILED|1:0|2026-03-02T06:05:00||2026-03-02T06:05:00|2026-03-02T07:00:00|||||"
    jobs = read_jobs(
        sacct(tmp_path, f"{DONE}|||||", step, step.replace("batch", "0")), JobFormat.SACCT, time_zone="UTC"
    )
    assert jobs.frame.height == 1
    assert jobs.notes == {"steps folded": 2}
    assert jobs.frame["outcome"].to_list() == ["completed"]


def test_unknown_and_none_are_missing_and_a_running_job_is_censored(tmp_path: Path) -> None:
    running = "2|None|gpu|RUNNING|0:0|2026-03-02T06:00:00|Unknown|2026-03-02T06:05:00|Unknown|||||"
    pending = "3|bob|gpu|PENDING|0:0|2026-03-02T06:00:00|Unknown|2026-03-02T09:00:00|Unknown|||||"
    rows = read(sacct(tmp_path, running, pending))
    assert [row["censored"] for row in rows] == [True, True]
    assert [row["user"] for row in rows] == [None, "bob"]
    assert rows[0]["memory_bytes"] is None
    assert rows[1]["started_s"] is None  # an estimate is no start


def test_a_cancelled_job_names_who_did_it_and_is_cancelled_all_the_same(tmp_path: Path) -> None:
    by = DONE.replace("COMPLETED", "CANCELLED by 1001")
    assert read(sacct(tmp_path, f"{by}|||||"))[0]["outcome"] == "cancelled"


def test_a_job_cancelled_while_it_waited_never_started(tmp_path: Path) -> None:
    header = "JobID|User|State|Submit|Start|End|AllocCPUS"
    waited = "7|ada|CANCELLED by 5|1772427600|1772428600|1772428600|0"
    ran = "8|ada|CANCELLED by 5|1772427600|1772428600|1772428600|4"
    rows = read(sacct(tmp_path, waited, ran, header=header), None)
    assert [row["started_s"] for row in rows] == [None, 1772428600]


@pytest.mark.parametrize(
    ("line", "zone", "slug"),
    [
        (DONE.replace("COMPLETED", "EXPLODED"), "UTC", "jobs-state-unknown"),
        (DONE, None, "jobs-time-zone"),
        (DONE, "Mars/Olympus", "jobs-time-zone"),
        (DONE.replace("2026-03-02T06", "2026-03-29T02"), "Europe/Berlin", "jobs-time-zone"),  # skipped in the spring
        (DONE.replace("2026-03-02T07", "2026-03-01T07"), "UTC", "jobs-time-order"),
        (DONE.replace("2026-03-02T06:05:00", "2026-03-02T05:59:59"), "UTC", "jobs-time-order"),
        (DONE.replace("2026-03-02T07:00:00", "soon"), "UTC", "jobs-time"),
        (DONE.replace("|2026-03-02T06:00:00|2026-03-02T06:00:00|", "|Unknown|Unknown|"), "UTC", "jobs-submit-missing"),
    ],
)
def test_what_cannot_be_meant_is_one_clear_error(tmp_path: Path, line: str, zone: str | None, slug: str) -> None:
    with pytest.raises(BadTrace) as raised:
        read(sacct(tmp_path, f"{line}|||||"), zone)
    assert raised.value.slug == slug


def test_a_missing_column_is_named_with_the_command_that_exports_it(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match=r"no column Submit.*--format=JobID"):
        read(sacct(tmp_path, "1|ada|COMPLETED", header="JobID|User|State"))


def test_a_line_of_another_width_and_a_double_job_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadTrace, match="line 2 has 9 values"):
        read(sacct(tmp_path, DONE))
    with pytest.raises(BadTrace, match="more than once"):
        read(sacct(tmp_path, f"{DONE}|||||", f"{DONE}|||||"))


def test_unix_seconds_need_no_zone(tmp_path: Path) -> None:
    line = "1|ada|gpu|COMPLETED|0:0|1772427600|1772427600|1772427660|1772431200|||||"
    assert read(sacct(tmp_path, line), None)[0]["started_s"] == 1772427660
