"""Binds at another cluster's API server, against two scripted ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from scheduler.kube.credentials import Credentials, Token
from tests.kube.binder.running_binder import BIND_PATH, CREATED, EVENTS_PATH, POD_PATH, Running
from tests.kube.conftest import connection_to
from tests.kube.fake_api import Exchange, FakeApi, cuts, fake_api, pod, replies, status

CONFLICT = replies(409, status(409, "Conflict", "pod a is already assigned to a node"))
THEIRS = {"metadata": {"name": "a", "namespace": "default", "uid": "uid-there"}, "spec": {}}


@pytest.fixture
def west() -> Iterator[FakeApi]:
    with fake_api() as running:
        running.script("GET", POD_PATH, replies(200, THEIRS))
        running.script("POST", BIND_PATH, CREATED)
        yield running


@pytest.fixture
def running(server: FakeApi, west: FakeApi, start: Callable[..., Running]) -> Running:
    server.script("POST", EVENTS_PATH, replies(201, {}))
    there = connection_to(west.host, Credentials(lambda: Token("Bearer WEST")))
    return start(connection_to(server.host), clusters={"west": there})


def test_the_pod_of_that_name_is_bound_there_and_the_event_written_here(
    server: FakeApi, west: FakeApi, running: Running
) -> None:
    result = running.bind(cluster="west", annotations={"vane.dev/home": "east"})
    assert (result.uid, result.outcome, result.node_name) == ("uid-a", "bound", "n1")
    running.drain()
    (binding,) = west.of("POST", BIND_PATH)
    assert binding.json["metadata"] == {
        "name": "a",
        "namespace": "default",
        "uid": "uid-there",
        "annotations": {"vane.dev/home": "east"},
    }
    assert {one.headers["Authorization"] for one in west.received} == {"Bearer WEST"}
    (event,) = server.of("POST", EVENTS_PATH)
    assert event.json["note"] == "Successfully assigned default/a to n1 in cluster west"
    assert event.json["regarding"]["uid"] == "uid-a"
    assert {one.path for one in server.received} == {EVENTS_PATH}
    assert {(one.verb, one.cluster) for one in running.requests} == {("GET", "west"), ("POST", "west"), ("POST", "")}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        pytest.param(
            replies(404, status(404, "NotFound", 'pods "a" not found')),
            "there is no Pod default/a in cluster west (yet)",
            id="not there yet",
        ),
        pytest.param(
            replies(403, status(403, "Forbidden", "no such right")), "cluster west: 403 no such right", id="forbidden"
        ),
        pytest.param(replies(200, []), "cluster west: not a Pod: Expected `object`, got `array`", id="no Pod"),
    ],
)
def test_a_pod_that_cannot_be_had_is_a_failure_that_may_pass(
    west: FakeApi, running: Running, found: Callable[[Exchange], None], message: str
) -> None:
    west.script("GET", POD_PATH, found)
    result = running.bind(cluster="west")
    assert (result.outcome, result.message) == ("failed", message)
    assert west.of("POST", BIND_PATH) == []


@pytest.mark.parametrize(
    ("then", "outcome", "message"),
    [
        pytest.param(replies(200, {**THEIRS, "spec": {"nodeName": "n1"}}), "conflict_same_node", None, id="same node"),
        pytest.param(
            replies(200, {**THEIRS, "spec": {"nodeName": "n2"}}),
            "failed",
            "Pod default/a in cluster west is on node n2 already",
            id="other node",
        ),
        pytest.param(
            replies(404, status(404, "NotFound", "gone")),
            "failed",
            "Pod default/a in cluster west has been deleted",
            id="gone there, but not here",
        ),
        pytest.param(
            replies(200, pod("a")), "failed", "Pod default/a in cluster west has been deleted", id="another one there"
        ),
        pytest.param(
            replies(200, {**THEIRS, "spec": {"schedulingGates": [{"name": "g"}]}}),
            "failed",
            "Pod default/a in cluster west has scheduling gates",
            id="gated there",
        ),
    ],
)
def test_a_conflict_there_is_never_the_end_of_the_pod_here(
    west: FakeApi, running: Running, then: Callable[[Exchange], None], outcome: str, message: str | None
) -> None:
    west.script("GET", POD_PATH, replies(200, THEIRS), then)
    west.script("POST", BIND_PATH, CONFLICT)
    result = running.bind(cluster="west")
    assert (result.outcome, result.node_name) == (outcome, "n1")
    assert message is None or result.message == message


def test_a_lost_answer_is_asked_for_again_there(server: FakeApi, west: FakeApi, running: Running) -> None:
    west.script("POST", BIND_PATH, cuts, CONFLICT)
    west.script("GET", POD_PATH, replies(200, THEIRS), replies(200, {**THEIRS, "spec": {"nodeName": "n1"}}))
    assert running.bind(cluster="west").outcome == "conflict_same_node"
    running.drain()
    assert len(server.of("POST", EVENTS_PATH)) == 1


def test_a_cluster_that_was_not_set(running: Running) -> None:
    result = running.bind(cluster="north")
    assert (result.outcome, result.message) == ("failed", "cluster 'north' is not among the clusters set")


def test_nothing_is_bound_there_once_the_lease_may_be_another_replicas(west: FakeApi, running: Running) -> None:
    running.lead_for(-1.0)
    assert running.bind(cluster="west").outcome == "expired"
    assert west.of("POST", BIND_PATH) == []


def test_each_cluster_gets_its_own_fresh_credentials(
    server: FakeApi, west: FakeApi, start: Callable[..., Running]
) -> None:
    tokens = iter(["Bearer OLD", "Bearer NEW"])
    there = connection_to(west.host, Credentials(lambda: Token(next(tokens))))
    server.script("POST", BIND_PATH, CREATED)
    server.script("POST", EVENTS_PATH, replies(201, {}))

    def only_new(exchange: Exchange) -> None:
        if exchange.received.headers["Authorization"] == "Bearer NEW":
            exchange.json(200, THEIRS)
        else:
            exchange.json(401, status(401, "Unauthorized", "Unauthorized"))

    west.script("GET", POD_PATH, only_new)
    running = start(connection_to(server.host), clusters={"west": there})
    assert running.bind(cluster="west").outcome == "bound"
    assert running.bind().outcome == "bound"
    assert [one.headers["Authorization"] for one in west.of("GET", POD_PATH)] == ["Bearer OLD", "Bearer NEW"]
    assert {one.headers["Authorization"] for one in server.received} == {"Bearer A"}


def test_a_cluster_that_is_away_holds_up_nothing_here(server: FakeApi, start: Callable[..., Running]) -> None:
    server.script("POST", BIND_PATH, CREATED)
    server.script("POST", EVENTS_PATH, replies(201, {}))
    running = start(connection_to(server.host), clusters={"west": connection_to("http://127.0.0.1:1")})
    result = running.bind(cluster="west")
    assert result.outcome == "failed"
    assert result.message.startswith("cluster west: ")
    assert running.bind().outcome == "bound"
