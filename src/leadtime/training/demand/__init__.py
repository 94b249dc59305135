"""Histories of demand → a learned model of what comes next, and the folder from which the controller loads it."""
