"""The five real series of the replay, and every other series there is: read as their notes say they are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadtime.domain.errors import LeadtimeError
from leadtime.sources.demand_file import Aggregate, DemandFileOptions, OnDuplicate, TimeUnit, ValueUnit, read_demand

pytestmark = pytest.mark.data
TEXT = {"time_column": "timestamp", "value_column": "value"}
SERVEGEN = {"time_column": "t_s", "value_column": "rate_rps", "time_unit": TimeUnit.S}
QPS = {
    "time_column": "timestamp_s", "value_column": "value", "time_unit": TimeUnit.S, "group_by": "container_ip",
    "aggregate": Aggregate.SUM, "where": (("request_type", "Generative Requests"),),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options", "mean_rps", "minutes", "gaps"),
    [
        ("web-requests/worldcup98_minute.csv", {**TEXT, "value_unit": ValueUnit.PER_MINUTE}, 7899 / 60, 75_030, 10),
        ("cloud-monitoring/ingress-01.csv", TEXT, 1.797e6, 15_840, 0),
        ("cloud-monitoring/mongo-01.csv", TEXT, 4437, 15_840, 0),
        ("servegen/m-mid_total_10min.csv", SERVEGEN, 1790, 20_160, 0),
        ("genai-serving-2026/qps.parquet", QPS, 2.983, 410, 21),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_series_of_the_replay(
    data_dir: Path, *, name: str, options: dict[str, Any], mean_rps: float, minutes: int, gaps: int
) -> None:
    file = read_demand(data_dir / name, DemandFileOptions(**options))
    values = file.minutes().values
    assert (len(values), file.gaps, file.missing_values) == (minutes, gaps, 0)
    assert np.nanmean(values) == pytest.approx(mean_rps, rel=1e-3)
    assert np.isnan(values).sum() == gaps


def test_every_other_series_of_times_and_values_can_be_read(data_dir: Path) -> None:
    """But for one, which is artificial and holds negative values."""
    refused = {}
    read = 0
    for path in sorted([*(data_dir / "nab").rglob("*.csv"), *(data_dir / "cloud-monitoring").glob("*.csv")]):
        try:
            file = read_demand(path, DemandFileOptions(**TEXT, on_duplicate=OnDuplicate.MEAN))
        except LeadtimeError as error:
            refused[path.stem] = error.slug
        else:
            read += 1
            assert len(file.minutes().values) >= len(file.values)
    assert read > 40
    assert refused == {"art_daily_flatmiddle": "demand-negative"}
