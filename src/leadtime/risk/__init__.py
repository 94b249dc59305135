"""Usage windows → failure probability. Filled by the failure-forecaster work; empty until then."""
