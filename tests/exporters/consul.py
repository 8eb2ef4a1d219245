"""Consul's HTTP API as consul_exporter asks it: the nodes, services and checks of one datacenter."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Services = Mapping[str, Mapping[str, bool]]
"""Node of Consul -> service -> whether it passes its check."""


class ConsulApi:
    """Serves on a free loopback port; `nodes` are the states of the nodes' own checks."""

    def __init__(self, nodes: Mapping[str, str], services: Services) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.pages = _pages(nodes, services)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="consul", daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _pages(nodes: Mapping[str, str], services: Services) -> dict[str, Any]:
    names = sorted({service for of_node in services.values() for service in of_node})
    checks = [_check(node, state) for node, state in nodes.items()]
    checks += [
        _check(node, "passing" if passes else "critical", service)
        for node, of_node in services.items()
        for service, passes in of_node.items()
    ]
    tags = {"build": "1.21.0:0", "role": "node"}
    pages: dict[str, Any] = {
        "/v1/status/peers": ["127.0.0.1:8300"],
        "/v1/status/leader": "127.0.0.1:8300",
        "/v1/catalog/nodes": [{"Node": node, "Address": "10.0.0.1", "Datacenter": "dc1"} for node in nodes],
        "/v1/agent/members": [{"Name": node, "Status": 1, "Tags": tags} for node in nodes],
        "/v1/catalog/services": {name: [] for name in names},
        "/v1/health/state/any": checks,
        "/v1/kv/": [],
    }
    for name in names:
        pages[f"/v1/health/service/{name}"] = [
            {
                "Node": {"Node": node, "Address": "10.0.0.1"},
                "Service": {"ID": f"{name}-{node}", "Service": name, "Tags": [], "Meta": {}},
                "Checks": [check for check in checks if check["Node"] == node and check["ServiceName"] in ("", name)],
            }
            for node, of_node in services.items()
            if name in of_node
        ]
    return pages


def _check(node: str, state: str, service: str = "") -> dict[str, str]:
    kind = f"service:{service}" if service else "serfHealth"
    id_ = f"{service}-{node}" if service else ""
    return {"Node": node, "CheckID": kind, "Name": kind, "Status": state, "ServiceID": id_, "ServiceName": service}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    pages: Mapping[str, Any]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5
    server: _Server

    def do_GET(self) -> None:
        page = self.server.pages.get(urlsplit(self.path).path)
        body = json.dumps(page).encode()
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Consul-Index", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the requests out of the tests' output."""
