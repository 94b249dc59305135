"""One file a command; wires the parts."""
