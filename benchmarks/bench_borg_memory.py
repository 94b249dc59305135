"""Peak memory and rate of ``leadtime borg make-dataset``, and of the features, on generated traces of several sizes.

    python benchmarks/bench_borg_memory.py [--rows 20000000 60000000] [--features advanced] [--folder DIR] [--json]

For each size: a trace is generated (in another process, not measured), then the command runs in a fresh process, with
``--features`` followed by ``make-forecaster-dataset`` in that profile in another, and the
resident memory of its whole process tree is read from /proc every 20 ms; the peak of the sum is reported, pages that
processes share counted in each. Everything the commands do is measured: hashing, splitting, joining, writing, gates.
Needs about 250 bytes of disk a row (60 M rows: 15 GB), twice that with advanced features; given back. Linux only.

Wanted: at most 2 GB, and the same within 20 % at 20 M and 60 M rows.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_BYTES = 2_000_000_000
SPREAD = 1.2
POLL_S = 0.02
PAGE = os.sysconf("SC_PAGE_SIZE")
GENERATE = """
import sys
from pathlib import Path
from leadtime.domain.borg import Dialect
from leadtime.simulate.borg.generate import generate
from leadtime.simulate.borg.knobs import Knobs
generate(Path(sys.argv[1]), Knobs(rows=int(sys.argv[2]), dialects=(Dialect(sys.argv[3]),), cell="c", seed=5))
"""
COMMAND = "from leadtime.cli.stop import main; main()"


def tree_bytes(root: int) -> int:
    """Resident memory of a process and all that descend from it."""
    parents: dict[int, int] = {}
    resident: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            resident[int(entry.name)] = int((entry / "statm").read_text().split()[1]) * PAGE
        except (OSError, IndexError):
            continue  # it has ended meanwhile
        parents[int(entry.name)] = int(after_name[1])
    members = {root}
    while grown := {pid for pid, parent in parents.items() if parent in members} - members:
        members |= grown
    return sum(resident.get(pid, 0) for pid in members)


def measured(arguments: list[str], environment: dict[str, str]) -> tuple[int, float]:
    """Peak bytes of the process tree of a command, and its seconds; stops the benchmark where the command fails."""
    begun = time.perf_counter()
    peak = 0
    with subprocess.Popen([sys.executable, "-c", COMMAND, *arguments], env=environment) as process:
        while process.poll() is None:
            peak = max(peak, tree_bytes(process.pid))
            time.sleep(POLL_S)
    if process.returncode not in {0, 1}:  # 1: a gate failed, everything was written
        sys.exit(f"{' '.join(arguments)} ended with {process.returncode}")
    return peak, time.perf_counter() - begun


def told(step: str, rows: int, peak: int, seconds: float) -> dict[str, float]:
    return {f"{step}_peak_bytes": peak, f"{step}_seconds": seconds, f"{step}_rows_per_s": rows / seconds}


def one(rows: int, options: argparse.Namespace) -> dict[str, float]:
    if options.folder is not None:
        Path(options.folder).mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-borg-memory-", dir=options.folder))
    try:
        generator = [sys.executable, "-c", GENERATE, str(folder / "raw"), str(rows), options.dialect]
        subprocess.run(generator, check=True)
        arguments = ["borg", "make-dataset", "--in", str(folder / "raw"), "--out", str(folder / "windows"),
                     "--executor", options.executor, "--workers", str(options.workers)]  # fmt: skip
        environment = {**os.environ, "POLARS_MAX_THREADS": os.environ.get("POLARS_MAX_THREADS", "2")}
        joined = measured(arguments, environment)
        manifest = json.loads((folder / "windows" / "dataset.json").read_text())
        parts = manifest["partitions"]["c"]
        case = {"rows": manifest["rows"], "partitions": len(parts), "largest_partition": max(p["rows"] for p in parts),
                **told("make_dataset", manifest["rows"], *joined)}  # fmt: skip
        if options.features is not None:
            arguments = ["borg", "make-forecaster-dataset", "--in", str(folder / "windows"), "--out",
                         str(folder / "features"), "--feature-profile", options.features,
                         *(f"--allow={gate['name']}" for gate in manifest["gates"] if gate["standing"] == "failed"),
                         "--executor", options.executor, "--workers", str(options.workers)]  # fmt: skip
            case |= told("features", manifest["rows"], *measured(arguments, environment))
        return case
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000_000, 60_000_000])
    parser.add_argument("--dialect", default="parquet")
    parser.add_argument("--features", default=None, choices=["baseline", "advanced"], help="measure this profile too")
    parser.add_argument("--executor", default="local", choices=["local", "processes"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None, help="where the traces are written; the temporary folder")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = [one(rows, options) for rows in options.rows]
    if options.json:
        print(json.dumps(found))
        return
    for step in ("make_dataset", *(["features"] if options.features else [])):
        for case in found:
            print(f"{step}, {case['rows']:>12,} rows, {case['partitions']} partitions: peak "
                  f"{case[f'{step}_peak_bytes'] / 1e9:.2f} GB, {case[f'{step}_seconds']:.0f} s, "
                  f"{case[f'{step}_rows_per_s'] / 1e6:.3f} M rows/s")  # fmt: skip
        peaks = [case[f"{step}_peak_bytes"] for case in found]
        print(f"{step}: highest peak {max(peaks) / 1e9:.2f} GB (at most {LIMIT_BYTES / 1e9:.0f} wanted); "
              f"largest over smallest {max(peaks) / min(peaks):.2f} (at most {SPREAD} wanted)")  # fmt: skip


if __name__ == "__main__":
    main()
