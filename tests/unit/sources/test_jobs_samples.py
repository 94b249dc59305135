"""The real samples of job-level traces → canonical jobs, counted against what their publishers say of them."""

from pathlib import Path

import polars as pl
import pytest

from leadtime.domain.errors import BadTrace
from leadtime.domain.jobs import JobFormat
from leadtime.sources.jobs_file import read_jobs


@pytest.mark.data
def test_the_mit_sample_is_read_whole(data_dir: Path) -> None:
    jobs = read_jobs(data_dir / "mit-supercloud-slurm" / "jobs.parquet", JobFormat.MIT)
    counted = dict(jobs.frame["outcome"].value_counts().iter_rows())
    assert counted == {
        "completed": 3414, "cancelled": 1180, "failed": 599, "timeout": 557, "node_failed": 12, "out_of_memory": 14,
    }  # fmt: skip
    assert jobs.frame["user"].n_unique() == 278
    wait = jobs.frame["started_s"] - jobs.frame["submitted_s"]
    assert wait.median() == pytest.approx(3, abs=1)


@pytest.mark.data
def test_openb_pods_keep_their_phases_and_are_censored_where_the_trace_ends(data_dir: Path) -> None:
    jobs = read_jobs(data_dir / "openb-gpu-2023" / "pods_default.csv", JobFormat.OPENB)
    frame = jobs.frame
    counted = dict(frame["outcome"].value_counts().iter_rows())
    assert counted == {"failed": 1870, "completed": 192, "cancelled": 5159 + 897, "running": 34}
    assert frame["user"].null_count() == frame.height
    assert frame.filter(pl.col("started_s").is_null()).height == 897
    assert frame.filter("censored")["outcome"].unique().to_list() == ["running"]


def test_states_and_columns_nobody_knows_are_refused(tmp_path: Path) -> None:
    table = pl.DataFrame({"name": ["p"], "cpu_milli": [1], "memory_mib": [1], "num_gpu": [0], "gpu_milli": [0],
                          "qos": ["BE"], "pod_phase": ["Sleeping"], "creation_time": [0], "deletion_time": [1],
                          "scheduled_time": [0]})  # fmt: skip
    path = tmp_path / "pods.csv"
    table.write_csv(path)
    with pytest.raises(BadTrace, match="phase 'Sleeping' of pod 'p'"):
        read_jobs(path, JobFormat.OPENB)
    table.drop("qos").write_csv(path)
    with pytest.raises(BadTrace, match="no column qos"):
        read_jobs(path, JobFormat.OPENB)
    with pytest.raises(BadTrace, match="no Parquet"):
        read_jobs(path, JobFormat.MIT)
    with pytest.raises(BadTrace, match="counted seconds"):
        read_jobs(path, JobFormat.OPENB, time_zone="UTC")
