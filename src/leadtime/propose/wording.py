"""Numbers → the words of an explanation: thousands separated, a unit behind every figure, times as people say them."""

from datetime import datetime

from leadtime.domain.series import Unit
from leadtime.domain.time_window import rfc3339


def amount(value: float) -> str:
    """``1,440`` from 100 up, three significant digits below: 12.3, 0.53."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def demand(value: float, unit: Unit) -> str:
    """``1,440 requests/s``."""
    return f"{amount(value)} {unit.value}"


def pods(count: int) -> str:
    """``1 pod``, ``480 pods``."""
    return f"{count:,} pod{'' if count == 1 else 's'}"


def span(seconds: float) -> str:
    """``45 s`` below two minutes, else whole minutes: ``54 min``."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def share(ratio: float) -> str:
    """``12 %``, ``0.4 %``."""
    percent = ratio * 100
    return f"{percent:.0f} %" if abs(percent) >= 10 or percent == int(percent) else f"{percent:.1f} %"


def clock(at: datetime) -> str:
    """RFC 3339 UTC."""
    return rfc3339(at)
