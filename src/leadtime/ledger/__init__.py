"""Append and read ticks. SQLite by default."""
