"""What ``leadtime dashboard`` does, once its options are read."""

from leadtime.cli.options import DashboardOptions


def run(options: DashboardOptions) -> None:
    """Run the command with ``options``."""
    raise NotImplementedError(options)
