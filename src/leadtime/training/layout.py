"""A run's resolved settings → the workspace's ``config`` folder, all six parts of the workspace being there.

What is written holds neither times nor absolute paths: equal runs leave equal bytes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leadtime.training.manifest import disk_errors, write_json
from leadtime.training.workspace import PARTS, Track, Workspace


def lay_out(places: Workspace) -> None:
    """Make the six parts of the workspace where they are not there. Raises DependencyFailed: disk full, no right."""
    with disk_errors("making the workspace", places.root):
        for part in PARTS:
            places.part(part).mkdir(parents=True, exist_ok=True)


def keep_settings(places: Workspace, name: str, settings: Mapping[str, Any], track: Track | None = None) -> Path:
    """``settings`` → ``config/[<track>/]<name>.json`` of the workspace; returns the file. Raises as ``lay_out``."""
    lay_out(places)
    path = places.part("config", track) / f"{name}.json"
    with disk_errors("writing the settings", path):
        write_json(path, settings)
    return path
