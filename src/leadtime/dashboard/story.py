"""A ledger file → a Story: the only place of the page that knows the reader. A change there is a change here alone.

What was read is kept until the file changes; ticks are never rewritten, so only new ones are read again. Ledgers up to
36 hours are told whole; of longer ones a day at a time.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

from leadtime.dashboard.clock_text import epoch
from leadtime.dashboard.tick_view import tick_view
from leadtime.dashboard.views import Span, Story, TickView, WorldMinutes
from leadtime.domain.time_window import from_epoch
from leadtime.ledger.reader import LedgerReader
from leadtime.ledger.records import LedgerMeta, MinuteRow

TOLD_WHOLE_S = 36 * 3600
DAY_S = 24 * 3600
AFTER_LOADED_S = 3900  # minutes read beyond a day, so that "60 min later" is known for its last decisions too
KEPT_STORIES = 6
BEFORE_FOCUS_S, AFTER_FOCUS_S = 120 * 60, 105 * 60
WORLD_ORDER = ("hpa", "leadtime", "oracle", "hpa_equal_cost", "cron", "cron_ahead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a reader asked to see; None means: the page chooses."""

    workload: str | None = None
    start_s: int | None = None
    end_s: int | None = None


class LedgerBook:
    """One ledger, opened for reading, with what was read from it. Safe to use from several threads."""

    def __init__(self, name: str, path: Path) -> None:
        """Raises BadLedger when ``path`` is no ledger of this format."""
        self.name = name
        self.path = path
        self.reader = LedgerReader(path)
        self.meta: LedgerMeta = self.reader.meta()
        self._lock = Lock()
        self._stamp: tuple[int, ...] = ()
        self._times: list[int] = []
        self._ticks: dict[int, TickView] = {}
        self._ticks_of: Span | None = None
        self._stories: dict[tuple[str, Span], Story] = {}
        self._worlds: list[tuple[str, str]] = []
        self._report: Mapping[str, Any] | None = None

    def story(self, choice: Choice) -> Story | None:
        """The story of ``choice``; None while the ledger holds no tick and no minute yet."""
        with self._lock:
            self._refresh()
            workload = choice.workload if choice.workload in self.meta.workloads else self.meta.workloads[0]
            worlds = [world for world, of in self._worlds if of == workload]
            full = self._full(worlds, workload)
            if full is None:
                return None
            loaded = loaded_span(full, choice)
            key = (workload, loaded)
            if key not in self._stories:
                if len(self._stories) >= KEPT_STORIES:
                    self._stories.pop(next(iter(self._stories)))
                self._stories[key] = self._read(workload, worlds, full, loaded)
            story = self._stories[key]
        return replace(story, window=window_of(full, loaded, choice, story.report, workload))

    def tick(self, at_s: int) -> dict[str, Any]:
        """One whole tick, as written. Raises BadLedger when there is none at ``at_s``."""
        return self.reader.tick(from_epoch(at_s))

    def last_tick_s(self) -> int | None:
        """The newest tick's instant, or None."""
        with self._lock:
            self._refresh()
            return self._times[-1] if self._times else None

    def _refresh(self) -> None:
        stamp = _stamp(self.path)
        if stamp == self._stamp:
            return
        self._stories.clear()
        self._worlds = self.reader.worlds()
        self._times = [int(at.timestamp()) for at in self.reader.tick_times()]
        text = self.reader.document("report")
        self._report = json.loads(text) if text else None
        self._stamp = stamp

    def _read(self, workload: str, worlds: list[str], full: Span, loaded: Span) -> Story:
        ticks = self._ticks_within(loaded)
        since, until = from_epoch(loaded.start_s), from_epoch(loaded.end_s + AFTER_LOADED_S)
        minutes = {
            world: world_minutes(world, self.reader.world_minutes(world, workload, since, until))
            for world in sorted(worlds, key=world_rank)
        }
        unit = next((t.workloads[workload].unit for t in ticks if workload in t.workloads), "requests/s")
        absent = "" if self._report else "the ledger holds no report yet: the run has not ended, or it was not a replay"
        return Story(
            ledger=self.name,
            workload=workload,
            workloads=self.meta.workloads,
            full=full,
            loaded=loaded,
            window=loaded,
            worlds={w: m for w, m in minutes.items() if m.at_s},
            ticks=ticks,
            report=self._report,
            report_absent=absent,
            unit=unit,
            meta=meta_lines(self.meta),
        )

    def _full(self, worlds: list[str], workload: str) -> Span | None:
        if self._times:
            return Span(start_s=self._times[0], end_s=self._times[-1] + self.meta.tick_s)
        rows = self.reader.world_minutes(worlds[0], workload) if worlds else []
        return Span(start_s=_s(rows[0].at), end_s=_s(rows[-1].at) + 60) if rows else None

    def _ticks_within(self, loaded: Span) -> tuple[TickView, ...]:
        if self._ticks_of is None or self._ticks_of.start_s != loaded.start_s:
            self._ticks.clear()
        self._ticks_of = loaded
        since = max(self._ticks, default=loaded.start_s - 1) + 1
        for tick in self.reader.ticks(from_epoch(since), from_epoch(loaded.end_s)):
            view = tick_view(tick)
            self._ticks[view.at_s] = view
        return tuple(view for at_s, view in self._ticks.items() if at_s < loaded.end_s)


def loaded_span(full: Span, choice: Choice) -> Span:
    """What is read: all of a short ledger, else the UTC day the choice begins in (the last day by default)."""
    if full.end_s - full.start_s <= TOLD_WHOLE_S:
        return full
    wanted = choice.start_s if choice.start_s is not None else full.end_s - 1
    start_s = max(full.start_s, min(wanted, full.end_s - 1) // DAY_S * DAY_S)
    return Span(start_s=start_s, end_s=min(full.end_s, start_s // DAY_S * DAY_S + DAY_S))


def window_of(full: Span, loaded: Span, choice: Choice, report: Mapping[str, Any] | None, workload: str) -> Span:
    """What is drawn: the choice, else around the instant the HPA's threshold was crossed, else all that was read."""
    if choice.start_s is not None or choice.end_s is not None:
        start_s = max(loaded.start_s, choice.start_s if choice.start_s is not None else loaded.start_s)
        end_s = min(loaded.end_s, choice.end_s if choice.end_s is not None else loaded.end_s)
        return Span(start_s=start_s, end_s=end_s) if end_s - start_s >= 300 else loaded
    focus = focus_span(loaded, report, workload) if loaded == full else None
    return focus or loaded


def focus_span(loaded: Span, report: Mapping[str, Any] | None, workload: str) -> Span | None:
    """From two hours before the HPA's threshold to 105 min after it; None when the report names none inside."""
    crossed = report_value(report, "timeline", "hpa", workload, "threshold_crossed_at")
    if not isinstance(crossed, str):
        return None
    at_s = epoch(crossed) // 900 * 900
    if not loaded.start_s <= at_s < loaded.end_s:
        return None
    return Span(start_s=max(loaded.start_s, at_s - BEFORE_FOCUS_S), end_s=min(loaded.end_s, at_s + AFTER_FOCUS_S))


def report_value(report: Mapping[str, Any] | None, *path: str) -> Any:
    """The value at ``path`` of report.json, or None when a part of the path is absent."""
    found: Any = report
    for step in path:
        if not isinstance(found, Mapping) or step not in found:
            return None
        found = found[step]
    return found


def world_minutes(world: str, rows: list[MinuteRow]) -> WorldMinutes:
    """Rows → columns. Requests that arrived are served + unserved; where those are gaps, so is their sum."""
    at_s = [_s(r.at) for r in rows]
    return WorldMinutes(
        world=world,
        step_s=min((later - sooner for sooner, later in pairwise(at_s)), default=60),
        at_s=at_s,
        demand=[r.demand for r in rows],
        arrived=[None if r.served is None or r.unserved is None else r.served + r.unserved for r in rows],
        unserved=[r.unserved for r in rows],
        wanted=[r.wanted for r in rows],
        ready=[r.ready for r in rows],
        starting=[r.starting for r in rows],
        pending=[r.pending for r in rows],
        floor=[r.floor for r in rows],
        nodes=[r.nodes_by_stage for r in rows],
    )


def world_rank(world: str) -> tuple[int, str]:
    """Order of worlds on the page: the three that matter first, then the rest by name."""
    return (WORLD_ORDER.index(world) if world in WORLD_ORDER else len(WORLD_ORDER), world)


def meta_lines(meta: LedgerMeta) -> dict[str, str]:
    """The ledger's own facts, in the page's words."""
    lines = {
        "kind": meta.kind,
        "scenario": meta.scenario,
        "class": meta.run_class,
        "seed": str(meta.seed),
        "policy": meta.policy_hash,
        "tick": f"{meta.tick_s} s",
    }
    return lines | dict(meta.extra)


def _s(at: datetime) -> int:
    return int(at.timestamp())


def _stamp(path: Path) -> tuple[int, ...]:
    """Changes whenever somebody wrote: size and time of the file and of its write-ahead log."""
    found: list[int] = []
    for part in (path, Path(f"{path}-wal")):
        if part.exists():
            stat = part.stat()
            found += [stat.st_mtime_ns, stat.st_size]
    return tuple(found)
