"""Text on the command line → typed values; and the frozen option records the long commands are called with.

Imports nothing heavy: ``--help`` of every command answers without numpy, pydantic or the simulator.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import typer

from leadtime.sources.demand_file_options import DemandFileOptions

_DURATION = re.compile(r"(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s)?")
LONGEST = timedelta(days=3650)


class Form(StrEnum):
    """The three truths of the incident."""

    RECURRING = "recurring"
    RAMP = "ramp"
    SUDDEN = "sudden"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """``leadtime demo``: which forms, which day, headless into ``out`` or served on ``port`` (0: any free port)."""

    headless: bool
    out: Path | None
    forms: tuple[Form, ...]
    seed: int
    vary: bool
    warm_pods: int | None
    policy_path: Path | None
    port: int
    speed: float
    json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """``leadtime replay``: one demand file through the loop into ``out``. ``scenario`` is a name or a file's path."""

    demand: Path
    file: DemandFileOptions
    capacity_per_pod_rps: float
    scenario: str
    policy_path: Path | None
    kill_at: datetime | None
    warm_up: timedelta
    seed: int
    out: Path
    json: bool
    risk_model: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardOptions:
    """``leadtime dashboard``: serve ``ledger`` read-only on 127.0.0.1:``port`` (0: any free port)."""

    ledger: Path
    port: int


def parse_duration(text: str) -> timedelta:
    """Read ``7d``, ``1h``, ``30m``, ``90s`` or a chain such as ``1h30m``, largest unit first.

    Raises typer.BadParameter, which names the option. Whole numbers only; at most ten years.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    cleaned = text.strip().lower()
    match = _DURATION.fullmatch(cleaned)
    if not cleaned or match is None or not cleaned.isascii():
        raise typer.BadParameter(f"{text!r} is not a duration; write 7d, 1h, 30m, 90s or 1h30m")
    days, hours, minutes, seconds = (int((match[unit] or "0")[:12]) for unit in "dhms")
    total_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if total_s > LONGEST.total_seconds():
        raise typer.BadParameter(f"{text!r} is longer than ten years; write a shorter one, such as 7d")
    return timedelta(seconds=total_s)


def parse_duration_s(text: str) -> float:
    """``parse_duration`` in seconds.

    >>> parse_duration_s("40m")
    2400.0
    """
    return parse_duration(text).total_seconds()


def parse_server_url(text: str) -> str:
    """The address of an HTTP server as typed. Raises typer.BadParameter where no scheme or no host is there.

    >>> parse_server_url("http://prometheus:9090/prefix")
    'http://prometheus:9090/prefix'
    """
    if re.match(r"https?://[^/\s]", text) is None:
        raise typer.BadParameter(f"{text!r} is no address of a server; write http://prometheus:9090")
    return text


def plain_duration(seconds: float) -> str:
    """Seconds as ``parse_duration`` reads them; parts of a second are dropped.

    >>> plain_duration(5400), plain_duration(0)
    ('1h30m', '0s')
    """
    parts, left = [], int(seconds)
    for unit, unit_s in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, unit_s)
        parts.append(f"{count}{unit}" if count else "")
    return "".join(parts) or "0s"


def parse_folder(text: str) -> Path:
    """A folder's path. Raises typer.BadParameter for an empty one, as an unset shell variable gives it."""
    if not text.strip():
        raise typer.BadParameter("it is empty; name a folder, or '.' for this one")
    return Path(text)


def parse_instant(text: str) -> datetime:
    """Read an RFC 3339 time; without an offset it is UTC. Raises typer.BadParameter, which names the option.

    >>> parse_instant("2026-03-02T06:05:00Z").isoformat()
    '2026-03-02T06:05:00+00:00'
    """
    try:
        at = datetime.fromisoformat(text.strip())
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not a time; write it as 2026-03-02T06:05:00Z") from None


def parse_where(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Split each ``COL=VALUE`` at its first ``=``. Raises typer.BadParameter when there is none.

    >>> parse_where(["request_type=Generative Requests"])
    (('request_type', 'Generative Requests'),)
    """
    pairs = []
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals or not column.strip():
            raise typer.BadParameter(f"{text!r} is not COL=VALUE; write --where 'request_type=Generative Requests'")
        pairs.append((column.strip(), value.strip()))
    return tuple(pairs)
