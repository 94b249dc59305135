"""Usage windows → what was known at their end, as numbers: one declaration a feature, bulk and live alike."""

from leadtime.risk.features.context import Context, context_from, empty_context
from leadtime.risk.features.declare import BESIDE, KEY, OUTCOME, Feature, Profile
from leadtime.risk.features.frame import (
    FEATURES,
    FRESH_US,
    HISTORY_US,
    HISTORY_WINDOWS,
    feature_frame,
    features_of,
    live_rows,
)

__all__ = [
    "BESIDE",
    "FEATURES",
    "FRESH_US",
    "HISTORY_US",
    "HISTORY_WINDOWS",
    "KEY",
    "OUTCOME",
    "Context",
    "Feature",
    "Profile",
    "context_from",
    "empty_context",
    "feature_frame",
    "features_of",
    "live_rows",
]
