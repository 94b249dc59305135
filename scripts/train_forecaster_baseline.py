"""Thin door to ``leadtime borg train-baseline``: features → floors, logistic model, alerts, report.

All options are the command's own: --help lists them.
"""

import sys

try:
    from leadtime.cli import main
except ModuleNotFoundError as absent:
    sys.exit(f"leadtime: {absent.name} is not installed for this Python; install it with: pip install '.[train]'")

sys.argv[1:1] = ["borg", "train-baseline"]
main()
