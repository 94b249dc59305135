"""Every threshold, once: one schema with unit, bounds, default and the reason for the default."""

from leadtime.policy.schema import Policy

__all__ = ["Policy"]
