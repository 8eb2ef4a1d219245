"""The embedded cluster of `vane demo`: an API server, a Prometheus, and nodes whose load follows the Pods on them."""
