"""Fetch the page's scripts (htmx, uPlot) from npm at build time and put them into the wheel.

Pinned by package-lock.json; nothing is downloaded when the page runs. Without npm the build says so and goes on:
the page then draws its charts on the server as SVG.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ASSETS = {
    "htmx.org/dist/htmx.min.js": "htmx.min.js",
    "uplot/dist/uPlot.iife.min.js": "uPlot.iife.min.js",
    "uplot/dist/uPlot.min.css": "uPlot.min.css",
}
VENDOR = "src/leadtime/dashboard/static/vendor"


def fetch(root: Path) -> list[Path]:
    """Install the locked packages below ``root`` and copy the three files; returns what was written."""
    npm = shutil.which("npm")
    if npm is None or not (root / "package-lock.json").exists():
        return []
    done = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(f"leadtime build: npm ci failed, the page will draw on the server: {done.stderr[-400:]}", file=sys.stderr)
        return []
    target = root / VENDOR
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for source, name in ASSETS.items():
        shutil.copyfile(root / "node_modules" / source, target / name)
        written.append(target / name)
    return written


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before a wheel or an editable install is built."""

    def initialize(self, version: str, build_data: dict[str, list[str]]) -> None:
        """Put the assets in place and tell hatchling to ship them although git ignores them."""
        written = fetch(Path(self.root))
        if not written and version != "editable":
            print("leadtime build: npm not found, the page will draw its charts on the server", file=sys.stderr)
        build_data["artifacts"].append(f"/{VENDOR}/*")
