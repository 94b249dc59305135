"""What ``leadtime demo`` does, once its options are read."""

from leadtime.cli.options import DemoOptions


def run(options: DemoOptions) -> None:
    """Run the command with ``options``."""
    raise NotImplementedError(options)
