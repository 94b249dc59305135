"""A folder with a small Go module → programs in the user's cache, compiled once.

The programs stand under ``$XDG_CACHE_HOME/leadtime/go`` (``~/.cache/…``), in a folder named by the module, the
version of the original and a hash of the module's files and the Go version: any change gives another folder. Where it
is built for the first time, modules are downloaded and hundreds of packages compiled, which takes minutes, so progress
is told. One build runs at a time on a machine: others wait for it, and then mostly find what they wanted.

Go's own variables are honoured: ``GOFLAGS=-p=1`` compiles one package at a time.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from leadtime.domain.errors import DependencyFailed

Report = Callable[[str], None]
PROGRESS_EVERY_S = 10.0
_LINES_OF_A_FAILURE = 20


class NotInstallable(DependencyFailed):
    """A program can neither be found nor built here. The reason is fit for a skipped test."""


def silent(_text: str) -> None:
    """Reports nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoModule:
    """One module and what is built from it.

    ``packages``: program's name → Go package. ``original``: the module path whose version names the cache folder.
    ``test_binary``: the one program is ``go test -c`` of the package (Go's virtual clock wants a test).
    ``cold_minutes``: how long the first build takes on two cores, told before it begins.
    """

    name: str
    folder: Path
    packages: Mapping[str, str]
    original: str
    cold_minutes: str
    ldflags: str = ""
    test_binary: bool = False

    @property
    def version(self) -> str:
        """Version of the original, as go.mod pins it."""
        found = re.search(rf"^\s*(?:require )?{re.escape(self.original)} (v\S+)", self._go_mod(), re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.name}: go.mod does not require {self.original}")
        return found.group(1)

    @property
    def path(self) -> str:
        """The module's own path."""
        found = re.search(r"^module (\S+)", self._go_mod(), re.MULTILINE)
        if found is None:
            raise ValueError(f"{self.name}: go.mod has no module line")
        return found.group(1)

    def _go_mod(self) -> str:
        return (self.folder / "go.mod").read_text(encoding="utf-8")


def cache_root() -> Path:
    """Where programs are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "leadtime" / "go"


def build(module: GoModule, wanted: Sequence[str] | None = None, *, report: Report = silent) -> dict[str, Path]:
    """Paths of the ``wanted`` programs (all when None), compiled where they are not in the cache.

    Raises NotInstallable without a Go toolchain, or when Go fails (no network, no room, a toolchain too old).
    """
    names = tuple(module.packages) if wanted is None else tuple(wanted)
    toolchain = _Toolchain.found()
    entry = cache_root() / f"{module.name}-{module.version}-{_digest(module, toolchain.version)}"
    programs = {name: entry / name for name in names}
    if all(path.exists() for path in programs.values()):
        return programs
    with _one_at_a_time(module.name, report):
        missing = [name for name, path in programs.items() if not path.exists()]
        if missing:
            _compile(module, missing, entry, toolchain, report)
    return programs


def module_folder(module: GoModule, dependency: str) -> Path:
    """Where Go's module cache keeps ``dependency`` at the version go.mod pins (downloaded if need be).

    Raises NotInstallable as ``build`` does.
    """
    toolchain = _Toolchain.found()
    listed = toolchain.run(module, ["mod", "download", "-json", dependency])
    found = re.search(r'"Dir": "([^"]+)"', listed)
    if found is None:
        raise ValueError(f"{module.name}: go mod download {dependency} names no folder: {listed[:300]}")
    return Path(found.group(1))


@dataclass(frozen=True, slots=True)
class _Toolchain:
    """The Go command and its version."""

    go: str
    version: str

    @classmethod
    def found(cls) -> "_Toolchain":
        go = shutil.which("go")
        if go is None:
            raise NotInstallable(
                "control-plane-absent",
                "looking for Kubernetes' own programs",
                "there is no `go` on the PATH to build them with",
                "install Go 1.26.5 or newer, or name a folder of programs in KUBEBUILDER_ASSETS",
            )
        version = subprocess.run([go, "version"], env=_environment(), check=True, stdout=subprocess.PIPE, text=True)
        return cls(go, version.stdout.strip())

    def run(self, module: GoModule, arguments: Sequence[str]) -> str:
        """What ``go ARGUMENTS`` prints, run inside the module. Raises NotInstallable when it fails."""
        done = subprocess.run(
            [self.go, *arguments], cwd=module.folder, env=_environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise _failed(module, done.stderr.splitlines())
        return done.stdout


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}


def _failed(module: GoModule, lines: Sequence[str]) -> NotInstallable:
    said = "\n".join(list(lines)[-_LINES_OF_A_FAILURE:])
    return NotInstallable(
        "control-plane-build",
        f"building {module.name} {module.version} from its Go module",
        f"Go failed:\n{said}\n",
        "look at Go's own words above; a first build needs the Go module proxy and about 6 GB of disk",
    )


def _digest(module: GoModule, go_version: str) -> str:
    digest = hashlib.sha256(f"{go_version}\0{module.ldflags}\0".encode())
    for file in sorted(each for each in module.folder.iterdir() if each.suffix in {".go", ".s", ".mod", ".sum"}):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _one_at_a_time(name: str, report: Report) -> Iterator[None]:
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    with (root / "building.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"{name}: another build is running on this machine, waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in root.glob("*.tmp"):  # by a build that was killed: nobody else builds now
            shutil.rmtree(left, ignore_errors=True)
        yield


@dataclass(slots=True)
class _Progress:
    """Counts the packages Go names while it compiles, and says so now and then."""

    report: Report
    packages: int
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LINES_OF_A_FAILURE))
    compiled: int = 0
    downloaded: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def take(self, line: str) -> None:
        """One line of the compiler's."""
        self.lines.append(line.rstrip())
        if line.startswith("go: downloading"):
            self.downloaded += 1
        else:
            self.compiled += 1

    def tell(self) -> None:
        """Runs beside the compiler until ``ended``."""
        began = time.monotonic()
        while not self.ended.wait(PROGRESS_EVERY_S):
            spent = f"{time.monotonic() - began:.0f} s"
            self.report(f"{self.compiled} packages compiled, at most {self.packages} and the standard library, {spent}")


def _compile(module: GoModule, names: Sequence[str], entry: Path, toolchain: _Toolchain, report: Report) -> None:
    began = time.monotonic()
    report(
        f"building {', '.join(names)} {module.version}: the first time takes {module.cold_minutes} min on two cores "
        "(modules are downloaded, then compiled)"
    )
    packages = [module.packages[name] for name in names]
    imported = _imported(module, packages, toolchain)
    unfinished = entry.with_name(f"{entry.name}.{os.getpid()}.tmp")
    unfinished.mkdir(parents=True, exist_ok=True)
    progress = _Progress(report, len(imported))
    try:
        if module.test_binary:
            _go_build(module, imported, toolchain, progress)
            (name,) = names
            report(f"linking {name}")
            toolchain.run(module, ["test", "-c", "-o", str(unfinished / name), *packages])
        else:
            _go_build(module, ["-o", f"{unfinished}/", *packages], toolchain, progress)
        entry.mkdir(exist_ok=True)
        for name in names:  # at one stroke each: whoever looks at the same time never sees half a program
            made = unfinished / (name if module.test_binary else _file_of(module, module.packages[name]))
            made.replace(entry / name)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    report(f"built {', '.join(names)} {module.version} in {time.monotonic() - began:.0f} s")


def _imported(module: GoModule, packages: Sequence[str], toolchain: _Toolchain) -> list[str]:
    """What the packages import, without the standard library and the module's own."""
    what = ["list", "-deps", *(["-test"] if module.test_binary else []), "-f"]
    listed = toolchain.run(module, [*what, "{{if not .Standard}}{{.ImportPath}}{{end}}", *packages]).split("\n")
    return [each for each in listed if each and module.path not in each and " " not in each]


def _file_of(module: GoModule, package: str) -> str:
    """The file ``go build`` writes for a package (``.`` = the module's own): its last part that is no major version."""
    package = module.path if package == "." else package
    return [part for part in package.split("/") if not re.fullmatch(r"v\d+", part)][-1]


def _go_build(module: GoModule, arguments: Sequence[str], toolchain: _Toolchain, progress: _Progress) -> None:
    teller = threading.Thread(target=progress.tell, daemon=True)
    teller.start()
    flags = ["-ldflags", module.ldflags] if module.ldflags else []
    command = [toolchain.go, "build", "-v", "-buildvcs=false", *flags, *arguments]
    environment = _environment()
    with subprocess.Popen(command, cwd=module.folder, env=environment, stderr=subprocess.PIPE, text=True) as compiler:
        for line in compiler.stderr or ():
            progress.take(line)
    progress.ended.set()
    teller.join()
    if compiler.returncode:
        raise _failed(module, list(progress.lines))
