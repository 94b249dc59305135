"""Where Kubernetes' own programs for the tests come from: small Go modules (one folder each) and their builder."""
