"""The series of the data folder's baseline table → buckets for a backtest: how each file is read, said once.

GPUs wanted of a queue are those that run and those that wait. Alibaba's second day is left out as unknown: where its
steps lie in the day is not known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from leadtime.domain.time_window import from_epoch
from leadtime.sources.demand_file import DemandFileOptions, TimeUnit, read_demand
from leadtime.training.backtest.series import BacktestSeries, from_file

MINUTE_S, FIVE_MIN_S, DAY_S = 60, 300, 86_400
QUEUES = ("vc3sl", "vc6YE", "vcJLV", "vcLJZ", "vcTJs", "vccaA", "vcgkz", "vchbv")
MONITORED = ("ingress-01", "ingress-03", "ingress-05", "mongo-01", "mongo-03")
NAB = (
    *(f"realAWSCloudwatch/{name}" for name in (
        "ec2_cpu_utilization_24ae8d", "ec2_cpu_utilization_5f5533", "ec2_cpu_utilization_825cc2",
        "ec2_cpu_utilization_c6585a", "ec2_network_in_257a54", "elb_request_count_8c0756", "rds_cpu_utilization_e47b3b",
    )),
    *(f"realTweets/Twitter_volume_{name}" for name in ("AAPL", "CRM", "FB", "IBM", "PFE")),
)  # fmt: skip
PLAIN = DemandFileOptions(time_column="timestamp", value_column="value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A series by its name in the table; ``load`` takes the data folder."""

    name: str
    load: Callable[[Path], BacktestSeries]


def every_series() -> tuple[Named, ...]:
    """In the order of the table."""
    web = {"nasa": "nasa_1995-07_minute", "twitter": "twitter_2021-08_minute", "world-cup": "worldcup98_minute"}
    found = {name: _file(f"web-requests/{stem}.csv") for name, stem in web.items()}
    found |= {name: _file(f"cloud-monitoring/{name}.csv") for name in MONITORED}
    found |= {name: partial(_gpus_wanted, name=name) for name in QUEUES}
    found["philly"] = _file("philly-nodes/active_nodes_minute.parquet", _columns("time", "active"))
    found["genai-qps"] = partial(_genai, file="qps", whole=True)
    found["genai-duty"] = partial(_genai, file="pod_gpu_duty_cycle", whole=False)
    found |= {"alibaba-cpu": _alibaba, "azure-llm": _azure_llm}
    found |= {path.split("/")[1]: _file(f"nab/{path}.csv") for path in NAB}
    found["ec2_request_latency_system_failure"] = _latency
    found |= {
        name: _file(f"servegen/{name}_total_10min.csv", _columns("t_s", "rate_rps", TimeUnit.S))
        for name in ("deepseek-r1", "m-mid", "m-small")
    }
    found["google-2019"] = _file("datacenter-usage/google2019_5min.csv", _columns("t_s", "avg_cpu", TimeUnit.S))
    found["azure-2019"] = _file("datacenter-usage/azure2019_5min.csv", _columns("t_s", "cpu_usage", TimeUnit.S))
    return tuple(Named(name=name, load=partial(load, as_name=name)) for name, load in found.items())


def _columns(time: str, value: str, unit: TimeUnit | None = None) -> DemandFileOptions:
    return DemandFileOptions(time_column=time, value_column=value, time_unit=unit)


def _file(path: str, options: DemandFileOptions = PLAIN) -> Callable[..., BacktestSeries]:
    """A demand file as any user's is read."""
    return lambda folder, as_name: from_file(read_demand(folder / path, options), as_name)


def _gpus_wanted(folder: Path, as_name: str, name: str) -> BacktestSeries:
    """GPUs that run and GPUs that are waited for, by the minute; no gaps."""
    columns = ["time", "running_gpu_num", "pending_gpu_num"]
    frame = pl.read_parquet(folder / "helios-queue" / f"{name}.parquet", columns=columns)
    wanted = frame["running_gpu_num"].cast(pl.Float64) + frame["pending_gpu_num"].cast(pl.Float64)
    return _minutes(as_name, _epoch_s(frame["time"][0]), wanted.to_numpy())


def _genai(folder: Path, as_name: str, file: str, *, whole: bool) -> BacktestSeries:
    """All containers' samples of a minute: their sum (``whole``; 0 where none asked, as in the table) or mean."""
    frame = pl.read_parquet(folder / "genai-serving-2026" / f"{file}.parquet")
    if whole:
        frame = frame.filter(pl.col("request_type") == "Generative Requests")
    at = (frame["timestamp_s"].to_numpy() // MINUTE_S).astype(np.int64)
    total = np.bincount(at - at.min(), weights=frame["value"].to_numpy())
    count = np.bincount(at - at.min())
    values = total if whole else np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return _minutes(as_name, int(at.min()) * MINUTE_S, values)


def _latency(folder: Path, as_name: str) -> BacktestSeries:
    """Its clock moves by a minute here and there: each five minutes take the mean of what is stamped within them."""
    frame = pl.read_csv(folder / "nab/realKnownCause" / f"{as_name}.csv", try_parse_dates=True)
    at = (frame["timestamp"].dt.epoch("s") // FIVE_MIN_S).to_numpy()
    total, count = np.bincount(at - at.min(), weights=frame["value"].to_numpy()), np.bincount(at - at.min())
    values = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return BacktestSeries(name=as_name, start_s=int(at.min()) * FIVE_MIN_S, step_s=FIVE_MIN_S, values=values)


def _alibaba(folder: Path, as_name: str) -> BacktestSeries:
    """Steps of 10 s → minutes; a minute with fewer than half of its steps is a gap."""
    frame = pl.read_parquet(folder / "datacenter-usage" / "alibaba2018_10s.parquet").filter(pl.col("day") != 2)
    at = ((frame["day"].cast(pl.Int64) - 1) * DAY_S + frame["i"].cast(pl.Int64) * 10).to_numpy()
    total, count = (
        np.bincount(at // MINUTE_S, weights=weights)
        for weights in (frame["cpu_util_percent"].cast(pl.Float64).to_numpy(), np.ones(len(at)))
    )
    return _minutes(as_name, 0, np.where(count >= 3, total / np.maximum(count, 1), np.nan))


def _azure_llm(folder: Path, as_name: str) -> BacktestSeries:
    """Requests counted by the minute; the first and the last, which are cut, left out."""
    times = pl.read_parquet(folder / "azure-llm-2023" / "conv.parquet", columns=["timestamp"])["timestamp"]
    minutes = (times.dt.epoch("s") // MINUTE_S).to_numpy()
    counts = np.bincount(minutes - minutes.min()).astype(np.float64)[1:-1]
    return _minutes(as_name, int(minutes.min() + 1) * MINUTE_S, counts)


def _epoch_s(first: datetime) -> int:
    return round((first - from_epoch(0).replace(tzinfo=None)).total_seconds())


def _minutes(name: str, start_s: int, values: np.ndarray) -> BacktestSeries:
    return BacktestSeries(name=name, start_s=start_s, step_s=MINUTE_S, values=np.asarray(values, dtype=np.float64))
