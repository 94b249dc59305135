"""Build the programs of the tests' control plane into the user's cache: scripts/build_control_plane.py [PROGRAM …]."""

import sys
import time

from leadtime.testing.control_plane.programs import MODULES, NotInstallable, find


def main() -> int:
    """All programs, or those named; paths on stdout, progress on stderr. Exit 3 where that is not possible here."""
    names = sys.argv[1:] or [name for module in MODULES for name in module.packages]
    began = time.monotonic()

    def report(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", file=sys.stderr, flush=True)

    try:
        found = find(names, report=report)
    except NotInstallable as absent:
        print(f"leadtime: {absent} [{absent.slug}]", file=sys.stderr)
        return absent.exit_code
    except KeyError as unknown:
        print(f"leadtime: {unknown.args[0]}", file=sys.stderr)
        return 2
    for name in names:
        print(found[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
