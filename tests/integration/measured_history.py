"""A few hours of a small shop as exporters would have shown them, with every oddity a real history has, by design.

Samples every 15 s at :07, :22, :37 and :52; counters grow evenly within a minute, so the rate of each minute is known
exactly. Written as OpenMetrics (promtool back-fills a Prometheus) and as Prometheus text (VictoriaMetrics imports it).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 6, tzinfo=UTC)  # the window tests look at begins here and ends three hours later
END = START + timedelta(hours=3)
EVERY_S, PHASE_S = 15, 7
GAP = (START + timedelta(minutes=90), START + timedelta(minutes=100))  # nothing is scraped
RESET = START + timedelta(minutes=70)  # the counter of one pod begins anew
A_AWAY = (START + timedelta(minutes=60), START + timedelta(minutes=80))  # one of the two replicas is down
B_HIGH = (START + timedelta(minutes=120), START + timedelta(minutes=125))  # the other one says 20 % more
ENDED = START + timedelta(minutes=105)  # a workload is deleted
MOVED = (START + timedelta(minutes=60), START + timedelta(minutes=65))  # a pod goes, its successor comes
GONE = START - timedelta(hours=2)  # the last sample of a workload that went before the window

Level = Callable[[int], float]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One series: instants in s since 1970, and values."""

    metric: str
    labels: Mapping[str, str]
    samples: Sequence[tuple[int, float]]

    @property
    def named(self) -> str:
        """``metric{label="value",…}``."""
        inside = ",".join(f'{name}="{value}"' for name, value in self.labels.items())
        return f"{self.metric}{{{inside}}}"


def minute_of(at: datetime) -> int:
    """Whole minutes from START (negative before)."""
    return int((at - START).total_seconds() // 60)


def web_a(minute: int) -> float:
    """Requests/s of web's first pod."""
    return 2.0 + minute % 5


def constant(level: float) -> Level:
    """The same all the time."""
    return lambda _minute: level


def instants(start: datetime, end: datetime, without: tuple[datetime, datetime] | None = None) -> Iterator[int]:
    """Scrapes in [start, end), none in [without)."""
    first = int(start.timestamp())
    for at in range(first + PHASE_S, int(end.timestamp()), EVERY_S):
        if without is None or not without[0].timestamp() <= at < without[1].timestamp():
            yield at


def counter(
    metric: str, labels: Mapping[str, str], level: Level, *, start: datetime = START - timedelta(hours=1),
    end: datetime = END + timedelta(hours=1), without: tuple[datetime, datetime] | None = None,
    reset: datetime | None = None,
) -> Measured:  # fmt: skip
    """A counter that grows by ``level`` (per s, by minute of START) and begins anew at ``reset``, a whole minute."""
    first, samples = minute_of(start), []
    totals = [1000.0]  # at the start of each minute
    for minute in range(first, minute_of(end)):
        totals.append(0.0 if reset is not None and minute == minute_of(reset) - 1 else totals[-1] + 60 * level(minute))
    for at in instants(start, end, without):
        minute, second = divmod(at - int(START.timestamp()), 60)
        samples.append((at, totals[minute - first] + second * level(minute)))
    return Measured(metric=metric, labels=labels, samples=samples)


def gauge(metric: str, labels: Mapping[str, str], value: Callable[[int], float]) -> Measured:
    """``value(at_s)`` at every scrape of [START - 1 h, END + 1 h)."""
    span = instants(START - timedelta(hours=1), END + timedelta(hours=1))
    return Measured(metric=metric, labels=labels, samples=[(at, value(at)) for at in span])


def pod(workload: str, number: int, **more: str) -> dict[str, str]:
    """Labels of a Deployment's pod."""
    name = f"{workload}-5d8f7c9b64-x7k2{'bcdfg'[number]}"
    return {"namespace": "shop", "pod": name, "instance": f"10.0.0.{number}:8080", "job": "pods", **more}


def odd(at: int) -> float:
    """Five minutes each of NaN, +Inf, -Inf and -1; else the minute."""
    minute = (at - int(START.timestamp())) // 60
    wrong = {2: float("nan"), 4: float("inf"), 6: float("-inf"), 8: -1.0}
    return wrong.get(minute // 5, float(minute % 7))


def shop() -> list[Measured]:
    """Everything that was measured."""
    requests = "http_requests_total"
    pay_b: Level = lambda minute: 6.0 if minute_of(B_HIGH[0]) <= minute < minute_of(B_HIGH[1]) else 5.0  # noqa: E731
    return [
        counter(requests, pod("web", 0), web_a, without=GAP, reset=RESET),
        counter(requests, pod("web", 0, job="pods-again"), web_a, without=GAP, reset=RESET),  # two jobs scrape it
        counter(requests, pod("web", 1), constant(3.0), without=GAP),
        counter(requests, pod("pay", 0, prometheus_replica="a"), constant(5.0), without=A_AWAY),
        counter(requests, pod("pay", 0, prometheus_replica="b"), pay_b),
        counter(requests, pod("old", 0), constant(4.0), end=ENDED),
        counter(requests, pod("gone", 0), constant(4.0), start=GONE - timedelta(hours=1), end=GONE),
        counter(requests, pod("idle", 0), constant(0.0)),
        counter("moved_total", pod("moved", 0), constant(7.0), end=MOVED[0]),
        counter("moved_total", pod("moved", 1), constant(8.0), start=MOVED[1]),
        counter("twins_total", pod("twins", 0), constant(1.0)),
        counter("twins_total", pod("twins", 1), constant(2.0)),
        gauge("odd", pod("odd", 0), odd),
        *(gauge("wide", {"namespace": "shop", "n": str(n)}, lambda at: 1.0) for n in range(60)),
    ]


def openmetrics(measured: Sequence[Measured]) -> Iterator[str]:
    """Lines for ``promtool tsdb create-blocks-from openmetrics``."""
    for each in measured:
        for at, value in each.samples:
            yield f"{each.named} {text(value)} {at}\n"
    yield "# EOF\n"


def prometheus_text(measured: Sequence[Measured]) -> Iterator[str]:
    """Lines for VictoriaMetrics' /api/v1/import/prometheus: instants in ms."""
    for each in measured:
        for at, value in each.samples:
            yield f"{each.named} {text(value)} {at * 1000}\n"


def text(value: float) -> str:
    """As both formats write it."""
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(str(value), repr(value))
