"""What only the embedded API server can be asked: its bounds, its refusals by name, its life, and its store."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scheduler.errors import ConfigError
from scheduler.kube.config import load_connection
from scheduler.sim.apiserver import EVENTS, NAMESPACES, NODES, PODS, ApiServer, ObjectStore, StatusError, kubeconfig
from scheduler.sim.apiserver.cells import duration_text
from tests.sim.apiserver.cluster import PODS as POD_PATH
from tests.sim.apiserver.cluster import TABLE, WINDOW, EmbeddedCluster, EmbeddedServer, event
from tests.support import manifests
from tests.support.kubeapi import APPLY_PATCH, JSON_PATCH, STRATEGIC_MERGE_PATCH, KubeApi
from tests.support.waiting import wait_until


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(bookmark_s=0.2)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(server: EmbeddedServer) -> Iterator[KubeApi]:
    client = KubeApi(server.url)
    yield client
    client.close()


@pytest.fixture
def store() -> ObjectStore:
    numbers = itertools.count()
    return ObjectStore(lambda: 1_700_000_000.0, lambda: f"uid-{next(numbers)}")


@pytest.mark.parametrize(
    ("method", "path", "code", "named"),
    [
        ("DELETE", "/api/v1/namespaces/default", 405, "DELETE (delete) of namespaces"),
        ("PROPFIND", f"{POD_PATH}/a", 405, "PROPFIND (no verb) of pods"),
        ("PUT", "/apis/coordination.k8s.io/v1/leases", 405, "PUT (update) of leases.coordination.k8s.io"),
        ("GET", f"{POD_PATH}/a/binding", 405, "GET (get) of pods/binding"),
        ("GET", f"{POD_PATH}/a/log", 404, f"{POD_PATH}/a/log is not served by the embedded API server"),
        ("GET", "/apis/apps/v1/deployments", 404, "/apis/apps/v1/deployments is not served"),
        ("GET", "/metrics", 404, "/metrics is not served"),
        ("POST", f"{POD_PATH}?dryRun=All", 400, "dryRun=All is not supported by the embedded API server"),
    ],
)
def test_what_is_not_built_is_refused_by_name(
    embedded: EmbeddedCluster, method: str, path: str, code: int, named: str
) -> None:
    answer = embedded.ask(method, path, manifests.pod("a") if method == "POST" else None)
    assert (answer.code, answer.body["kind"], answer.body["code"]) == (code, "Status", code)
    assert named in answer.message


@pytest.mark.parametrize("content_type", [JSON_PATCH, APPLY_PATCH])
def test_other_patches_are_refused_by_name(embedded: EmbeddedCluster, content_type: str) -> None:
    embedded.api.create_pod("a")
    answer = embedded.ask("PATCH", f"{POD_PATH}/a?fieldManager=x&force=true", "{}", content_type=content_type)
    assert answer.code == 415
    assert f"application/strategic-merge-patch+json, got {content_type}" in answer.message


def test_a_body_of_another_form_is_refused_by_name(embedded: EmbeddedCluster) -> None:
    protobuf = "application/vnd.kubernetes.protobuf"
    answer = embedded.ask("POST", "/api/v1/namespaces", "k8s", content_type=protobuf)
    assert answer.code == 415
    assert f"write application/json or application/yaml, got {protobuf}" in answer.message
    created = embedded.ask("POST", "/api/v1/namespaces", "metadata: {name: a}", content_type="application/yaml")
    assert created.code == 201
    broken = embedded.ask("POST", "/api/v1/namespaces", "metadata: {", content_type="application/yaml")
    assert (broken.code, "yaml parse error" in broken.message) == (400, True)


def test_a_body_beyond_the_limit_is_refused(embedded: EmbeddedCluster) -> None:
    huge = manifests.pod("a", annotations={"a": "x" * (4 << 20)})
    assert embedded.ask("POST", POD_PATH, huge).code == 413
    assert embedded.api.pods() == []


def test_a_watch_that_falls_behind_the_window_ends_with_an_expiry(server: EmbeddedServer, client: KubeApi) -> None:
    watch = iter(client.watch(POD_PATH, "1"))

    def create_many() -> None:
        for i in range(WINDOW + 1):
            server.store.create(PODS, manifests.pod(f"p-{i}"))

    server.run(create_many)
    (line,) = watch
    assert (line["type"], line["object"]["code"], line["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert re.fullmatch(r"too old resource version: \d+ \(\d+\)", line["object"]["message"])


def test_bookmarks_come_by_the_clock_and_name_what_was_reached(server: EmbeddedServer, client: KubeApi) -> None:
    watch = iter(client.watch(POD_PATH, "1", allowWatchBookmarks="true"))
    version = int(client.create_node("n1")["metadata"]["resourceVersion"])
    found = next(line for line in watch if int(line["object"]["metadata"]["resourceVersion"]) >= version)
    assert (found["type"], found["object"]["kind"]) == ("BOOKMARK", "Pod")
    version = int(client.create_pod("a")["metadata"]["resourceVersion"])
    assert next(line for line in watch if line["type"] != "BOOKMARK")["type"] == "ADDED"
    assert int(next(watch)["object"]["metadata"]["resourceVersion"]) == version


def test_a_stop_ends_watches_as_their_time_does(client: KubeApi, server: EmbeddedServer) -> None:
    watch = iter(client.watch(POD_PATH, "0"))
    client.create_pod("a")
    assert next(watch)["type"] == "ADDED"
    server.stop_serving()
    assert list(watch) == []


def test_a_watch_whose_client_has_gone_ends(server: EmbeddedServer, client: KubeApi) -> None:
    client.create_node("n1")
    n_before = server.run(lambda: len(asyncio.all_tasks()))
    # The watch takes the one connection there is, and closes it with its iterator.
    assert next(iter(client.watch("/api/v1/nodes", "0")))["type"] == "ADDED"
    wait_until(lambda: server.run(lambda: len(asyncio.all_tasks())) < n_before, what="the end of the watch")


def test_a_taken_port_is_a_mistake_with_a_message(server: EmbeddedServer, store: ObjectStore) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(ConfigError, match=rf"cannot listen on 127\.0\.0\.1:{port}, got .*write another port, or 0"):
        asyncio.run(ApiServer(store).start(port=port))


def test_vane_reads_the_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(kubeconfig("http://127.0.0.1:1234"))
    connection = load_connection(str(path))
    assert (connection.host, connection.authorization_header()) == ("http://127.0.0.1:1234", None)


def test_subscribers_hear_of_every_change_before_the_call_returns(store: ObjectStore) -> None:
    heard: list[tuple[str, str]] = []
    end = store.subscribe(PODS, lambda type_, pod: heard.append((type_, pod["spec"].get("nodeName", ""))))
    store.create(PODS, manifests.pod("a"))
    store.create(NODES, manifests.node("n1"))
    store.bind("default", "a", "n1")
    store.delete(PODS, "default", "a", grace_s=0)
    assert heard == [("ADDED", ""), ("MODIFIED", "n1"), ("MODIFIED", "n1"), ("DELETED", "n1")]
    end()
    store.create(PODS, manifests.pod("b"))
    assert len(heard) == 4


def test_what_the_store_takes_and_gives_is_nobody_elses(store: ObjectStore) -> None:
    body = manifests.pod("a", labels={"x": "1"})
    created = store.create(PODS, body)
    for obj in (body, created, store.get(PODS, "default", "a"), store.list(PODS)[0]):
        obj["metadata"]["labels"]["x"] = "changed"
    assert store.get(PODS, "default", "a")["metadata"]["labels"] == {"x": "1"}
    patch: dict[str, Any] = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    store.patch(PODS, "default", "a", patch, subresource="status")
    patch["status"]["conditions"][0]["status"] = "changed"
    (condition,) = store.get(PODS, "default", "a")["status"]["conditions"]
    assert condition["status"] == "True"


def test_the_same_clock_and_uids_make_the_same_objects() -> None:
    def run() -> list[Any]:
        numbers = itertools.count()
        store = ObjectStore(lambda: 1_700_000_000.0, lambda: f"uid-{next(numbers)}")
        generated = {**manifests.pod(""), "metadata": {"generateName": "web-"}}
        for _ in range(3):
            store.create(PODS, generated)
        return store.list(PODS)

    assert run() == run()
    assert len({pod["metadata"]["name"] for pod in run()}) == 3


def test_events_are_kept_for_an_hour_after_their_last_write() -> None:
    now, numbers = [1_700_000_000.0], itertools.count()
    store = ObjectStore(lambda: now[0], lambda: f"uid-{next(numbers)}")
    store.create(EVENTS, event("a"), "default")
    store.create(EVENTS, event("b"), "default")
    now[0] += 1800
    store.patch(EVENTS, "default", "a", {"count": 2})
    now[0] += 1801
    store.create(EVENTS, event("c"), "default")
    assert [one["metadata"]["name"] for one in store.list(EVENTS)] == ["a", "c"]


def test_every_failure_of_the_store_carries_its_status(store: ObjectStore) -> None:
    with pytest.raises(StatusError, match=r'404 NotFound: pods "a" not found') as raised:
        store.get(PODS, "default", "a")
    assert (raised.value.code, raised.value.status["details"]) == (404, {"name": "a", "kind": "pods"})
    with pytest.raises(StatusError, match="409 AlreadyExists"):
        store.create(NAMESPACES, {"metadata": {"name": "default"}})
    with pytest.raises(StatusError, match="400 BadRequest"):
        store.create(PODS, {"metadata": [], "spec": 1})
    with pytest.raises(StatusError, match=r"403 Forbidden: .*no PriorityClass with name high was found"):
        store.create(PODS, manifests.pod("a", priority_class="high"))
    critical = store.create(PODS, manifests.pod("a", priority_class="system-node-critical"))
    assert critical["spec"]["priority"] == 2_000_001_000


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (119, "119s"), (120, "2m"), (150, "2m30s"), (600, "10m"), (3 * 3600, "3h"), (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"), (47 * 3600, "47h"), (48 * 3600, "2d"), (51 * 3600, "2d3h"), (8 * 86400, "8d"),
        (729 * 86400, "729d"), (730 * 86400, "2y"), (735 * 86400, "2y5d"), (9 * 365 * 86400, "9y"), (-5, "<invalid>"),
    ],
)  # fmt: skip
def test_durations_are_written_as_kubectl_writes_them(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text


STATUS = {
    "phase": "Running",
    "podIPs": [{"ip": "10.0.0.1"}],
    "conditions": [{"type": "Ready", "status": "True"}],
    "containerStatuses": [{"name": "app", "ready": True, "restartCount": 1, "state": {"waiting": {"reason": "R"}}}],
}


def test_broken_bodies_never_fault(embedded: EmbeddedCluster) -> None:
    """Each part of some objects in turn is made a thing of another type: it is refused or taken, and then listed."""
    gates = {"tolerations": [{"key": "x"}], "readinessGates": [{"conditionType": "x.io/y"}]}
    times = {"firstTimestamp": "2026-01-02T03:04:05Z", "series": {"count": 2}, "count": 1}
    bodies = {
        POD_PATH: manifests.pod("a", labels={"x": "y"}, limits={"cpu": "1"}, spec=gates),
        "/api/v1/nodes": manifests.node("a", taints=[{"key": "x", "effect": "NoSchedule"}]),
        "/api/v1/namespaces/default/events": event("a", source={"component": "c"}, **times),
    }
    for path, body in bodies.items():
        for broken in _broken(body):
            answer = embedded.ask("POST", path, broken)
            assert answer.code in (201, 400, 403, 409, 422), (answer.message, broken)
            if answer.code == 201:
                assert embedded.ask("GET", f"{path}?fieldSelector=metadata.name%3Da", accept=TABLE).code == 200, broken
                embedded.ask("DELETE", f"{path}/{answer.body['metadata']['name']}")
    embedded.api.create_pod("a")
    for broken in _broken({"status": STATUS}):
        answer = embedded.ask("PATCH", f"{POD_PATH}/a/status", broken, content_type=STRATEGIC_MERGE_PATCH)
        assert answer.code in (200, 400, 422), (answer.message, broken)
        assert embedded.ask("GET", POD_PATH, accept=TABLE).code == 200, broken


def _broken(value: Any) -> Iterator[Any]:
    """Yield copies of a JSON value with one part of it replaced."""
    for other in (None, 1, "text", [1], {"a": [1]}, True):
        if type(other) is not type(value):
            yield other
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ({**value, key: broken} for broken in _broken(inner))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from ([*value[:i], broken, *value[i + 1 :]] for broken in _broken(inner))


def test_a_strict_create_knows_the_fields_of_every_kind(embedded: EmbeddedCluster) -> None:
    bodies = {
        "/api/v1/nodes": {**manifests.node("a"), "spec": {"taint": []}},
        "/api/v1/namespaces": {"metadata": {"name": "a", "label": {}}},
        "/apis/coordination.k8s.io/v1/namespaces/default/leases": {"metadata": {"name": "a"}, "spec": {"holder": "me"}},
        "/api/v1/namespaces/default/events": event("a", note="x"),
    }
    for path, body in bodies.items():
        answer = embedded.ask("POST", f"{path}?fieldValidation=Strict", json.dumps(body))
        assert answer.code == 400, path
        assert "strict decoding error: unknown field" in answer.message
