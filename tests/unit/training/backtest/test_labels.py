"""Marked surges become episodes; what cannot be read is one clear error."""

from pathlib import Path

import numpy as np
import pytest

from leadtime.domain.errors import BadDemandFile, WrongUse
from leadtime.scorecard.surge_episodes import Episode
from leadtime.training.backtest.labels import from_csv, from_series, inside
from leadtime.training.backtest.series import BacktestSeries

START_S = 1_772_409_600  # 2026-03-02T00:00:00Z


def test_labelled_buckets_are_known_at_their_end_and_neighbours_are_one_episode() -> None:
    column = np.zeros(300)
    column[[10, 11, 40, 200]] = 1.0
    column[5] = np.nan
    episodes = from_series(BacktestSeries(name="label", start_s=START_S, step_s=60, values=column))
    assert [(e.onset_s - START_S, e.end_s - START_S) for e in episodes] == [(660, 2460), (12_060, 12_060)]


def written(folder: Path, text: str) -> Path:
    path = folder / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_intervals_are_read_by_name_and_without_an_offset_are_utc(tmp_path: Path) -> None:
    text = "note,start,end\na,2026-03-02T01:00:00+01:00,2026-03-02T00:10:00\n"
    (episode,) = from_csv(written(tmp_path, text))
    assert (episode.onset_s, episode.end_s) == (START_S, START_S + 600)


def test_a_file_without_rows_marks_nothing(tmp_path: Path) -> None:
    assert from_csv(written(tmp_path, "start,end\n")) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("from,to\n1,2\n", "its columns are from, to"),
        ("start,end\n2026-03-02,soon\n", "row 2"),
        ("start,end\n2026-03-02T01:00:00Z,2026-03-02T00:00:00Z\n", "ends before it starts"),
    ],
)
def test_what_is_no_list_of_intervals_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadDemandFile, match=says):
        from_csv(written(tmp_path, text))


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadDemandFile, match=r"nowhere\.csv"):
        from_csv(tmp_path / "nowhere.csv")


def test_a_column_of_demand_is_no_column_of_labels() -> None:
    column = BacktestSeries(name="rps", start_s=START_S, step_s=60, values=np.array([0.0, 42.0, np.nan]))
    with pytest.raises(BadDemandFile, match="column rps: it holds 42"):
        from_series(column)


def test_labels_outside_the_series_do_not_count_and_none_inside_is_refused() -> None:
    series = BacktestSeries(name="made", start_s=START_S, step_s=60, values=np.ones(60))
    before, within = (
        Episode(onset_s=START_S - 900, end_s=START_S - 600),
        Episode(onset_s=START_S + 60, end_s=START_S + 90),
    )
    assert inside((before, within), series) == (within,)
    assert inside((), series) == ()
    with pytest.raises(WrongUse, match="none of the 1 labels lies in the series"):
        inside((before,), series)
