"""Tokens, keys and kubeconfigs on disk."""

import json
import shutil
import ssl
from pathlib import Path

import pytest

from leadtime.testing.cluster import credentials
from leadtime.testing.cluster.credentials import User
from leadtime.testing.control_plane.go_module import NotInstallable

openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl on the PATH")


def test_each_user_has_a_token_of_its_own_and_the_file_is_ours_alone(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    made = credentials.tokens([User(name="a", groups=("g", "h")), User(name="b")], file)
    assert file.read_text() == f'{made["a"]},a,a,"g,h"\n{made["b"]},b,b,""\n'
    assert made["a"] != made["b"]
    assert file.stat().st_mode & 0o077 == 0


@openssl
def test_the_certificate_is_for_localhost_and_the_key_signs(tmp_path: Path) -> None:
    certificate, key = credentials.server_certificate(tmp_path)
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    (authority,) = ssl.create_default_context(cafile=str(certificate)).get_ca_certs()
    assert authority["subjectAltName"] == (("DNS", "localhost"), ("IP Address", "127.0.0.1"))
    assert credentials.signing_key(tmp_path).read_text().startswith("-----BEGIN PRIVATE KEY")
    assert (tmp_path / "sa.pub").read_text().startswith("-----BEGIN PUBLIC KEY")


def test_without_openssl_the_reason_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstallable, match="no `openssl` on the PATH"):
        credentials.signing_key(tmp_path)


def test_a_kubeconfig_names_server_authority_and_token(tmp_path: Path) -> None:
    file = credentials.kubeconfig(tmp_path / "k", url="https://127.0.0.1:1", authority=tmp_path / "ca", token="t")
    content = json.loads(file.read_text())
    assert content["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority": str(tmp_path / "ca"),
    }
    assert content["users"][0]["user"] == {"token": "t"}
