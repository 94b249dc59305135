"""Offline learning: raw shards → windows → features → a published failure model, with reports one can compare."""
