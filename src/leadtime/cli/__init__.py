"""One file a command; wires the parts. ``main`` turns every mistake into one line and an exit code."""

from leadtime.cli.stop import main

__all__ = ["main"]
