"""Offline learning. Empty until that work."""
