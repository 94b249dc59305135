"""Ledger → pages and JSON."""
