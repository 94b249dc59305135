"""What ``leadtime replay`` does, once its options are read."""

from leadtime.cli.options import ReplayOptions


def run(options: ReplayOptions) -> None:
    """Run the command with ``options``."""
    raise NotImplementedError(options)
