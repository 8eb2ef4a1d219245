"""An API server with as many nodes and Pods of ordinary shape as one likes, which it makes up when they are listed.

`python -m benchmarks.crowded_api NODES PODS` prints its port. It lists, in pages, and watches; a POST to `/expire` has
the watches of Pods end with 410, as after a compaction, and one to `/pending/NAME` shows a Pod that waits for Vane.
Binds are taken and shown.
"""

from __future__ import annotations

import contextlib
import json
import queue
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

PODS_OF_ONE_SET = 10
_IMAGES_OF_A_NODE = 40
_BOOKMARK_S = 30.0
_WRITTEN = "2026-05-01T08:00:00Z"

Json = dict[str, Any]


def node(i: int) -> Json:
    """Return a Node as a kubelet of a cloud writes it."""
    name = node_name(i)
    zone = f"region-1{'abc'[i % 3]}"
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "250", "ephemeral-storage": "200Gi", "hugepages-2Mi": "0"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "m5.8xlarge",
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": "region-1",
        "topology.ebs.csi.example.com/zone": zone,
        "node.example.com/pool": f"pool-{i % 7}",
    }
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": f"Kubelet{kind}",
            "message": f"the kubelet says so of {kind}",
            "lastHeartbeatTime": _WRITTEN,
            "lastTransitionTime": _WRITTEN,
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {
            "names": [
                f"registry.example.com/team-{(i + j) % 500}/service@sha256:{(i + j) % 500:064x}",
                f"registry.example.com/team-{(i + j) % 500}/service:v1.2.{(i + j) % 500}",
            ],
            "sizeBytes": 100_000_000 + (i + j) % 500,
        }
        for j in range(_IMAGES_OF_A_NODE)
    ]
    addresses = [{"type": "InternalIP", "address": _address(i)}, {"type": "Hostname", "address": name}]
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": conditions,
        "addresses": addresses,
        "images": images,
        "nodeInfo": {"kubeletVersion": "v1.35.0", "osImage": "Some Linux", "machineID": f"{i:032x}"},
    }
    annotations = {
        "csi.volume.kubernetes.io/nodeid": json.dumps({"ebs.csi.example.com": f"i-{i:017x}"}),
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    spec = {"podCIDR": f"10.{i % 250}.0.0/24", "providerID": f"aws:///{zone}/i-{i:017x}"}
    metadata = _metadata(name, "", f"node-{i:08x}", i) | {"labels": labels, "annotations": annotations}
    return {"metadata": metadata | {"managedFields": _managed("kubelet", labels)}, "spec": spec, "status": status}


def pod(i: int, n_nodes: int) -> Json:
    """Return a Pod that runs: one of ten of a ReplicaSet, with two containers and the token volume of its account."""
    app, revision = f"service-{i // PODS_OF_ONE_SET}", f"{i // PODS_OF_ONE_SET:010x}"
    name, token = f"{app}-{revision}-{i:05x}", f"kube-api-access-{i:05x}"
    labels = {
        "app.kubernetes.io/name": app,
        "app.kubernetes.io/instance": f"{app}-production",
        "app.kubernetes.io/version": "1.2.3",
        "team": f"team-{i // PODS_OF_ONE_SET % 50}",
        "pod-template-hash": revision,
    }
    containers = [_container(app, "server", "250m", "512Mi", token), _container(app, "proxy", "100m", "128Mi", token)]
    expiring = {"effect": "NoExecute", "operator": "Exists", "tolerationSeconds": 300}
    spec = {
        "volumes": [
            {"name": "config", "configMap": {"name": app, "defaultMode": 420}},
            {"name": "cache", "emptyDir": {}},
            {"name": token, "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"path": "token"}}]}},
        ],
        "containers": containers,
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": app,
        "nodeName": node_name(i % n_nodes),
        "securityContext": {"runAsNonRoot": True},
        "schedulerName": "default-scheduler",
        "tolerations": [{"key": f"node.kubernetes.io/{what}", **expiring} for what in ("not-ready", "unreachable")],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    metadata = _metadata(name, f"space-{i // 500}", f"pod-{i:08x}", i) | {
        "generateName": f"{app}-{revision}-",
        "labels": labels,
        "annotations": {"checksum/config": f"{i // PODS_OF_ONE_SET:064x}", "prometheus.io/scrape": "true"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": f"{app}-{revision}",
                "uid": _uid(f"set-{i // PODS_OF_ONE_SET:08x}"),
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": _managed("kube-controller-manager", labels) + _managed("kubelet", labels),
    }
    return {"metadata": metadata, "spec": spec, "status": _status(i, n_nodes, containers)}


def pending(name: str) -> Json:
    """Return a Pod that waits for Vane."""
    metadata = _metadata(name, "default", name, 1) | {"labels": {"app": "late"}}
    container = {"name": "main", "image": "late", "resources": {"requests": {"cpu": "10m", "memory": "8Mi"}}}
    spec = {"schedulerName": "vane", "containers": [container]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def replica_set(i: int) -> Json:
    app = f"service-{i}"
    selector = {"matchLabels": {"app.kubernetes.io/name": app, "pod-template-hash": f"{i:010x}"}}
    metadata = _metadata(f"{app}-{i:010x}", f"space-{i * PODS_OF_ONE_SET // 500}", f"set-{i:08x}", i)
    return {"metadata": metadata, "spec": {"selector": selector, "replicas": PODS_OF_ONE_SET}}


def csi_node(i: int) -> Json:
    driver = {"name": "ebs.csi.example.com", "nodeID": f"i-{i:017x}", "allocatable": {"count": 25}}
    return {"metadata": _metadata(node_name(i), "", f"csi-{i:08x}", i), "spec": {"drivers": [driver]}}


def node_name(i: int) -> str:
    return f"ip-{_address(i).replace('.', '-')}.region-1.compute.internal"


def _address(i: int) -> str:
    return f"10.{i // 65_536}.{i // 256 % 256}.{i % 256}"


def _uid(text: str) -> str:
    return f"{text:->36}"


def _metadata(name: str, namespace: str, uid: str, version: int) -> Json:
    found = {"name": name, "uid": _uid(uid), "resourceVersion": str(1_000_000 + version)}
    return found | {"creationTimestamp": _WRITTEN} | ({"namespace": namespace} if namespace else {})


def _managed(manager: str, labels: Json) -> list[Json]:
    fields: Json = {f"f:{name}": {} for name in labels}
    owned: Json = {f'k:{{"name":"{name}"}}': {f"f:{one}": {} for one in ("image", "name", "env")} for name in "ab"}
    fields_v1 = {"f:metadata": {"f:labels": {".": {}, **fields}}, "f:spec": {"f:containers": owned}}
    return [
        {"manager": manager, "operation": "Update", "time": _WRITTEN, "fieldsType": "FieldsV1", "fieldsV1": fields_v1}
    ]


def _container(app: str, name: str, cpu: str, memory: str, token: str) -> Json:
    return {
        "name": name,
        "image": f"registry.example.com/{app}/{name}:v1.2.3",
        "args": ["--config", "/etc/service/config.yaml"],
        "env": [{"name": f"SETTING_{i}", "value": f"value {i} of {name}"} for i in range(8)],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "volumeMounts": [
            {"name": "config", "mountPath": "/etc/service"},
            {"name": "cache", "mountPath": "/var/cache"},
            {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
        ],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def _status(i: int, n_nodes: int, containers: list[Json]) -> Json:
    started = f"2026-05-{i % 28 + 1:02}T{i % 24:02}:{i % 60:02}:{i // 60 % 60:02}Z"
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": started} for kind in kinds
        ],
        "hostIP": _address(i % n_nodes),
        "podIP": _address(i),
        "podIPs": [{"ip": _address(i)}],
        "startTime": started,
        "qosClass": "Burstable",
        "containerStatuses": [
            {
                "name": one["name"],
                "state": {"running": {"startedAt": started}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": one["image"],
                "imageID": f"registry.example.com/service@sha256:{i // PODS_OF_ONE_SET:064x}",
                "containerID": f"containerd://{i:064x}",
                "started": True,
                "allocatedResources": one["resources"]["requests"],
                "resources": one["resources"],
            }
            for one in containers
        ],
    }


class CrowdedApi:
    """The objects by path, and the watches under way."""

    def __init__(self, n_nodes: int, n_pods: int) -> None:
        n_sets = n_pods // PODS_OF_ONE_SET
        self._objects: dict[str, tuple[int, Callable[[int], Json]]] = {
            "/api/v1/nodes": (n_nodes, node),
            "/api/v1/pods": (n_pods, lambda i: pod(i, n_nodes)),
            "/api/v1/namespaces": (
                n_pods // 500 + 1,
                lambda i: {"metadata": _metadata(f"space-{i}", "", f"space-{i}", i)},
            ),
            "/apis/apps/v1/replicasets": (n_sets, replica_set),
            "/apis/storage.k8s.io/v1/csinodes": (n_nodes, csi_node),
        }
        self._watches: list[queue.SimpleQueue[Json | None]] = []
        self._late: dict[str, Json] = {}

    def page(self, path: str, query: dict[str, str]) -> Json:
        n, make = self._objects.get(path, (0, node))
        if query.get("fieldSelector", "").startswith("status.phase="):
            n = 0
        begin = int(query.get("continue", "0"))
        end = min(n, begin + int(query.get("limit", str(n))))
        items = [make(i) for i in range(begin, end)]
        metadata = {"resourceVersion": "9000000"} | ({"continue": str(end)} if end < n else {})
        if path == "/api/v1/pods" and end == n:
            items += list(self._late.values())
        return {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}

    def watch(self, path: str) -> queue.SimpleQueue[Json | None]:
        events: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        if path == "/api/v1/pods":
            self._watches.append(events)
        return events

    def expire(self) -> None:
        status = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
        ended, self._watches = self._watches, []
        for events in ended:
            events.put({"type": "ERROR", "object": status})
            events.put(None)

    def show(self, name: str, change: Json | None = None) -> None:
        """Show a Pod that waits for Vane, or is on the node of `change` now."""
        found = self._late.setdefault(name, pending(name))
        found["spec"] |= change or {}
        found["metadata"]["resourceVersion"] = str(int(found["metadata"]["resourceVersion"]) + 1)
        for events in self._watches:
            events.put({"type": "MODIFIED", "object": json.loads(json.dumps(found))})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    api: CrowdedApi

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        if "watch" in query:
            with contextlib.suppress(OSError):
                self._watch(parts.path)
        else:
            self._json(200, self.api.page(parts.path, query))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        words = self.path.split("?")[0].strip("/").split("/")
        if words == ["expire"]:
            self.api.expire()
        elif words[0] == "pending":
            self.api.show(words[1])
        elif words[-1] == "binding":
            self.api.show(words[-2], {"nodeName": body["target"]["name"]})
        self._json(201, {"kind": "Status", "status": "Success"})

    def do_PATCH(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._json(200, {"metadata": {}})

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _watch(self, path: str) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        events = self.api.watch(path)
        bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9000000"}}}
        while True:
            try:
                event = events.get(timeout=_BOOKMARK_S)
            except queue.Empty:
                event = bookmark
            if event is None:
                break
            line = msgspec.json.encode(event) + b"\n"
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _json(self, code: int, body: Json) -> None:
        data = msgspec.json.encode(body)
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have gone."""


def main(n_nodes: int, n_pods: int) -> None:
    """Serve until standard input ends, so not longer than whoever asked for it."""
    _Handler.api = CrowdedApi(n_nodes, n_pods)
    with _Server(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_address[1], flush=True)
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
