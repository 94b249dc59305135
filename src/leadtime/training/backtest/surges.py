"""A series → its surges by the one definition (or labels), and how the detector beside the models did on all of it."""

import numpy as np

from leadtime.forecast.surge_detect import detect
from leadtime.scorecard.surge_episodes import Episode, SurgeScore, episodes_of, episodes_of_intervals, score
from leadtime.training.backtest.series import BacktestSeries

__all__ = ["SurgeScore", "judge_surges"]


def judge_surges(series: BacktestSeries, labels: tuple[Episode, ...] | None = None) -> SurgeScore:
    """Run the detector over the whole series and match its alarms with the truth, or with ``labels`` where given.

    Longer buckets are held over their minutes and heard minute by minute, so on them an alarm cannot come early.
    """
    minutes = np.repeat(series.values, series.bucket_min)
    alarms = detect(minutes, series.start_s)
    episodes = episodes_of(minutes, series.start_s) if labels is None else episodes_of_intervals(labels)
    return score(alarms.raised_s, episodes, span_s=float(60 * len(minutes)))
