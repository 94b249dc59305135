"""The webhook process. Empty until that work."""
