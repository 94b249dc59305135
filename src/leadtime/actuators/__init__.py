"""The only writes: shadow, capacity buffer, HPA floor; each reversible, each says how."""
