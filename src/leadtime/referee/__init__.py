"""Proposals + verdicts → at most one decision per scope, and a reason for every other."""
