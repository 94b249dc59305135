"""Snapshot + evidence → why it waits and what would settle it. Empty until the diagnosis work."""
