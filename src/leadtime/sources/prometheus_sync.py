"""The same client for callers that are not asynchronous: an event loop of its own, run only while a call waits."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2

from leadtime.sources.prometheus import Prometheus, RangeAnswer
from leadtime.sources.prometheus_findings import RequestFailed
from leadtime.sources.prometheus_grid import Grid
from leadtime.sources.prometheus_options import PrometheusOptions
from leadtime.sources.prometheus_wire import TickBudget
from leadtime.sources.promql_check import check_query

T = TypeVar("T")


class PrometheusDoor:
    """Open it with ``with``; ``server`` is the client, ``run`` waits for one of its calls. Not in a running loop."""

    def __init__(self, options: PrometheusOptions, *, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """``transport``: for tests."""
        self.server = Prometheus(options, transport=transport)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        """Open the connection pool. Raises DependencyFailed where the token or the CA file cannot be read."""
        self._runner.__enter__()
        try:
            self.run(self.server.__aenter__())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it, and the loop."""
        try:
            self.run(self.server.__aexit__(kind, error, at))
        finally:
            self._runner.close()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of one call of ``server``. Raises DependencyFailed or WrongUse where that raises RequestFailed."""
        try:
            return self._runner.run(call)
        except RequestFailed as failure:
            raise failure.error(self.server.options.url) from None

    def whole_range(self, query: str, grid: Grid, budget: TickBudget) -> RangeAnswer:
        """``query`` at every instant of ``grid``, all or nothing.

        Raises DependencyFailed (prometheus-unreachable, -denied, -failed, -partial, -absent), WrongUse
        (prometheus-refused, promql-refused, promql-no-series).
        """
        answer = self.run(self.server.range(check_query(query), grid, budget))
        for _, failure in answer.failed:
            raise failure.error(self.server.options.url)
        return answer
