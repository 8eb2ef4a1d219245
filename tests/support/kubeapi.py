from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import urllib3

from tests.support import manifests
from tests.support.manifests import Json
from tests.support.waiting import wait_until

T = TypeVar("T")
# Inside the class, `list` is its method.
Items = list[Json]

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class ApiError(Exception):
    """An answer of status 400 or more."""

    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        self.status = status
        self.body = body
        try:
            answer = json.loads(body)
        except ValueError:
            answer = {}
        self.reason: str = answer.get("reason", "") if isinstance(answer, dict) else ""
        self.message: str = answer.get("message", body) if isinstance(answer, dict) else body
        super().__init__(f"{method} {path}: {status} {self.reason}: {self.message}")


class Watch:
    """The events of one watch request; iterate in one thread, close from any."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response
        self._closed = False

    def __iter__(self) -> Iterator[Json]:
        rest = b""
        try:
            for chunk in self._response.stream():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield json.loads(line)
        except (urllib3.exceptions.HTTPError, OSError):
            if not self._closed:
                raise
        finally:
            self._response.close()

    def close(self) -> None:
        self._closed = True
        self._response.shutdown()


class KubeApi:
    """Raw JSON over kept-alive connections, for any number of threads."""

    def __init__(
        self,
        url: str,
        ca: Path | None = None,
        token: str | None = None,
        client_certificate: tuple[Path, Path] | None = None,
        connections: int = 16,
    ) -> None:
        self.url = url.rstrip("/")
        self.token = token
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        certificate, key = client_certificate or (None, None)
        self._headers = headers
        self._pool = urllib3.PoolManager(
            num_pools=1,
            maxsize=connections,
            retries=False,
            timeout=urllib3.Timeout(connect=5, read=60),
            ca_certs=None if ca is None else str(ca),
            cert_file=None if certificate is None else str(certificate),
            key_file=None if key is None else str(key),
        )
        self._connections = connections

    def close(self) -> None:
        self._pool.clear()

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        query: Mapping[str, object] | None = None,
        content_type: str | None = None,
    ) -> Any:
        """Return the decoded answer, or its text where it is not JSON."""
        target = self.url + path + _query_string(query)
        headers = self._headers if content_type is None else {**self._headers, "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        response = self._pool.request(method, target, body=data, headers=headers)
        text = response.data.decode()
        if response.status >= 400:
            raise ApiError(method, path, response.status, text)
        return json.loads(text) if "json" in response.headers.get("Content-Type", "") else text

    def get(self, path: str, **query: object) -> Any:
        return self.request("GET", path, query=query)

    def post(self, path: str, body: object, **query: object) -> Any:
        return self.request("POST", path, body, query)

    def put(self, path: str, body: object, **query: object) -> Any:
        return self.request("PUT", path, body, query)

    def patch(self, path: str, body: object, content_type: str = MERGE_PATCH, **query: object) -> Any:
        return self.request("PATCH", path, body, query, content_type)

    def delete(self, path: str, body: object = None, **query: object) -> Any:
        return self.request("DELETE", path, body, query)

    def list(self, path: str, **query: object) -> Items:
        items: Items = self.get(path, **query)["items"]
        return items

    def watch(self, path: str, resource_version: str, **query: object) -> Watch:
        query = {"watch": "1", "resourceVersion": resource_version, **query}
        response = self._pool.request(
            "GET",
            self.url + path + _query_string(query),
            headers=self._headers,
            preload_content=False,
            timeout=urllib3.Timeout(connect=5, read=None),
        )
        if response.status >= 400:
            raise ApiError("GET", path, response.status, response.data.decode())
        return Watch(response)

    def for_each(self, call: Callable[[T], object], items: Iterable[T], threads: int = 8) -> None:
        """Call once for each item from several threads; the first exception is raised."""
        with ThreadPoolExecutor(min(threads, self._connections)) as executor:
            for _ in executor.map(call, items):
                pass

    def create_node(self, name: str, **shape: Any) -> Json:
        """Create a Node; `shape` is that of `manifests.node`."""
        return self._created("/api/v1/nodes", manifests.node(name, **shape))

    def create_nodes(self, nodes: Iterable[Json]) -> None:
        self.for_each(lambda node: self.post("/api/v1/nodes", node), nodes)

    def create_pod(self, name: str, **shape: Any) -> Json:
        """Create a Pod; `shape` is that of `manifests.pod`."""
        manifest = manifests.pod(name, **shape)
        return self._created(f"/api/v1/namespaces/{manifest['metadata']['namespace']}/pods", manifest)

    def create_pods(self, pods: Iterable[Json]) -> None:
        self.for_each(lambda pod: self.post(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod), pods)

    def create_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> Json:
        return self._created("/api/v1/namespaces", {"metadata": {"name": name, "labels": dict(labels or {})}})

    def create_priority_class(self, name: str, value: int, **fields: Any) -> Json:
        body = {"metadata": {"name": name}, "value": value, **fields}
        return self._created("/apis/scheduling.k8s.io/v1/priorityclasses", body)

    def _created(self, path: str, body: Json) -> Json:
        created: Json = self.post(path, body)
        return created

    def bind(self, pod: str, node: str, namespace: str = "default") -> None:
        body = {"metadata": {"name": pod}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        self.post(f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body)

    def node(self, name: str) -> Json:
        node: Json = self.get(f"/api/v1/nodes/{name}")
        return node

    def pod(self, name: str, namespace: str = "default") -> Json:
        pod: Json = self.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        return pod

    def pods(self, namespace: str | None = None, **query: object) -> Items:
        return self.list("/api/v1/pods" if namespace is None else f"/api/v1/namespaces/{namespace}/pods", **query)

    def placements(self, namespace: str | None = None) -> dict[str, str]:
        """Return the node of each bound Pod, by the Pod's name."""
        bound = (pod for pod in self.pods(namespace) if pod["spec"].get("nodeName"))
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in bound}

    def delete_pod(self, name: str, namespace: str = "default", grace: int | None = None) -> None:
        query = {} if grace is None else {"gracePeriodSeconds": grace}
        self.delete(f"/api/v1/namespaces/{namespace}/pods/{name}", **query)

    def events(self, name: str | None = None, namespace: str | None = None, reason: str | None = None) -> Items:
        """Return the Events (core/v1) about objects of that name, with that reason."""
        selectors = {"involvedObject.name": name, "reason": reason}
        selector = ",".join(f"{field}={value}" for field, value in selectors.items() if value is not None)
        path = "/api/v1/events" if namespace is None else f"/api/v1/namespaces/{namespace}/events"
        return self.list(path, **({"fieldSelector": selector} if selector else {}))

    def grant(
        self, user: str, rules: Iterable[Mapping[str, Any]], name: str | None = None, namespace: str | None = None
    ) -> None:
        """Give a user, named as the API server names it, a ClusterRole of these rules, or a Role of a namespace."""
        name = name or f"test:{user}"
        kind = "ClusterRole" if namespace is None else "Role"
        rbac = "/apis/rbac.authorization.k8s.io/v1" + ("" if namespace is None else f"/namespaces/{namespace}")
        self.post(f"{rbac}/{kind.lower()}s", {"metadata": {"name": name}, "rules": list(rules)})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        }
        self.post(f"{rbac}/{kind.lower()}bindings", binding)

    def wait_for(self, predicate: Callable[[], T], timeout: float = 10.0, what: str = "the condition") -> T:
        return wait_until(predicate, timeout, what)

    def wait_bound(self, name: str, namespace: str = "default", timeout: float = 10.0) -> str:
        """Wait until a Pod has a node, and return the node's name."""
        return self.wait_for(
            lambda: str(self.pod(name, namespace)["spec"].get("nodeName", "")), timeout, f"binding of Pod {name}"
        )

    def wait_gone(self, path: str, timeout: float = 10.0) -> None:
        self.wait_for(lambda: not self.exists(path), timeout, f"deletion of {path}")

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except ApiError as error:
            if error.status == 404:
                return False
            raise
        return True


def _query_string(query: Mapping[str, object] | None) -> str:
    return "?" + urlencode({key: str(value) for key, value in query.items()}) if query else ""
