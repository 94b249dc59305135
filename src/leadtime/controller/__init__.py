"""The schedule of ticks against a real cluster. Empty until that work."""
