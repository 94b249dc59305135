"""A Tick → one compact line of JSON, always the same bytes for an equal tick; and back into plain dicts.

Keys are sorted, instants are RFC 3339 in UTC, enums are their values, NaN and ±Inf are null. A record is a dict of its
fields; an action carries one more key, ``type`` (its class name), because several classes could stand in that place.
Fields that came later (``risks``, ``pod_ends``) are left out while they are empty: ledgers of before read the same.
"""

import zlib
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from leadtime.domain.decision import Action
from leadtime.domain.tick import Tick

_LATER = ("risks", "pod_ends")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_us(at: datetime) -> int:
    """Whole microseconds since 1970-01-01T00:00:00Z. Raises TypeError for an instant without a zone."""
    return (at - _EPOCH) // _MICROSECOND


def from_us(at_us: int) -> datetime:
    """The aware UTC instant ``at_us`` microseconds after 1970-01-01T00:00:00Z."""
    return _EPOCH + timedelta(microseconds=at_us)


def action_type(action: Action | None) -> str | None:
    """The class name that tells actions apart, e.g. ``SetFloor``; None for no action."""
    return None if action is None else type(action).__name__


def encode_tick(tick: Tick) -> str:
    """Write ``tick`` as one line of JSON with sorted keys. Raises TypeError for a value JSON cannot hold."""
    shallow = _shallow(tick)
    shallow["proposals"] = [_with_action(proposal, "action") for proposal in tick.proposals]
    shallow["verdicts"] = [_with_action(verdict, "allowed_action") for verdict in tick.verdicts]
    shallow["decisions"] = [_with_action(decision, "action") for decision in tick.decisions]
    for name in _LATER:
        if not shallow[name]:
            del shallow[name]
    return _ENCODER.encode(shallow).decode()


def decode_tick(body: str) -> dict[str, Any]:
    """Read what ``encode_tick`` wrote, as plain dicts, lists, numbers and texts (instants stay text)."""
    return msgspec.json.decode(body, type=dict[str, Any])


def pack(body: str) -> bytes:
    """A tick's line for storage: zlib at its fastest. Unpacked, a month is a gigabyte of repeated sentences."""
    return zlib.compress(body.encode(), level=1)


def unpack(stored: bytes) -> str:
    """What ``pack`` stored."""
    return zlib.decompress(stored).decode()


def _shallow(record: Any) -> dict[str, Any]:
    """One level of a dataclass as a dict; what lies deeper is left to the encoder, which knows dataclasses itself."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _with_action(record: Any, key: str) -> dict[str, Any]:
    written = _shallow(record)
    action = written[key]
    if action is not None:
        written[key] = {"type": action_type(action), **_shallow(action)}
    return written


def _encode_other(value: Any) -> Any:
    """Mappings that are not dicts, numpy scalars and arrays: a tick may hold them, JSON has its own forms for them."""
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"encoding a tick: {type(value).__name__} has no JSON form")


_ENCODER = msgspec.json.Encoder(order="sorted", enc_hook=_encode_other)
