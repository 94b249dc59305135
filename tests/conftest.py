"""What a test may need from outside: data, Go, Chromium, Prometheus. Absent → skip with the reason; in CI → failure."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _absent(required_by: str, reason: str) -> None:
    """Skip, or fail where the run says that nothing may be missing."""
    if os.environ.get(required_by) or os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real series and dumps (LEADTIME_DATA_DIR, ../shared/data if unset)."""
    folder = Path(os.environ.get("LEADTIME_DATA_DIR", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        _absent("LEADTIME_REQUIRE_DATA", "real data not found: set LEADTIME_DATA_DIR to the folder that holds them")
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of Chromium (Debian's package)."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        _absent("LEADTIME_REQUIRE_BROWSER", "Chromium not found on PATH: the page cannot be looked at in a browser")
    return str(found)


@pytest.fixture(scope="session")
def prometheus() -> str:
    """Path of Prometheus (Debian's package, which brings promtool)."""
    found = shutil.which("prometheus")
    if found is None or shutil.which("promtool") is None:
        _absent(
            "LEADTIME_REQUIRE_PROMETHEUS",
            "no prometheus and promtool on PATH: no history can be asked of a real server",
        )
    return str(found)
