"""Where programs come from, without compiling: the assets folder, the cache, and the reason when there is neither."""

from pathlib import Path

import pytest

from leadtime.testing.control_plane import go_module, programs
from leadtime.testing.control_plane.go_module import GoModule, NotInstallable


def module(folder: Path, **changes: str) -> GoModule:
    folder.mkdir(exist_ok=True)
    (folder / "go.mod").write_text("module x.test/small\n\ngo 1.26.0\n\nrequire example.test/original v1.2.3\n")
    (folder / "go.sum").write_text("")
    values = {"name": "small", "original": "example.test/original", "cold_minutes": "1"} | changes
    return GoModule(folder=folder, packages={"one": "example.test/original/cmd/one"}, **values)  # type: ignore[arg-type]


@pytest.fixture
def toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ``go`` that knows its version and fails at everything else, and an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    go = folder / "go"
    go.write_text('#!/bin/sh\n[ "$1" = version ] && echo go version go1.26.8 && exit 0\necho no network >&2\nexit 1\n')
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return folder


def test_the_version_is_the_one_go_mod_pins(tmp_path: Path) -> None:
    assert module(tmp_path / "m").version == "v1.2.3"
    assert {each.name: each.version for each in programs.MODULES}["kubernetes"] == "v1.37.2"


def test_a_version_that_is_not_pinned_is_a_mistake_of_ours(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"does not require example\.test/other"):
        _ = module(tmp_path / "m", original="example.test/other").version


def test_a_kept_program_is_found_without_go_running(tmp_path: Path, toolchain: Path) -> None:
    small = module(tmp_path / "m")
    digest = go_module._digest(small, "go version go1.26.8")
    kept = tmp_path / "cache" / "leadtime" / "go" / f"small-v1.2.3-{digest}" / "one"
    kept.parent.mkdir(parents=True)
    kept.write_text("")
    assert go_module.build(small) == {"one": kept}


def test_another_go_mod_is_another_program(tmp_path: Path) -> None:
    small = module(tmp_path / "m")
    before = go_module._digest(small, "go1")
    (small.folder / "go.sum").write_text("changed")
    assert go_module._digest(small, "go1") != before
    assert go_module._digest(small, "go2") != go_module._digest(small, "go1")


def test_a_failed_build_says_what_go_said_and_leaves_nothing_nor_what_a_killed_one_left(
    tmp_path: Path, toolchain: Path
) -> None:
    told: list[str] = []
    (go_module.cache_root() / "small-v1.2.2-00.1.tmp").mkdir(parents=True)
    with pytest.raises(NotInstallable, match="no network") as failed:
        go_module.build(module(tmp_path / "m"), report=told.append)
    assert failed.value.slug == "control-plane-build"
    assert told[0].startswith("building one v1.2.3: the first time takes 1 min")
    assert [path.name for path in go_module.cache_root().iterdir()] == ["building.lock"]


def test_without_go_and_without_assets_the_reason_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    with pytest.raises(NotInstallable, match=r"no `go` on the PATH .* KUBEBUILDER_ASSETS") as absent:
        programs.find(["etcd"])
    assert (absent.value.slug, absent.value.exit_code) == ("control-plane-absent", 3)


def test_the_assets_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert programs.find(["etcd", "kube-apiserver"]) == {name: tmp_path / name for name in ("etcd", "kube-apiserver")}
    with pytest.raises(NotInstallable):  # what the folder lacks would have to be built
        programs.find(["etcd", "kube-scheduler"])


def test_a_program_nobody_knows_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError, match="kubelet"):
        programs.find(["kubelet"])
