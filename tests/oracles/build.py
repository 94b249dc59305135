"""Builds one of the oracles beside this file: a small Go module → a program in the user's cache, its path on stdout.

    python tests/oracles/build.py hpa

An oracle runs the original (a Kubernetes controller, from its published Go module) on cases read as JSON lines. The
program is a test binary (`go test -c`), because Go's virtual clock wants one. It is kept under
`$XDG_CACHE_HOME/leadtime/oracles` (`~/.cache/…`), named by the Kubernetes version and a hash of the module's files and
the Go version, so it is compiled once. The first time takes minutes: modules are downloaded, about 600 packages
compiled on all cores; progress goes to stderr. Exit 3: no Go toolchain here. Exit 1: the build failed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

NO_GO = 3
PROGRESS_EVERY_S = 10.0


def say(text: str) -> None:
    """A progress line."""
    print(f"oracle: {text}", file=sys.stderr, flush=True)


def cache_folder() -> Path:
    """Where the programs are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "leadtime" / "oracles"


def program_path(module: Path, go_version: str) -> Path:
    """The cached program's path. Any change in the module or the toolchain gives another."""
    digest = hashlib.sha256(go_version.encode())
    for file in sorted([*module.glob("*.go"), module / "go.mod", module / "go.sum"]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    found = re.search(r"k8s\.io/kubernetes (v\S+)", (module / "go.mod").read_text())
    version = found.group(1) if found else "v0"
    return cache_folder() / f"{module.name}-{version}-{digest.hexdigest()[:16]}.test"


class Compilation:
    """Counts the packages Go names while it compiles, and says so now and then."""

    def __init__(self, packages: int) -> None:
        self.packages, self.compiled, self.began, self.ended = packages, 0, time.monotonic(), threading.Event()

    def report(self) -> None:
        """Runs beside the compiler until ``ended``."""
        while not self.ended.wait(PROGRESS_EVERY_S):
            elapsed_s = time.monotonic() - self.began
            say(f"{self.compiled} packages compiled, of {self.packages} and the standard library, {elapsed_s:.0f} s")


def compile_dependencies(go: str, module: Path, env: dict[str, str]) -> None:
    """Compile everything the module imports, with progress. Raises CalledProcessError when Go fails."""
    listed = subprocess.run(
        [go, "list", "-deps", "-test", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "."],
        cwd=module, env=env, check=True, stdout=subprocess.PIPE, text=True,
    ).stdout.split("\n")  # fmt: skip
    own = re.search(r"^module (\S+)", (module / "go.mod").read_text(), re.MULTILINE)
    packages = [p for p in listed if p and own and own.group(1) not in p and " " not in p]
    compilation = Compilation(len(packages))
    reporter = threading.Thread(target=compilation.report, daemon=True)
    reporter.start()
    command = [go, "build", "-v", *packages]
    with subprocess.Popen(command, cwd=module, env=env, stderr=subprocess.PIPE, text=True) as compiler:
        lines: list[str] = []
        for line in compiler.stderr or ():
            lines.append(line)
            compilation.compiled += 1
    compilation.ended.set()
    reporter.join()
    if compiler.returncode:
        sys.stderr.writelines(lines[-20:])
        raise subprocess.CalledProcessError(compiler.returncode, command[:3])


def build(name: str) -> Path:
    """The path of oracle ``name``'s program, compiled if it is not in the cache.

    Raises FileNotFoundError without a Go toolchain, CalledProcessError when Go fails.
    """
    go = shutil.which("go")
    if go is None:
        raise FileNotFoundError("no `go` on the PATH; install Go 1.26 or newer to run the original controllers")
    module = Path(__file__).parent / name
    env = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    go_version = subprocess.run([go, "version"], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
    program = program_path(module, go_version)
    if program.exists():
        return program
    began = time.monotonic()
    say(f"building {name}: the first time takes 3 to 7 minutes on two cores (modules are downloaded, then compiled)")
    compile_dependencies(go, module, env)
    program.parent.mkdir(parents=True, exist_ok=True)
    unfinished = program.with_suffix(f".{os.getpid()}.tmp")
    subprocess.run([go, "test", "-c", "-o", str(unfinished), "."], cwd=module, env=env, check=True)
    unfinished.replace(program)  # at one stroke: whoever builds at the same time never sees half a program
    say(f"built {program.name} in {time.monotonic() - began:.0f} s")
    return program


def main() -> int:
    """Build the oracle named on the command line and print its path."""
    try:
        print(build(sys.argv[1]))
    except FileNotFoundError as missing:
        say(str(missing))
        return NO_GO
    except subprocess.CalledProcessError as failed:
        say(f"{failed}; see the lines above")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
