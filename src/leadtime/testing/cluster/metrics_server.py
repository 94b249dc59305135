"""Loads → the three metrics APIs of Kubernetes, served behind the API server's aggregator.

* ``metrics.k8s.io``: CPU of each running pod, as metrics-server has it.
* ``custom.metrics.k8s.io``: ``requests_per_second`` of each ready pod.
* ``external.metrics.k8s.io``: ``demand_rps`` of a workload, as a queue or a load balancer would tell it.

The real HPA controller asks through the API server, so it sees what our writes lead to. The server can be made to
answer wrongly (``answers``).
"""

import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from leadtime.testing.cluster import credentials
from leadtime.testing.cluster.api import Object
from leadtime.testing.cluster.cluster import Cluster
from leadtime.testing.cluster.load import Load, PodLoad, running_pods
from leadtime.testing.cluster.objects import condition

RESOURCE, CUSTOM, EXTERNAL = (
    "metrics.k8s.io/v1beta1",
    "custom.metrics.k8s.io/v1beta2",
    "external.metrics.k8s.io/v1beta1",
)
PER_POD, TOTAL = "requests_per_second", "demand_rps"
_AVAILABLE_WITHIN_S = 60.0


class Answers(StrEnum):
    """How the server answers: truly, with an error for each value, with no value at all, or with zeros."""

    TRULY = "truly"
    ERRORS = "errors"
    NOTHING = "nothing"
    ZEROS = "zeros"


@dataclass(slots=True, kw_only=True)
class MetricsServer:
    """A running metrics server. ``loads`` may be added to at any time; ``answers`` set.

    ``window_s``: over how long a value is said to be measured. ``now_s``: the Unix time demand is asked for.
    """

    cluster: Cluster
    loads: list[Load] = field(default_factory=list)
    answers: Answers = Answers.TRULY
    window_s: float = 1.0
    now_s: Callable[[], float] = time.time
    _server: ThreadingHTTPServer = field(init=False)

    def __post_init__(self) -> None:
        folder = self.cluster.folder / "metrics-server"
        folder.mkdir()
        certificate, key = credentials.server_certificate(folder)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        # The handshake in the connection's own thread: a client that says nothing must not hold up the others.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def port(self) -> int:
        """TCP port on 127.0.0.1."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Serve, register the three APIs and wait until the API server finds them available. Raises NotReached."""
        threading.Thread(target=self._server.serve_forever, name="metrics-server", daemon=True).start()
        api = self.cluster.api
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "leadtime-metrics", "namespace": "kube-system"},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": self.port}]},
        }
        api.create(service)
        for version in (RESOURCE, CUSTOM, EXTERNAL):
            registered = api.create(_registration(version, self.port))
            api.until_object(api.path_of(registered), _available, within_s=_AVAILABLE_WITHIN_S)

    def close(self) -> None:
        """Stop serving. The registrations stay: the API server then finds the APIs unavailable."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, query: Mapping[str, str]) -> tuple[int, Object]:
        """Status and body for one GET."""
        parts = path.strip("/").split("/")
        version = "/".join(parts[1:3])
        if parts[0] != "apis" or version not in {RESOURCE, CUSTOM, EXTERNAL}:
            return 404, _status(404, f"nothing is served at {path}")
        if len(parts) == 3:
            return 200, _discovery(version)
        if self.answers is Answers.ERRORS or len(parts) < 6:
            return 503, _status(503, "the metrics are not available (a test wants it so)")
        namespace, rest, wanted = parts[4], parts[5:], _labels(query.get("labelSelector", ""))
        if version == RESOURCE:
            return 200, _list("PodMetricsList", version, self._pod_metrics(namespace, wanted))
        if version == CUSTOM:
            items = self._per_pod(namespace, wanted) if rest[-1] == PER_POD else []
            return 200, _list("MetricValueList", version, items)
        items = self._totals(namespace, wanted) if rest[-1] == TOTAL else []
        return 200, _list("ExternalMetricValueList", version, items)

    def _pod_metrics(self, namespace: str, wanted: Mapping[str, str]) -> list[Object]:
        return [
            {
                "metadata": {"name": each.pod, "namespace": namespace},
                "timestamp": self._stamp(),
                "window": f"{self.window_s:g}s",
                "containers": [
                    {"name": name, "usage": {"cpu": f"{self._said(each.cpu_milli)}m", "memory": "1Gi"}}
                    for name in each.containers
                ],
            }
            for each in self._pods(namespace, wanted)
        ]

    def _per_pod(self, namespace: str, wanted: Mapping[str, str]) -> list[Object]:
        return [
            {
                "describedObject": {"kind": "Pod", "namespace": namespace, "name": each.pod, "apiVersion": "v1"},
                "metric": {"name": PER_POD},
                "timestamp": self._stamp(),
                "windowSeconds": round(self.window_s),
                "value": f"{self._said(round(1000 * each.served_rps))}m",
            }
            for each in self._pods(namespace, wanted)
            if each.ready
        ]

    def _totals(self, namespace: str, wanted: Mapping[str, str]) -> list[Object]:
        if self.answers is Answers.NOTHING:
            return []
        return [
            {
                "metricName": TOTAL,
                "metricLabels": dict(load.selector),
                "timestamp": self._stamp(),
                "value": f"{self._said(round(1000 * load.demand_rps(self.now_s())))}m",
            }
            for load in self._of(namespace, wanted)
        ]

    def _pods(self, namespace: str, wanted: Mapping[str, str]) -> list[PodLoad]:
        if self.answers is Answers.NOTHING:
            return []
        found: list[PodLoad] = []
        for load in self._of(namespace, wanted):
            selector = ",".join(f"{key}={value}" for key, value in load.selector.items())
            path = f"/api/v1/namespaces/{namespace}/pods"
            listed = self.cluster.api.items(path, labelSelector=selector, resourceVersion="0")
            found += running_pods(load, listed, self.now_s())
        return found

    def _of(self, namespace: str, wanted: Mapping[str, str]) -> list[Load]:
        """Loads of a namespace whose labels include the wanted ones."""
        return [each for each in self.loads if each.namespace == namespace and wanted.items() <= each.selector.items()]

    def _said(self, value: int) -> int:
        return 0 if self.answers is Answers.ZEROS else value

    def _stamp(self) -> str:
        return datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _handler(metrics: MetricsServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            status, body = metrics.answer(parts.path, query)
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
            """Nothing: each sync would be a line."""

    return Handler


def _registration(version: str, port: int) -> Object:
    group, number = version.split("/")
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{number}.{group}"},
        "spec": {
            "group": group,
            "version": number,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "insecureSkipTLSVerify": True,
            "service": {"name": "leadtime-metrics", "namespace": "kube-system", "port": port},
        },
    }


def _available(one: Object) -> bool:
    return condition(one, "Available").get("status") == "True"


def _discovery(version: str) -> Object:
    names = {RESOURCE: ("pods", "PodMetrics"), CUSTOM: (f"pods/{PER_POD}", "MetricValueList")}
    name, kind = names.get(version, (TOTAL, "ExternalMetricValueList"))
    resource = {"name": name, "singularName": "", "namespaced": True, "kind": kind, "verbs": ["get", "list"]}
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [resource]}


def _list(kind: str, version: str, items: Sequence[Object]) -> Object:
    return {"kind": kind, "apiVersion": version, "metadata": {}, "items": list(items)}


def _status(code: int, message: str) -> Object:
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}


def _labels(selector: str) -> dict[str, str]:
    """``a=b,c=d`` → a dict; other operators are not spoken here."""
    pairs = [part.split("=", 1) for part in selector.split(",") if "=" in part]
    return {key: value.lstrip("=") for key, value in pairs}
