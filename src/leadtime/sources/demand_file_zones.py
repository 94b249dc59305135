"""Wall-clock times of a named zone → instants, over the changes of the clock.

The rule: a time that the zone skips (clocks go forward) is an error, because such a file is not in that zone. A time
that happens twice (clocks go back) is the first of the two, unless that would lie before or at the row before it in
the same group: then it is the second. So an hour that is written twice in order is read as the two hours it is.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import numpy as np

from leadtime.domain.time_window import from_epoch
from leadtime.sources.demand_file_columns import Columns, FloatColumn, refuse_far
from leadtime.sources.demand_file_errors import bad_file, shown

DAY_S = 86_400.0
WALL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall clock's reading has no zone yet


def zone_named(name: str | None, path: str) -> tzinfo:
    """The IANA zone, UTC for None. Raises BadDemandFile for an unknown name."""
    if name is None:
        return UTC
    try:
        return ZoneInfo(name)
    except (
        KeyError,
        ValueError,
        OSError,
    ):  # unknown · not a legal key, such as ../x · a folder of zones, such as Europe
        raise bad_file(
            "demand-time-zone", path, f"time zone {shown(name)} is not known",
            "write an IANA name such as Europe/Berlin or UTC",
        ) from None  # fmt: skip


def to_instants(columns: Columns, zone: tzinfo, path: str) -> FloatColumn:
    """Seconds since 1970, one a row. Raises BadDemandFile for a wall-clock time that ``zone`` skips."""
    instants = columns.time_s.copy()
    wall = np.flatnonzero(~columns.is_instant)
    refuse_far(instants, columns.row, path, "check the times")
    if zone is UTC or not wall.size:
        return instants
    days, day_of_row = np.unique(np.floor(columns.time_s[wall] / DAY_S), return_inverse=True)
    offset_s = np.array([_steady_offset_s(float(day), zone) for day in days])[day_of_row]
    changing = np.isnan(offset_s)
    instants[wall[~changing]] -= offset_s[~changing]
    latest: dict[int, float] = {}  # instant of the last row, by group: it tells the two passes of an hour apart
    for i in wall[changing]:
        group = int(columns.group[i])
        row = int(columns.row[i])
        instants[i] = latest[group] = _on_change_day(float(columns.time_s[i]), latest.get(group), zone, path, row)
    return instants


def _steady_offset_s(day: float, zone: tzinfo) -> float:
    """Offset from UTC over a whole wall-clock day, NaN when the clock changes in it (day and next midnight differ)."""
    midnight = WALL_EPOCH + timedelta(days=day)
    edges = {
        _offset_s(at.replace(fold=fold), zone) for at in (midnight, midnight + timedelta(days=1)) for fold in (0, 1)
    }
    return edges.pop() if len(edges) == 1 else float("nan")


def _offset_s(wall: datetime, zone: tzinfo) -> float:
    offset = wall.replace(tzinfo=zone).utcoffset()
    return 0.0 if offset is None else offset.total_seconds()


def _on_change_day(wall_s: float, latest_s: float | None, zone: tzinfo, path: str, row: int) -> float:
    """One wall-clock time of a day on which the clock changes → the instant, by the rule at the top of this file."""
    wall = WALL_EPOCH + timedelta(seconds=wall_s)
    first_s = wall_s - _offset_s(wall, zone)
    if from_epoch(first_s).astimezone(zone).replace(tzinfo=None) != wall:
        raise bad_file(
            "demand-time-skipped", path, f"the time {wall.isoformat()} does not exist in {zone}: its clock skips it",
            "the times are of another zone, perhaps UTC: change --time-zone or leave it out", row=row,
        )  # fmt: skip
    if latest_s is not None and first_s <= latest_s:
        return wall_s - _offset_s(wall.replace(fold=1), zone)
    return first_s
