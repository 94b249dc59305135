"""Who may speak to the API server: a token for each user, a key for service accounts, a kubeconfig for each program.

Keys and certificates are made by ``openssl`` anew for each cluster; nothing of it is worth anything outside 127.0.0.1.
"""

import json
import secrets
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from leadtime.testing.control_plane.go_module import NotInstallable

ADMIN = "admin"
CONTROLLER_MANAGER = "system:kube-controller-manager"
SCHEDULER = "system:kube-scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Somebody with a token. Without groups they may do nothing until a Role says so."""

    name: str
    groups: tuple[str, ...] = ()


BUILT_IN = (User(name=ADMIN, groups=("system:masters",)), User(name=CONTROLLER_MANAGER), User(name=SCHEDULER))


def tokens(users: Iterable[User], file: Path) -> dict[str, str]:
    """Write the API server's token file; the token of each user by name."""
    made = {user.name: secrets.token_hex(16) for user in users}
    lines = [f'{made[user.name]},{user.name},{user.name},"{",".join(user.groups)}"' for user in users]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    file.chmod(0o600)
    return made


def signing_key(folder: Path) -> Path:
    """A key for the tokens of service accounts (sa.key, public half in sa.pub). Raises NotInstallable."""
    key, public = folder / "sa.key", folder / "sa.pub"
    _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key))
    _openssl("pkey", "-in", str(key), "-pubout", "-out", str(public))
    return key


def server_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for localhost and 127.0.0.1, and its key. Raises NotInstallable."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    _openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        "-keyout", str(key), "-out", str(certificate),
    )  # fmt: skip
    return certificate, key


def kubeconfig(file: Path, *, url: str, authority: Path, token: str) -> Path:
    """A kubeconfig (JSON is YAML) for one token."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "current-context": "test",
    }
    file.write_text(json.dumps(content, indent=1), encoding="utf-8")
    file.chmod(0o600)
    return file


def _openssl(*arguments: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise NotInstallable(
            "control-plane-absent",
            "making keys for a cluster",
            "there is no `openssl` on the PATH",
            "install it (Debian: apt-get install openssl)",
        )
    subprocess.run([program, *arguments], check=True, capture_output=True)
