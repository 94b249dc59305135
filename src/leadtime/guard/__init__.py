"""Rules that judge one requested change: cap, rate, missing data, budget, expiry."""
