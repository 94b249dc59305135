"""Features of the task's present run: how old it is, what its last windows were like, where they are heading."""

import numpy as np

from leadtime.risk.features.block import Block
from leadtime.risk.features.declare import ADVANCED, BOTH, Builder, Feature, Profile
from leadtime.risk.features.steps import Values

RUN = "windows of the same run with end ≤ p"
START = "the run's SCHEDULE event, time ≤ p"
WORDS = {"cpu": "average CPU / requested CPU", "memory": "average memory / requested memory"}
LAGS = range(1, 7)
ROWS = (3, 6, 12)
HALF_LIVES = (2, 6, 24)  # windows of 300 s: 10 min, 30 min, 2 h
IN_BASELINE = {"cpu_ratio_lag_1", "cpu_ratio_mean_6", "cpu_ratio_std_6", "memory_ratio_mean_6", "cpu_ratio_mean_12"}


def _feature(name: str, unit: str, formula: str, build: Builder, known: str = RUN) -> Feature:
    profiles: tuple[Profile, ...] = BOTH if name in IN_BASELINE else ADVANCED
    return Feature(name=name, unit=unit, formula=formula, known=known, build=build, profiles=profiles)


def _lag(series: str, by: int) -> Feature:
    return _feature(
        f"{series}_ratio_lag_{by}", "ratio",
        f"{WORDS[series]}, {by} windows before; missing where that is {(by + 1) * 5} min or more ago",
        lambda block: block.lag(series, by),
    )  # fmt: skip


def _change(series: str, by: int) -> Feature:
    return _feature(
        f"{series}_ratio_change_{by}", "ratio", f"{WORDS[series]}: this window − {by} windows before",
        lambda block: block.series(series) - block.lag(series, by),
    )  # fmt: skip


def _recent(series: str, rows: int) -> tuple[Feature, ...]:
    of = f"{WORDS[series]} over the last {rows} windows of the run, none older than {rows * 5} min"
    return (
        _feature(f"{series}_ratio_mean_{rows}", "ratio", f"mean of {of}", lambda b: b.mean(series, rows)),
        _feature(
            f"{series}_ratio_std_{rows}", "ratio", f"standard deviation of {of}", lambda b: b.std(series, rows)
        ),
        _feature(f"{series}_ratio_max_{rows}", "ratio", f"highest of {of}", lambda b: b.highest(series, rows)),
        _feature(
            f"{series}_ratio_slope_{rows}", "1/h", f"least-squares slope of {of}",
            lambda b: b.slope(series, rows),
        ),
    )  # fmt: skip


def span(windows: int) -> str:
    """A number of 300 s windows as a name says it: 10m, 2h."""
    minutes = windows * 5
    return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"


def _average(series: str, half_life: int) -> Feature:
    return _feature(
        f"{series}_ratio_average_{span(half_life)}", "ratio",
        f"exponential average of {WORDS[series]}, half-life {span(half_life)}, over at most 128 windows of the run",
        lambda block: block.average(series, half_life),
    )  # fmt: skip


def _above(series: str, half_life: int) -> Feature:
    return _feature(
        f"{series}_ratio_above_average_{span(half_life)}", "ratio",
        f"exponential average of {WORDS[series]} with half-life 10m − that with half-life {span(half_life)}",
        lambda block: block.average(series, HALF_LIVES[0]) - block.average(series, half_life),
    )  # fmt: skip


def _number(block: Block) -> Values:
    return block.number("run_number")


def _of_series(series: str) -> tuple[Feature, ...]:
    return (
        *(_lag(series, by) for by in LAGS),
        *(_change(series, by) for by in (1, 3)),
        *(feature for rows in ROWS for feature in _recent(series, rows)),
        *(_average(series, half_life) for half_life in HALF_LIVES),
        _above(series, HALF_LIVES[-1]),
    )


FEATURES = (
    Feature(
        name="run_age_h", unit="h", formula="p − start of the run; missing where it began before the trace",
        known=START, build=lambda block: block.hours_since("run_start_us"), profiles=BOTH,
    ),
    Feature(
        name="run_began_before_trace", unit="0 or 1", formula="the run began before the trace", known=START,
        build=lambda block: (block.running & (block.whole("run_start_us", -1) == 0)).astype(np.float64),
    ),
    Feature(
        name="runs_so_far", unit="runs", formula="SCHEDULE events of the task", known=START, build=_number,
        profiles=BOTH,
    ),
    Feature(
        name="submit_age_h", unit="h", formula="p − newest SUBMIT of the task", known="events with time ≤ p",
        build=lambda block: block.hours_since("submitted_us"),
    ),
    *_of_series("cpu"),
    *_of_series("memory"),
    _feature(
        "cpu_idle_share_12", "ratio", "share of the last 12 windows of the run with CPU 0",
        lambda block: block.mean("cpu_idle", 12),
    ),
)  # fmt: skip
