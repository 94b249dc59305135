"""Canonical frames (domain/borg.py) → shards as the real traces write them, one module a family of dialects.

``shards.write_shard`` writes one table, ``slices.write_slice`` the joined CSV. Same frame, same bytes.
"""
