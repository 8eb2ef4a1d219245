"""Proxies that break what passes: `tcp` connections, `http` requests, answers and watches."""
