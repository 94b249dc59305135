"""A folder → a real control plane on 127.0.0.1: etcd, kube-apiserver, kube-controller-manager, kube-scheduler."""

import itertools
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import httpx2

from leadtime.testing.cluster import commands, credentials
from leadtime.testing.cluster.api import Api, ApiError
from leadtime.testing.cluster.audit import POLICY, AuditLog
from leadtime.testing.cluster.commands import HpaTiming, Ports
from leadtime.testing.cluster.credentials import ADMIN, BUILT_IN, CONTROLLER_MANAGER, SCHEDULER, User
from leadtime.testing.cluster.part import Part, free_port, http_ready
from leadtime.testing.control_plane.go_module import Report, silent
from leadtime.testing.control_plane.programs import find

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a control plane is started.

    ``users``: more users than ``admin``; each has a token (``Cluster.as_user``). ``flags``: further flags by program,
    after ours, so that they win. ``node_lifecycle``: the controller that taints nodes whose lease ends; off unless
    something (KWOK) renews leases.
    """

    timing: HpaTiming = field(default_factory=HpaTiming)
    users: tuple[User, ...] = ()
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    node_lifecycle: bool = False


@dataclass(slots=True, kw_only=True)
class Cluster:
    """A running control plane. Use as a context, or call ``close``. ``folder`` holds logs, keys and etcd's data."""

    folder: Path
    url: str
    authority: Path
    api: Api
    audit: AuditLog
    etcd: Part
    api_server: Part
    controller_manager: Part
    scheduler: Part
    added: list[Part] = field(default_factory=list)
    _tokens: Mapping[str, str] = field(default_factory=dict)
    _names: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    _more_users: list[Api] = field(default_factory=list)

    @classmethod
    def start(cls, folder: Path, options: Options | None = None, *, report: Report = silent) -> "Cluster":
        """Find or build the programs, start them and wait until each is ready (15 s on two cores once built).

        ``folder``: empty or absent, made. ``report``: told what a build does, one line at a time. Raises NotInstallable
        where a program cannot be had, PartFailed where one does not start.
        """
        chosen = options or Options()
        programs = find(PROGRAMS, report=report)
        folder.mkdir(parents=True, exist_ok=True)
        cluster = _assembled(folder, chosen, programs)
        try:
            cluster.etcd.start()
            cluster.api_server.start()
            cluster.controller_manager.launch()
            cluster.scheduler.launch()
            cluster.controller_manager.await_ready()
            cluster.scheduler.await_ready()
        except BaseException:
            cluster.close()
            raise
        return cluster

    @property
    def parts(self) -> tuple[Part, ...]:
        """Every program, in the order of their start."""
        return (self.etcd, self.api_server, self.controller_manager, self.scheduler, *self.added)

    def add(self, part: Part) -> Part:
        """Start one more program that ends with the cluster."""
        self.added.append(part)
        part.start()
        return part

    def as_user(self, name: str) -> Api:
        """The API as the user ``name`` of ``Options.users``. Raises KeyError for a name without a token."""
        return self.with_token(self._tokens[name])

    def with_token(self, token: str) -> Api:
        """The API with any token, such as a service account's."""
        one = Api(url=self.url, token=token, trust=self.api.trust)
        self._more_users.append(one)
        return one

    def kubeconfig(self, name: str, token: str | None = None) -> Path:
        """A kubeconfig for the user ``name`` (or for ``token``, the file then named by ``name``)."""
        file = self.folder / f"{name.replace(':', '-')}.kubeconfig"
        given = self._tokens[name] if token is None else token
        return credentials.kubeconfig(file, url=self.url, authority=self.authority, token=given)

    @contextmanager
    def namespace(self, prefix: str = "test") -> Iterator[str]:
        """A namespace of one's own: its name. Deleted at the end (not waited for). Nodes belong to no namespace."""
        name = f"{prefix}-{next(self._names)}"
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        try:
            yield name
        finally:
            with suppress(ApiError, httpx2.TransportError):  # the test may have killed the server
                self.api.delete(f"/api/v1/namespaces/{name}")

    def close(self) -> None:
        """Kill every program, the last started first. What they wrote stays in ``folder``."""
        for part in reversed(self.parts):
            part.kill()
        for api in (self.api, *self._more_users):
            api.close()

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _assembled(folder: Path, options: Options, programs: Mapping[str, Path]) -> Cluster:
    """Keys, tokens, configuration on disk; the parts, none of them started."""
    ports = Ports(**{name: free_port() for name in Ports.__dataclass_fields__})
    url = f"https://127.0.0.1:{ports.api_server}"
    credentials.signing_key(folder)
    certificate, key = credentials.server_certificate(folder)
    tokens = credentials.tokens((*BUILT_IN, *options.users), folder / "tokens.csv")
    for user, name in ((CONTROLLER_MANAGER, "controller-manager"), (SCHEDULER, "scheduler"), (ADMIN, ADMIN)):
        file = folder / f"{name}.kubeconfig"
        credentials.kubeconfig(file, url=url, authority=certificate, token=tokens[user])
    (folder / "audit-policy.json").write_text(json.dumps(POLICY), encoding="utf-8")
    served = (f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}")
    own = _commands(folder, options, programs, ports, served)
    ready = {
        "etcd": http_ready(f"http://127.0.0.1:{ports.etcd}/readyz"),
        "kube-apiserver": http_ready(f"{url}/readyz", token=tokens[ADMIN]),
        "kube-controller-manager": http_ready(f"https://127.0.0.1:{ports.controller_manager}/healthz"),
        "kube-scheduler": http_ready(f"https://127.0.0.1:{ports.scheduler}/readyz"),
    }
    parts = [
        Part(name=name, command=(*command, *options.flags.get(name, ())), log=folder / f"{name}.log", ready=ready[name])
        for name, command in own.items()
    ]
    return Cluster(
        folder=folder, url=url, authority=certificate,
        api=Api(url=url, token=tokens[ADMIN], trust=ssl.create_default_context(cafile=str(certificate))),
        audit=AuditLog(path=folder / "audit.log"), etcd=parts[0], api_server=parts[1], controller_manager=parts[2],
        scheduler=parts[3], _tokens=tokens,
    )  # fmt: skip


def _commands(
    folder: Path, options: Options, programs: Mapping[str, Path], ports: Ports, served: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """Each part's command line, in the order they are started; ``served``: the API server's certificate."""
    lifecycle = () if options.node_lifecycle else ("--controllers=*,-node-lifecycle-controller",)
    manager = commands.controller_manager(programs["kube-controller-manager"], folder, ports, options.timing)
    return {
        "etcd": commands.etcd(programs["etcd"], folder, ports),
        "kube-apiserver": (*commands.api_server(programs["kube-apiserver"], folder, ports), *served),
        "kube-controller-manager": (*manager, *lifecycle),
        "kube-scheduler": commands.scheduler(programs["kube-scheduler"], folder, ports),
    }
