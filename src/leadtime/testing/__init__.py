"""Shipped builders, fake clock, fake sources, scenario runner."""
