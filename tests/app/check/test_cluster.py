from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler.app.check.cluster import PAGE, read_cluster
from scheduler.errors import VaneError
from scheduler.kube.transport import ApiError, Transport, TransportError
from tests.kube.conftest import connection_to
from tests.kube.fake_api import FakeApi, cuts, fake_api, raw, replies, status

NODES, PODS = "/api/v1/nodes", "/api/v1/pods"


@pytest.fixture
def server() -> Iterator[FakeApi]:
    with fake_api() as running:
        running.script("GET", NODES, replies(200, page(node("a"), node("b"))))
        running.script("GET", PODS, replies(200, page()))
        yield running


@pytest.fixture
def transport(server: FakeApi) -> Iterator[Transport]:
    made = Transport(connection_to(server.host))
    yield made
    made.close()


def page(*items: object, then: str = "") -> dict[str, object]:
    return {"items": list(items), "metadata": {"continue": then} if then else {}}


def node(name: str, cpu: object = "4") -> dict[str, object]:
    return {"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "pods": "110"}}}


def pod(name: str, on: str = "a", cpu: object = "1") -> dict[str, object]:
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {"metadata": {"name": name, "uid": name}, "spec": {"nodeName": on, "containers": containers}}


def test_page_after_page(server: FakeApi, transport: Transport) -> None:
    server.script(
        "GET", PODS, replies(200, page(pod("one"), then="more")), replies(200, page(pod("two"), pod("new", "")))
    )
    cache = read_cluster(transport, [])
    assert cache.counts() == {"nodes": 2, "pods": 2, "assumed_pods": 0}
    first, second = server.of("GET", PODS)
    assert first.query["limit"] == str(PAGE)
    assert "Failed" in first.query["fieldSelector"]
    assert (second.query["continue"], second.query["fieldSelector"]) == ("more", first.query["fieldSelector"])


def test_pages_that_have_expired_are_asked_for_in_one(server: FakeApi, transport: Transport) -> None:
    server.script(
        "GET",
        NODES,
        replies(200, page(node("a"), then="more")),
        replies(410, status(410, "Expired", "too old")),
        replies(200, page(node("a"), node("b"), node("c"))),
    )
    assert read_cluster(transport, []).counts()["nodes"] == 3
    assert "limit" not in server.of("GET", NODES)[-1].query


def test_what_cannot_be_read_is_left_out_and_what_is_too_much_is_cut(server: FakeApi, transport: Transport) -> None:
    server.script(
        "GET", NODES, replies(200, page(node("a"), node("odd", ["4"]), {"metadata": 7}, node("far", "1e400")))
    )
    server.script("GET", PODS, replies(200, page(pod("fine"), pod("odd", cpu=["1"]))))
    cache = read_cluster(transport, [])
    assert [node.metadata.name for node in cache.nodes()] == ["a", "far"]
    assert [one.pod.name for one in cache.pods()] == ["fine"]


def test_an_api_server_that_does_not_answer_with_lists(server: FakeApi, transport: Transport) -> None:
    server.script("GET", NODES, replies(403, status(403, "Forbidden", "no")))
    with pytest.raises(ApiError, match="403 Forbidden"):
        read_cluster(transport, [])
    server.script("GET", NODES, raw(200, b"<html>"))
    with pytest.raises(VaneError, match="cannot list Node"):
        read_cluster(transport, [])
    server.script("GET", NODES, cuts)
    with pytest.raises(TransportError):
        read_cluster(transport, [])
