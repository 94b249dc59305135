"""Thin door to ``leadtime borg make-forecaster-dataset``: joined windows → labels and features.

All options are the command's own: --help lists them.
"""

import sys

try:
    from leadtime.cli import main
except ModuleNotFoundError as absent:
    sys.exit(f"leadtime: {absent.name} is not installed for this Python; install it with: pip install '.[train]'")

sys.argv[1:1] = ["borg", "make-forecaster-dataset"]
main()
