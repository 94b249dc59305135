"""LoopState ↔ bytes: JSON with a format version, so that a restart goes on where it stopped.

Every value of a room is a frozen record, an array, a tuple, a mapping or a plain value; records are written with the
name of their class and read back only from leadtime's own rooms. Equal states give equal bytes.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from importlib import import_module
from math import isfinite
from typing import Any

import numpy as np

from leadtime.domain.errors import WrongUse
from leadtime.domain.tick import LOOP_STATE_FORMAT, LoopState

FORMAT = LOOP_STATE_FORMAT
ROOMS = ("domain", "policy", "mechanics", "forecast", "propose", "loop")
TAG = "!"  # a JSON object with this key is not a mapping but what the tag says


class BadCheckpoint(WrongUse):
    """A checkpoint is of another format version, or is none."""


def save(state: LoopState) -> bytes:
    """``state`` as UTF-8 JSON. Raises TypeError for a value no rule here can write (a room's mistake)."""
    body = {"leadtime_loop_state": FORMAT, "state": _pack(state)}
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def load(data: bytes) -> LoopState:
    """The state ``save`` wrote. Raises BadCheckpoint for another version or for anything that is no checkpoint."""
    doing = "loading the loop's checkpoint"
    try:
        body = json.loads(data)
        version = body["leadtime_loop_state"]
    except (ValueError, KeyError, TypeError) as broken:
        raise BadCheckpoint(
            "bad-checkpoint", doing, "it is not a checkpoint of leadtime", "delete it: the loop then learns anew"
        ) from broken
    if version != FORMAT:
        raise BadCheckpoint(
            "bad-checkpoint", doing, f"it has format {version}, this version reads format {FORMAT}",
            "use the version that wrote it, or delete it: the loop then learns anew",
        )  # fmt: skip
    try:
        state = _unpack(body["state"])
    except (KeyError, TypeError, ValueError, AttributeError, ImportError) as broken:
        raise BadCheckpoint(
            "bad-checkpoint", doing, f"its content cannot be read ({broken})", "delete it: the loop then learns anew"
        ) from broken
    if not isinstance(state, LoopState):
        raise BadCheckpoint("bad-checkpoint", doing, "it holds no loop state", "delete it: the loop then learns anew")
    return state


def _class_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _pack(value: Any) -> Any:  # the shape follows the value
    if isinstance(value, Enum):
        return {TAG: "enum", "of": _class_name(type(value)), "value": value.value}
    if isinstance(value, np.generic):
        return _pack(value.item())
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else {TAG: "float", "value": repr(value)}
    for kind, pack in _PACKERS:
        if isinstance(value, kind):
            return pack(value)
    if is_dataclass(value) and not isinstance(value, type):
        content = {f.name: _pack(getattr(value, f.name)) for f in fields(value) if f.init}
        return {TAG: "record", "of": _class_name(type(value)), "fields": content}
    raise TypeError(f"saving the loop's state: {type(value).__name__} has no written form")


def _pack_array(value: np.ndarray[Any, Any]) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {TAG: "array", "dtype": value.dtype.str, "shape": list(value.shape), "data": data}


def _pack_tuple(value: tuple[Any, ...]) -> dict[str, Any]:
    named = type(value)
    items = [_pack(item) for item in value]
    return (
        {TAG: "tuple", "items": items} if named is tuple else {TAG: "named", "of": _class_name(named), "items": items}
    )


def _pack_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {TAG: "map", "items": [[_pack(key), _pack(item)] for key, item in value.items()]}


_PACKERS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (datetime, lambda v: {TAG: "at", "value": v.isoformat()}),
    (timedelta, lambda v: {TAG: "span", "days": v.days, "seconds": v.seconds, "us": v.microseconds}),
    (np.ndarray, _pack_array),
    (tuple, _pack_tuple),
    (list, lambda v: {TAG: "list", "items": [_pack(item) for item in v]}),
    (bytes, lambda v: {TAG: "bytes", "data": base64.b64encode(v).decode()}),
    (Mapping, _pack_mapping),
)


def _class(name: str) -> Any:
    """A class by its written name, from leadtime's rooms only: a checkpoint must not name anything else."""
    module, _, qualname = name.partition(":")
    parts = module.split(".")
    if parts[0] != "leadtime" or len(parts) < 2 or parts[1] not in ROOMS:
        raise ValueError(f"{name} is not a record of leadtime")
    found: Any = import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    if not isinstance(found, type) or not (is_dataclass(found) or issubclass(found, Enum | tuple)):
        raise ValueError(f"{name} is not a record of leadtime")
    return found


def _unpack(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return _UNPACKERS[value[TAG]](value)


def _unpack_array(value: dict[str, Any]) -> Any:
    array = np.frombuffer(base64.b64decode(value["data"]), dtype=np.dtype(value["dtype"])).reshape(value["shape"])
    return array.copy()  # writable again, as it was


def _unpack_record(value: dict[str, Any]) -> Any:
    return _class(value["of"])(**{name: _unpack(item) for name, item in value["fields"].items()})


_UNPACKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "enum": lambda v: _class(v["of"])(v["value"]),
    "float": lambda v: float(v["value"]),
    "at": lambda v: datetime.fromisoformat(v["value"]),
    "span": lambda v: timedelta(days=v["days"], seconds=v["seconds"], microseconds=v["us"]),
    "array": _unpack_array,
    "tuple": lambda v: tuple(_unpack(item) for item in v["items"]),
    "named": lambda v: _class(v["of"])(*(_unpack(item) for item in v["items"])),
    "list": lambda v: [_unpack(item) for item in v["items"]],
    "bytes": lambda v: base64.b64decode(v["data"]),
    "map": lambda v: {_unpack(key): _unpack(item) for key, item in v["items"]},
    "record": _unpack_record,
}
