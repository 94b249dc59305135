"""One tick as one function: (as_of, ports, policy, LoopState) → (Tick, LoopState)."""
