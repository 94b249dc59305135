"""Queries to a Prometheus, a day at a time → tables kept on disk, so that a stopped import goes on where it was.

<out>/.import/<key>/<name>-0000.parquet      one day's answer; the key is of address, span, step and namespaces
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from leadtime.domain.errors import BadTrace
from leadtime.risk.kube_facts import runs
from leadtime.sources.kube_queries import Query
from leadtime.sources.prometheus import RangeAnswer
from leadtime.sources.prometheus_findings import FindingKind
from leadtime.sources.prometheus_grid import Grid
from leadtime.sources.prometheus_sync import PrometheusDoor
from leadtime.sources.prometheus_wire import TickBudget
from leadtime.training.manifest import fingerprint, written
from leadtime.training.progress import Progress, silent

WORK = ".import"
DAY_S = 86_400
LONGEST_S = 3_600.0  # for one query and day, all its pieces and retries


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """(``start_s``, ``end_s``] on a grid of ``step_s``: the first instant is start + step."""

    start_s: int
    end_s: int
    step_s: int

    def days(self) -> Iterator[tuple[int, int]]:
        """First and last instant (both closed) of each piece of at most a day."""
        each = DAY_S // self.step_s * self.step_s
        at = self.start_s + self.step_s
        while at <= self.end_s:
            yield at, min(self.end_s, at + each - self.step_s)
            at += each


@dataclass(slots=True, kw_only=True)
class Fetch:
    """Answers of one import. ``folder``: where they are kept. ``not_finite``: values that were NaN or ±Inf."""

    door: PrometheusDoor
    span: Span
    folder: Path
    progress: Progress = silent
    not_finite: int = 0

    def state(self, queries: Sequence[Query]) -> dict[str, pl.DataFrame]:
        """Runs of label values of each query over the whole span. Raises BadTrace where a needed one finds nothing."""
        found = {}
        for query in queries:
            days = [
                runs(self._day(query, number, day), self.span.step_s) for number, day in enumerate(self.span.days())
            ]
            found[query.name] = pl.concat(days)
            if query.needed and found[query.name].is_empty():
                raise absent(query.metric, self.door.server.options.url)
        return found

    def usage(self, queries: Sequence[Query], number: int) -> dict[str, pl.DataFrame]:
        """Samples of one day, by query."""
        day = list(self.span.days())[number]
        return {query.name: self._day(query, number, day) for query in queries}

    def _day(self, query: Query, number: int, day: tuple[int, int]) -> pl.DataFrame:
        place = self.folder / f"{query.name}-{number:04d}.parquet"
        total = len(list(self.span.days()))
        if not place.is_file():
            count = (day[1] - day[0]) // self.span.step_s + 1
            grid = Grid(start_s=day[0], step_s=self.span.step_s, count=count)
            answer = self.door.whole_range(query.promql, grid, TickBudget(LONGEST_S))
            self.not_finite += sum(each.count for each in answer.findings if each.kind is FindingKind.NOT_FINITE)
            written(place, _table(query.labels, answer).write_parquet)
        self.progress(f"asking for {query.name}", number + 1, total, "days")
        return pl.read_parquet(place)


def _table(labels: Sequence[str], answer: RangeAnswer) -> pl.DataFrame:
    """``labels`` (text, "" where absent), at_s, value: one row a value, gaps have none."""
    rows = [
        (*(line.labels.get(label, "") for label in labels), at_s, value)
        for line in answer.lines
        for at_s, value in zip(answer.grid.instants(), line.values, strict=True)
        if value is not None
    ]
    schema = dict.fromkeys(labels, pl.String) | {"at_s": pl.Int64, "value": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def absent(metric: str, url: str) -> BadTrace:
    """A metric without which there is nothing to learn from."""
    return BadTrace(
        "prometheus-metric-absent", f"asking {url}", f"it has no samples of {metric} in this span",
        "scrape kube-state-metrics and the kubelet's cAdvisor (with their own labels: honor_labels), and check "
        "--start, --end, --namespace and how long the server keeps its data",
    )  # fmt: skip


def work_folder(out: Path, span: Span, url: str, namespace: str | None) -> Path:
    """Where an import keeps its answers: another address, span, step or namespace begins anew."""
    key = fingerprint([url, span.start_s, span.end_s, span.step_s, namespace])[:16]
    return out / WORK / key


def clean(out: Path) -> None:
    """Answers are not needed once the shards are written."""
    shutil.rmtree(out / WORK, ignore_errors=True)
