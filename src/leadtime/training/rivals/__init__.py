"""Other people's ways of forecasting demand, re-made as named baselines beside ours; they never serve.

What needs the extra ``bench`` says so and is left out of a table; the two peers' methods need nothing.
"""

from leadtime.training.rivals.field import rivals

__all__ = ["rivals"]
