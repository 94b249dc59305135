"""How a server that speaks Prometheus' HTTP API is reached and how far it is believed: one frozen value.

Prometheus, Thanos, Mimir and VictoriaMetrics share the API; where they differ is ``Flavour``, and docs/prometheus.md
lists the differences. Imports nothing heavy, so that a command's options can be built from it.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

MOST_POINTS = 11_000  # points a series in one answer: prometheus/prometheus web/api/v1/api.go, queryRange


class Flavour(StrEnum):
    """Which server answers. What is not of the API's common part is sent only to the one that knows it."""

    PROMETHEUS = "prometheus"
    THANOS = "thanos"
    MIMIR = "mimir"
    VICTORIAMETRICS = "victoriametrics"


class OnPartial(StrEnum):
    """What becomes of an answer that carries warnings: series or samples may be lacking in it."""

    REFUSE = "refuse"  # nothing of it is used: a sum over fewer stores is too low, and too low is dangerous
    KEEP = "keep"  # its values are used, and the finding says so


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """One server.

    ``url``: with its path prefix. ``flavour``: None knows VictoriaMetrics by its answers and takes everything else for
    Prometheus. ``token_file``: read again when the server says 401 (projected tokens rotate); it
    goes before ``token``. ``tenant``: sent as X-Scope-OrgID (Mimir). ``replica_labels``: labels in which replicas of
    the same measurement differ, of which one is taken. ``most_bytes``: of one answer, decompressed. ``most_series``: in
    one answer. ``smallest_piece_s``: the shortest span a range query is halved to.
    ``skew_tolerance_s``: beyond it the server's clock is named as wrong (HTTP's Date has whole seconds).
    """

    url: str
    flavour: Flavour | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    tenant: str | None = None
    on_partial: OnPartial = OnPartial.REFUSE
    replica_labels: tuple[str, ...] = ("prometheus_replica", "replica")
    timeout_s: float = 30.0
    attempts: int = 4
    backoff_first_s: float = 0.5
    backoff_most_s: float = 8.0
    most_points: int = MOST_POINTS
    smallest_piece_s: int = 3_600
    most_bytes: int = 64 * 2**20
    most_series: int = 20_000
    concurrency: int = 4
    skew_tolerance_s: float = 5.0

    @property
    def base(self) -> str:
        """The address without a closing slash."""
        return self.url.rstrip("/")

    @property
    def shown(self) -> str:
        """The address as it may stand in a message."""
        return without_password(self.base)


def without_password(url: str) -> str:
    """``http://user:password@host`` → ``http://host``: addresses stand in messages, reports and ledgers."""
    return re.sub(r"//[^/@]*@", "//", url)
