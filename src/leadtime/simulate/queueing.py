"""Arrivals and capacity of one step → who is served, late, expired or rejected: a FIFO fluid with patience.

Requests are a fluid: within a step they arrive evenly and are served evenly, oldest first. What waited longer than the
patience at a step's end expires; everything is booked at the step it *arrived* in. A request served in the very step in
which its patience ends counts as served after exactly its patience.
"""

from collections import deque

from leadtime.simulate.recorder import WorkloadColumns

NEGLIGIBLE = 1e-6  # a millionth of a request in a step does not queue: floats cannot hold its place


class Cohort:
    """Waiting requests of one step: those that arrived in [from_s, to_s), ``per_s`` of them a second."""

    __slots__ = ("from_s", "index", "per_s", "to_s")

    def __init__(self, index: int, from_s: float, to_s: float, per_s: float) -> None:
        self.index = index
        self.from_s = from_s
        self.to_s = to_s
        self.per_s = per_s

    @property
    def waiting(self) -> float:
        """Requests that still wait."""
        return (self.to_s - self.from_s) * self.per_s


class FluidQueue:
    """The queue before one workload. ``limit`` requests may wait at a step's end; the newest beyond it are rejected."""

    __slots__ = ("cohorts", "limit", "patience_s", "service_s", "slo_s")

    def __init__(self, *, patience_s: float, service_s: float, slo_s: float, limit: float | None = None) -> None:
        self.patience_s = patience_s
        self.service_s = service_s
        self.slo_s = slo_s
        self.limit = limit
        self.cohorts: deque[Cohort] = deque()

    @property
    def waiting(self) -> float:
        """Requests in the queue."""
        return sum(cohort.waiting for cohort in self.cohorts)

    def step(
        self,
        index: int,
        start_s: float,
        step_s: float,
        *,
        arrived: float,
        capacity: float,
        book: WorkloadColumns | None,
    ) -> None:
        """Play [start_s, start_s + step_s): ``arrived`` requests come, at most ``capacity`` are served.

        ``index`` numbers the step; ``book`` keeps what became of the requests (None: nobody looks).
        """
        if not self.cohorts and arrived <= capacity:  # nobody waits: nearly every step
            if book is not None and arrived > 0.0:
                self._book_served(book, index, arrived, 0.0, 0.0)
            return
        end_s = start_s + step_s
        if arrived > NEGLIGIBLE:
            self.cohorts.append(Cohort(index, start_s, end_s, arrived / step_s))
        elif book is not None:
            self._book_served(book, index, arrived, 0.0, 0.0)
        if capacity > 0.0:
            self._serve(start_s, step_s, capacity, book)
        self._expire(end_s - self.patience_s, book)
        if self.limit is not None:
            self._reject(self.limit, book)

    def _serve(self, start_s: float, step_s: float, capacity: float, book: WorkloadColumns | None) -> None:
        """Serve oldest first; the used part of the capacity says when within the step somebody is served."""
        used = 0.0
        while self.cohorts and used < capacity:
            cohort = self.cohorts[0]
            waiting = cohort.waiting
            count = min(waiting, capacity - used)
            wait_first = start_s + step_s * used / capacity - cohort.from_s
            served_to_s = cohort.from_s + count / cohort.per_s
            wait_last = start_s + step_s * (used + count) / capacity - served_to_s
            if book is not None:
                self._book_ramp(book, cohort.index, count, wait_first, wait_last)
            used += count
            if count >= waiting:
                self.cohorts.popleft()
            else:
                cohort.from_s = served_to_s

    def _book_ramp(self, book: WorkloadColumns, index: int, count: float, first_s: float, last_s: float) -> None:
        """Book ``count`` requests whose waits run evenly from ``first_s`` to ``last_s``; below zero nobody waited.

        Below zero happens where the queue runs dry within the step: those who came after that were served at once.
        """
        if last_s < 0.0 < first_s:
            waited = count * first_s / (first_s - last_s)
            self._book_served(book, index, waited, first_s, 0.0)
            self._book_served(book, index, count - waited, 0.0, 0.0)
        else:
            self._book_served(book, index, count, max(first_s, 0.0), max(last_s, 0.0))

    def _book_served(self, book: WorkloadColumns, index: int, count: float, first_s: float, last_s: float) -> None:
        """Book served requests with waits from ``first_s`` to ``last_s`` (≥ 0), capped at the patience."""
        first_s, last_s = min(first_s, self.patience_s), min(last_s, self.patience_s)
        allowed_s = self.slo_s - self.service_s
        low, high = (first_s, last_s) if first_s <= last_s else (last_s, first_s)
        late = 0.0
        if low > allowed_s:
            late = count
        elif high > allowed_s:
            late = count * (high - allowed_s) / (high - low)
        book.add_served(index, count, count * ((first_s + last_s) / 2.0 + self.service_s), late)

    def _expire(self, before_s: float, book: WorkloadColumns | None) -> None:
        """Give up on those who arrived before ``before_s``."""
        while self.cohorts and self.cohorts[0].from_s < before_s:
            cohort = self.cohorts[0]
            until_s = min(before_s, cohort.to_s)
            if book is not None:
                book.add_unserved(cohort.index, (until_s - cohort.from_s) * cohort.per_s)
            if until_s >= cohort.to_s:
                self.cohorts.popleft()
            else:
                cohort.from_s = until_s

    def _reject(self, limit: float, book: WorkloadColumns | None) -> None:
        """Turn away the newest beyond ``limit``."""
        excess = self.waiting - limit
        while excess > 0.0 and self.cohorts:
            cohort = self.cohorts[-1]
            turned_away = min(excess, cohort.waiting)
            if book is not None:
                book.add_unserved(cohort.index, turned_away)
            excess -= turned_away
            if turned_away >= cohort.waiting:
                self.cohorts.pop()
            else:
                cohort.to_s -= turned_away / cohort.per_s
