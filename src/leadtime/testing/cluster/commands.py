"""Ports, files and options → the command line of each program of the control plane."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaTiming:
    """The HPA controller's flags, in whole seconds. The defaults are Kubernetes' own but for the sync period.

    To compress time, divide all of them by one factor; what the HPA object's ``behavior`` says is divided by whoever
    writes it.
    """

    sync_period_s: int = 1
    downscale_stabilisation_s: int = 300
    cpu_initialisation_s: int = 300
    initial_readiness_delay_s: int = 30

    def flags(self) -> tuple[str, ...]:
        """As kube-controller-manager takes them."""
        name = "--horizontal-pod-autoscaler"
        return (
            f"{name}-sync-period={self.sync_period_s}s",
            f"{name}-downscale-stabilization={self.downscale_stabilisation_s}s",
            f"{name}-cpu-initialization-period={self.cpu_initialisation_s}s",
            f"{name}-initial-readiness-delay={self.initial_readiness_delay_s}s",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """One TCP port of 127.0.0.1 each."""

    etcd: int
    etcd_peer: int
    api_server: int
    controller_manager: int
    scheduler: int


def etcd(program: Path, folder: Path, ports: Ports) -> tuple[str, ...]:
    """A member of one. Without fsync: what a test writes need not outlive the machine (it outlives SIGKILL)."""
    client, peer = f"http://127.0.0.1:{ports.etcd}", f"http://127.0.0.1:{ports.etcd_peer}"
    return (
        str(program),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )


def api_server(program: Path, folder: Path, ports: Ports) -> tuple[str, ...]:
    """Tokens from tokens.csv, Roles honoured, every write in audit.log before it is answered.

    ServiceAccount admission is off: no pod of a test mounts a token, and pods need not wait for the account.
    """
    return (
        str(program),
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--secure-port={ports.api_server}",
        f"--cert-dir={folder}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'sa.pub'}",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        "--authorization-mode=RBAC,Node",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--disable-admission-plugins=ServiceAccount",
        f"--audit-policy-file={folder / 'audit-policy.json'}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--audit-log-mode=blocking",
    )


def controller_manager(program: Path, folder: Path, ports: Ports, timing: HpaTiming) -> tuple[str, ...]:
    """Each controller under its own service account, so that the audit log tells the HPA from the Deployment's."""
    return (
        str(program),
        f"--kubeconfig={folder / 'controller-manager.kubeconfig'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.controller_manager}",
        "--leader-elect=false",
        "--use-service-account-credentials",
        *timing.flags(),
    )


def scheduler(program: Path, folder: Path, ports: Ports) -> tuple[str, ...]:
    """The default profile."""
    return (
        str(program),
        f"--kubeconfig={folder / 'scheduler.kubeconfig'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.scheduler}",
        "--leader-elect=false",
    )
