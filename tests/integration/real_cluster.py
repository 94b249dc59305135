"""A real control plane for the tests of one file: started once, or the reason why not."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from leadtime.testing.cluster import Cluster, NotInstallable, Options

REQUIRED = os.environ.get("LEADTIME_REQUIRE_GO") == "1" or os.environ.get("CI") == "true"
# The first build takes minutes and counts as the first test's time; others wait while one builds.
MARKS = [pytest.mark.go, pytest.mark.slow, pytest.mark.timeout(3000)]


def absent(reason: NotInstallable) -> NoReturn:
    """Skip with the reason; where the run requires Go, fail."""
    if REQUIRED:
        pytest.fail(f"this run requires Kubernetes' own programs: {reason}")
    pytest.skip(str(reason))


@contextmanager
def progress(request: pytest.FixtureRequest) -> Iterator[None]:
    """Inside it, output reaches the terminal at once: minutes of silence look like a hang."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        yield


def say(text: str) -> None:
    """A progress line."""
    print(f"programs: {text}", file=sys.stderr, flush=True)


@contextmanager
def started(request: pytest.FixtureRequest, folder: Path, options: Options | None = None) -> Iterator[Cluster]:
    """A running control plane with its data in ``folder``, closed at the end."""
    try:
        with progress(request):
            cluster = Cluster.start(folder, options, report=say)
    except NotInstallable as reason:
        absent(reason)
    with cluster:
        yield cluster
