"""A signal (CPU, latency, request rate, …) → the PromQL that reads it from the exporters people run, by workload.

Every query gives one series per (namespace, workload) and replica of the measuring system; of copies of one scrape (two
jobs that scrape the same pod) one is taken before anything is summed. The templates themselves stand in
metric_templates_data.py; importing it checks each of them with the parser.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from leadtime.domain.series import Unit
from leadtime.sources.promql_check import CheckedQuery, check_query

# Characters of generated names: k8s.io/apimachinery util/rand, alphanums (no vowels, no 0, 1, 3).
_SAFE = "[b-df-hj-np-tv-xz24-9]"
POD_OF = {
    "Deployment": f"(.+)-{_SAFE}{{6,10}}-{_SAFE}{{5}}",
    "ReplicaSet": f"(.+)-{_SAFE}{{5}}",
    "DaemonSet": f"(.+)-{_SAFE}{{5}}",
    "StatefulSet": "(.+)-[0-9]+",
}
COPIES = ("job", "endpoint", "service", "prometheus")
REPLICAS = ("prometheus_replica", "replica")
MOST_NAMESPACES = 50  # named in one query; more are asked for without naming any


class Signal(StrEnum):
    """What is measured of a workload."""

    REQUEST_RATE = "request-rate"
    TOKEN_RATE = "token-rate"
    LATENCY = "latency"
    CPU = "cpu"
    MEMORY = "memory"
    GPU_UTILISATION = "gpu-utilisation"
    GPU_MEMORY = "gpu-memory"
    QUEUE_WAITING = "queue-waiting"
    QUEUE_RUNNING = "queue-running"
    QUEUE_TIME = "queue-time"
    CACHE_USED = "cache-used"
    REPLICAS_READY = "replicas-ready"
    REPLICAS_WANTED = "replicas-wanted"
    GPUS_WANTED = "gpus-wanted"
    RESTARTS = "restarts"


class Kind(StrEnum):
    """How a metric is read. A counter's resets are rate()'s business; a gauge is its mean over the range."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"  # of classic buckets; the 0.95 quantile
    MEAN = "mean"  # of two counters, where there is no histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One way to read a signal.

    ``metric``: its name (a histogram's without _bucket); ``per``: what a mean is divided by. ``matchers``: more of
    them. ``workload``: the label that names the workload; where it is a pod's, the workload is found in the pod's name.
    ``across``: how its series become one. ``factor``: to ``unit``.
    """

    name: str
    signal: Signal
    exporter: str
    metric: str
    kind: Kind
    unit: Unit
    why: str
    matchers: str = ""
    workload: str = "pod"
    namespace: str = "namespace"
    across: str = "sum"
    factor: float = 1.0
    per: str = ""
    workload_kind: str | None = None

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the series it needs."""
        if self.kind is Kind.HISTOGRAM:
            return (f"{self.metric}_bucket",)
        return (self.metric, self.per) if self.per else (self.metric,)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels it needs on them."""
        return (self.namespace, self.workload)

    def query(
        self, *, range_s: int = 60, namespaces: Sequence[str] = (), kind: str = "Deployment", only: str = ""
    ) -> CheckedQuery:
        """The query for all workloads of ``kind`` in ``namespaces`` (none named: all), over (t - range_s, t].

        ``only``: further matchers, as ``cluster="a"`` where a server holds several clusters (else they are summed).

        Raises BadQuery only for a template that is wrong.
        """
        text = self._combined(f"{{{self._of(namespaces, only)}}}[{range_s}s]", kind)
        return check_query(text, of=f"template {self.name}")

    def resets_query(
        self, *, range_s: int = 60, namespaces: Sequence[str] = (), kind: str = "Deployment", only: str = ""
    ) -> CheckedQuery | None:
        """How often a counter began anew by workload; None where nothing counts.

        It looks at (t - 2 range_s, t]: the sample before the new beginning must be in it.
        """
        if self.kind is not Kind.COUNTER:
            return None
        each = f"resets({self.metric}{{{self._of(namespaces, only)}}}[{2 * range_s}s])"
        return check_query(self._by(f"max without ({','.join(COPIES)}) ({each})", kind), of=f"template {self.name}")

    def _of(self, namespaces: Sequence[str], only: str) -> str:
        """Matchers: the workload's label must be there."""
        wanted = [f'{self.workload}!=""', *(each for each in (self.matchers, only) if each)]
        if 0 < len(namespaces) <= MOST_NAMESPACES:
            named = "|".join(sorted(name.replace(".", "\\\\.") for name in namespaces))
            wanted.append(f'{self.namespace}=~"{named}"')
        return ",".join(wanted)

    def _combined(self, within: str, kind: str) -> str:
        copies = f"max without ({','.join(COPIES)})"
        scale = f" * {self.factor:.12g}" if self.factor != 1.0 else ""
        if self.kind is Kind.GAUGE:
            return self._by(f"{copies} (avg_over_time({self.metric}{within}))", kind) + scale

        def rate(metric: str) -> str:
            return f"{copies} (rate({metric}{within}))"

        if self.kind is Kind.COUNTER:
            return self._by(rate(self.metric), kind) + scale
        if self.kind is Kind.MEAN:
            return f"{self._by(rate(self.metric), kind)} / {self._by(rate(self.per), kind)}{scale}"
        return f"histogram_quantile(0.95, {self._by(rate(self.metrics[0]), kind, 'le')}){scale}"

    def _by(self, each: str, kind: str, *more: str) -> str:
        """``each`` by namespace and workload."""
        if self.namespace != "namespace":
            each = f'label_replace({each}, "namespace", "$1", "{self.namespace}", "(.+)")'
        named = POD_OF.get(kind, POD_OF["Deployment"]) if self.workload.endswith("pod") else "(.+)"
        each = f'label_replace({each}, "workload", "$1", "{self.workload}", "{named}")'
        return f"{self.across} by ({','.join(('namespace', 'workload', *REPLICAS, *more))}) ({each})"


def range_for(sample_interval_s: float, step_s: int = 60) -> int:
    """The range of a rate in s for samples so far apart: two and a half intervals, at least the step.

    Two samples are in it even when one comes late:  15 s -> 60, 30 s -> 75, 60 s -> 150, 120 s -> 300
    """
    return max(step_s, round(2.5 * sample_interval_s))
