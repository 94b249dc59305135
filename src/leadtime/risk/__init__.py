"""Usage windows → failure probability: joins, labels, features, leak checks, measures. LazyFrame in, LazyFrame out.

Pure: no disk, no clock, no network. Needs the extra ``train`` (polars).
"""
