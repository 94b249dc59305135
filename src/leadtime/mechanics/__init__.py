"""How Kubernetes itself decides, as pure functions: HPA, scheduler, ReplicaSet, node autoscalers."""
