"""The only reads: recorded series now, Prometheus and Kubernetes later. Know domain and policy, no logic."""
