"""A program's name → its path: from KUBEBUILDER_ASSETS, or built from its published Go module and kept.

``KUBEBUILDER_ASSETS`` (the convention of envtest: a folder of programs) comes first; what it lacks is built.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from leadtime.testing.control_plane.go_module import GoModule, NotInstallable, Report, build, module_folder, silent

__all__ = ["KARPENTER", "KUBERNETES", "KWOK", "MODULES", "NotInstallable", "find", "original_folder"]

_HERE = Path(__file__).parent
_VERSION: Final = "k8s.io/component-base/version"

# Symbols stripped (a third of the size); the version set, or clients that ask for it see v0.0.0.
_KUBERNETES_FLAGS = f"-s -w -X {_VERSION}.gitVersion=v1.37.2 -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=37"

KUBERNETES = GoModule(
    name="kubernetes",
    folder=_HERE / "kubernetes",
    packages={
        "etcd": "go.etcd.io/etcd/server/v3",
        "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
        "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    },
    original="k8s.io/kubernetes",
    cold_minutes="5 to 12",
    ldflags=_KUBERNETES_FLAGS,
)
KWOK = GoModule(
    name="kwok",
    folder=_HERE / "kwok",
    packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    original="sigs.k8s.io/kwok",
    cold_minutes="1 to 3",
    ldflags="-s -w",
)
KARPENTER = GoModule(
    name="karpenter",
    folder=_HERE / "karpenter",
    packages={"karpenter-kwok": "sigs.k8s.io/karpenter/kwok"},
    original="sigs.k8s.io/karpenter",
    cold_minutes="2 to 4",
    ldflags="-s -w",
)
MODULES = (KUBERNETES, KWOK, KARPENTER)


def find(names: Sequence[str], *, report: Report = silent) -> dict[str, Path]:
    """Paths of these programs: ``etcd``, ``kube-apiserver``, ``kube-controller-manager``, ``kube-scheduler``, ….

    ``report`` is told, one line each, what a build does. Raises NotInstallable with the reason where a program is
    neither in KUBEBUILDER_ASSETS nor to be built here, KeyError for a name nobody knows.
    """
    found = {name: path for name in names if (path := _among_assets(name)) is not None}
    by_module: dict[str, list[str]] = {}
    for name in names:
        if name not in found:
            by_module.setdefault(_module_of(name).name, []).append(name)
    for module in MODULES:
        if module.name in by_module:
            found |= build(module, by_module[module.name], report=report)
    return found


def original_folder(module: GoModule) -> Path:
    """The original's source in Go's module cache (CRDs and KWOK's stages are read there, nothing is copied).

    Raises NotInstallable without Go.
    """
    return module_folder(module, module.original)


def _module_of(name: str) -> GoModule:
    for module in MODULES:
        if name in module.packages:
            return module
    raise KeyError(f"no Go module here builds {name}")


def _among_assets(name: str) -> Path | None:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder:
        return None
    path = Path(folder) / name
    return path if os.access(path, os.X_OK) else None
