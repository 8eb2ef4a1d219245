"""HTTP: what Kubernetes, Prometheus and people ask of a running Vane."""
