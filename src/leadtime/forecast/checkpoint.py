"""Forecast and lead-time states ↔ plain values that JSON can hold, with a format number.

Each record is written as {"record": name, fields…}, so that a file can be read by eye. NaN (a gap) is written as null.
A number is read back bit for bit, so the state after a restart forecasts exactly what it would have forecast.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from math import isnan
from typing import Any

import numpy as np

from leadtime.domain.errors import WrongUse
from leadtime.domain.refs import WorkloadRef
from leadtime.domain.time_window import rfc3339
from leadtime.forecast.arima import ArimaState
from leadtime.forecast.assess import ForecastState
from leadtime.forecast.champion import Champion
from leadtime.forecast.day_cells import DayCells
from leadtime.forecast.ets import Smoothed
from leadtime.forecast.holt_winters import HoltWintersState
from leadtime.forecast.lag_memory import Lags
from leadtime.forecast.lead_time import Episode, LeadTimeState, Seen, StageKey
from leadtime.forecast.race import Block, Issued, Race
from leadtime.forecast.recent import Recent
from leadtime.forecast.surge import Reference, Running, SurgeState
from leadtime.forecast.surge_alarm import Alarm, AlarmState, Beside
from leadtime.forecast.surge_cause import NotASurge
from leadtime.forecast.theta import ThetaState

FORECAST_FORMAT = 1
_RECORDS: dict[str, type[Any]] = {
    record.__name__: record
    for record in (
        ForecastState, Race, Issued, Block, Champion, SurgeState, Reference, Running, Recent, Smoothed, DayCells,
        LeadTimeState, Seen, StageKey, Episode, WorkloadRef, Alarm, AlarmState, Beside, NotASurge,
        ArimaState, HoltWintersState, ThetaState, Lags,
    )
}  # fmt: skip


def to_plain(state: Any) -> dict[str, Any]:
    """A ForecastState, LeadTimeState or one model's state as nested dicts, lists, strings, numbers and nulls."""
    return {"format": FORECAST_FORMAT, "state": _plain(state)}


def from_plain(plain: Mapping[str, Any]) -> Any:
    """The state that ``to_plain`` wrote. Raises WrongUse for another format or a record it does not know."""
    if plain.get("format") != FORECAST_FORMAT:
        raise WrongUse(
            "forecast-checkpoint",
            "reading a forecast checkpoint",
            f"format is {plain.get('format')!r}, this version reads {FORECAST_FORMAT}",
            "delete the checkpoint: the forecast learns again from history",
        )
    return _live(plain["state"])


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"record": type(value).__name__, **{f.name: _plain(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, np.ndarray):
        flat = [None if isnan(v) else v for v in value.ravel().tolist()]
        return {"record": "array", "shape": list(value.shape), "values": flat}
    if isinstance(value, Mapping):
        return {"record": "mapping", "items": [[_plain(k), _plain(v)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, datetime):
        return {"record": "instant", "at": rfc3339(value)}
    if isinstance(value, np.generic):
        return value.item()
    return value


def _live(plain: Any) -> Any:
    if isinstance(plain, list):
        return tuple(_live(v) for v in plain)
    if not isinstance(plain, Mapping):
        return plain
    match plain["record"]:
        case "array":
            values = np.array([np.nan if v is None else v for v in plain["values"]], dtype=np.float64)
            return values.reshape(plain["shape"])
        case "mapping":
            return {_live(k): _live(v) for k, v in plain["items"]}
        case "instant":
            return datetime.fromisoformat(plain["at"])
        case name if name in _RECORDS:
            return _RECORDS[name](**{k: _live(v) for k, v in plain.items() if k != "record"})
        case name:
            raise WrongUse(
                "forecast-checkpoint",
                "reading a forecast checkpoint",
                f"unknown record {name!r}",
                "delete the checkpoint: the forecast learns again from history",
            )
