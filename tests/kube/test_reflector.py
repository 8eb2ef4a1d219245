from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from scheduler.kube.backoff import BackoffSettings
from scheduler.kube.credentials import Credentials, Token
from scheduler.kube.reflector import Reflector, ReflectorSettings
from scheduler.kube.resources import NODES, PODS, ResourceKind
from scheduler.kube.transport import Transport
from scheduler.kube.watch_stream import SLICE, Changed, Replaced
from scheduler.model.objects import UnreadableNode, UnreadablePod
from tests.kube.conftest import connection_to
from tests.kube.fake_api import (
    FakeApi,
    bookmark,
    hangs,
    line,
    pod,
    pod_list,
    replies,
    resets,
    status,
    streams,
)
from tests.support.clocks import OwnTime
from tests.support.waiting import wait_until

FAST = ReflectorSettings(
    page_size=2,
    list_timeout_s=2.0,
    watch_read_timeout_s=0.3,
    backoff=BackoffSettings(first_s=0.02, longest_s=0.1),
)
PATH = PODS.path


class Inbox:
    """What the deciding thread would get: lists, put together from their slices, and changes."""

    def __init__(self) -> None:
        self.messages: list[Replaced | Changed] = []

    def __call__(self, message: Replaced | Changed) -> None:
        self.messages.append(message)

    @property
    def lists(self) -> list[list[str]]:
        complete: list[list[str]] = []
        names: list[str] = []
        for slice_ in self._of(Replaced):
            names = [] if slice_.is_first else names
            names += [one.metadata.name for one in slice_.objects]
            complete += [names] if slice_.is_last else []
        return complete

    @property
    def changes(self) -> list[tuple[str, str]]:
        return [(message.type, message.object.metadata.name) for message in self._of(Changed)]

    def _of(self, kind: type) -> list[Any]:
        return [message for message in self.messages if isinstance(message, kind)]


class Restarts:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def __call__(self, kind: str, reason: str) -> None:
        assert kind == "Pod"
        self.reasons.append(reason)


Start = Callable[..., tuple[Reflector, Inbox]]


@pytest.fixture
def start(transport: Transport) -> Iterator[Start]:
    running: list[Reflector] = []

    def begin(
        kind: ResourceKind = PODS, settings: ReflectorSettings = FAST, over: Transport = transport, **options: Any
    ) -> tuple[Reflector, Inbox]:
        inbox = Inbox()
        reflector = Reflector(kind, over, inbox, settings=settings, random=random.Random(1), **options)
        reflector.start()
        running.append(reflector)
        return reflector, inbox

    yield begin
    for one in running:
        one.stop()
        assert not one.is_alive


def watches(server: FakeApi) -> list[dict[str, str]]:
    return [one.query for one in server.of("GET", PATH) if "watch" in one.query]


def lists(server: FakeApi) -> list[dict[str, str]]:
    return [one.query for one in server.of("GET", PATH) if "watch" not in one.query]


def test_lists_in_pages_and_watches_from_there(server: FakeApi, start: Start) -> None:
    server.script(
        "GET",
        PATH,
        replies(200, pod_list(pod("a"), pod("b"), version=7, token="more")),
        replies(200, pod_list(pod("c"), version=7)),
    )
    server.script("WATCH", PATH, streams(line("ADDED", pod("d", 8)), line("DELETED", pod("a", 9)), then="hang"))
    _, inbox = start()
    wait_until(lambda: len(inbox.changes) == 2)
    assert inbox.lists == [["a", "b", "c"]]
    assert inbox.changes == [("ADDED", "d"), ("DELETED", "a")]
    assert [query.get("continue") for query in lists(server)] == [None, "more"]
    assert {query["limit"] for query in lists(server)} == {"2"}
    assert all("resourceVersion" not in query for query in lists(server))
    watch = watches(server)[0]
    assert watch["resourceVersion"] == "7"
    assert watch["allowWatchBookmarks"] == "true"
    assert 300 <= int(watch["timeoutSeconds"]) <= 600
    assert watch["fieldSelector"] == "status.phase!=Succeeded,status.phase!=Failed"


def test_pages_come_as_they_are_read_and_a_list_that_breaks_off_begins_anew(server: FakeApi, start: Start) -> None:
    server.script(
        "GET",
        PATH,
        replies(200, pod_list(pod("a"), version=7, token="more")),
        resets,
        replies(200, pod_list(pod("b"), version=8, token="more")),
        replies(200, pod_list(version=8)),
    )
    server.script("WATCH", PATH, streams(then="hang"))
    _, inbox = start()
    wait_until(lambda: watches(server))
    slices = [message for message in inbox.messages if isinstance(message, Replaced)]
    assert [(one.is_first, one.is_last) for one in slices] == [(True, False), (True, False), (False, True)]
    assert inbox.lists == [["b"]]


def test_a_page_is_handed_over_in_slices(server: FakeApi, start: Start) -> None:
    server.script("GET", PATH, replies(200, pod_list(*(pod(f"p{i}") for i in range(2 * SLICE + 1)), version=7)))
    server.script("WATCH", PATH, streams(then="hang"))
    _, inbox = start()
    wait_until(lambda: inbox.lists)
    slices = [message for message in inbox.messages if isinstance(message, Replaced)]
    marks = [(len(one.objects), one.is_first, one.is_last) for one in slices]
    assert marks == [(SLICE, True, False), (SLICE, False, False), (1, False, True)]


def test_resumes_at_the_last_event_or_bookmark(server: FakeApi, start: Start) -> None:
    server.script("GET", PATH, replies(200, pod_list(version=5)))
    server.script(
        "WATCH",
        PATH,
        streams(line("ADDED", pod("a", 6))),
        streams(bookmark(20)),
        streams(then="hang"),
    )
    _, inbox = start()
    wait_until(lambda: len(watches(server)) >= 3)
    assert [query["resourceVersion"] for query in watches(server)[:3]] == ["5", "6", "20"]
    assert inbox.changes == [("ADDED", "a")]
    assert len(lists(server)) == 1


@pytest.mark.parametrize(
    "expired",
    [
        pytest.param(replies(410, status(410, "Expired", "too old")), id="as the status of the watch"),
        pytest.param(streams(line("ERROR", status(410, "Expired", "too old"))), id="as an event in the stream"),
    ],
)
def test_lists_again_once_after_410(server: FakeApi, start: Start, expired: Any) -> None:
    server.script("GET", PATH, replies(200, pod_list(pod("a"), version=5)), replies(200, pod_list(version=50)))
    server.script("WATCH", PATH, expired, streams(then="hang"))
    _, inbox = start(settings=replace(FAST, watch_read_timeout_s=5.0))
    wait_until(lambda: len(watches(server)) == 2)
    assert inbox.lists == [["a"], []]
    assert watches(server)[1]["resourceVersion"] == "50"
    assert len(lists(server)) == 2


def test_never_lists_in_a_tight_loop(server: FakeApi, start: Start) -> None:
    server.script("GET", PATH, replies(200, pod_list(version=5)))
    server.script("WATCH", PATH, replies(410, status(410, "Expired", "too old")))
    start(settings=replace(FAST, backoff=BackoffSettings(first_s=0.2, longest_s=1.0)))
    wait_until(lambda: len(lists(server)) >= 4)
    # Delays of at least 0.2, 0.4, 0.8 s.
    times_s = [one.at_s for one in server.of("GET", PATH) if "watch" not in one.query]
    pauses_s = [after_s - before_s for before_s, after_s in pairwise(times_s)]
    assert all(pause_s >= least_s for pause_s, least_s in zip(pauses_s, (0.2, 0.4, 0.8), strict=False))


def test_410_while_paging_begins_anew_and_the_second_asks_for_everything_at_once(server: FakeApi, start: Start) -> None:
    expired = replies(410, status(410, "Expired", "the provided continue parameter is too old"))
    page = replies(200, pod_list(pod("gone"), token="old"))
    server.script(
        "GET",
        PATH,
        *(page, expired, page, expired),
        replies(200, pod_list(pod("a"), pod("b"), pod("c"), version=9)),
    )
    server.script("WATCH", PATH, streams(then="hang"))
    _, inbox = start()
    wait_until(lambda: inbox.lists)
    assert inbox.lists == [["a", "b", "c"]]
    assert ["limit" in query for query in lists(server)] == [True] * 4 + [False]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        pytest.param(replies(500, status(500, "InternalError", "boom")), "error", id="HTTP 500"),
        pytest.param(resets, "disconnected", id="connection reset"),
        pytest.param(hangs, "timeout", id="no answer"),
        pytest.param(streams(), "closed", id="stream closed at once"),
        pytest.param(streams(then="reset"), "disconnected", id="reset within the stream"),
        pytest.param(streams(line("ADDED", pod("x", 6))[:40], then="cut"), "disconnected", id="truncated line"),
        pytest.param(streams(line("ADDED", pod("x", 6))[:40]), "malformed", id="ended in the middle of an event"),
        pytest.param(streams(b"{not json}\n"), "malformed", id="not JSON"),
        pytest.param(streams(b'{"type":"\xe9","object":{}}\n'), "malformed", id="not UTF-8"),
        pytest.param(streams(b"[" * 100_000 + b"\n"), "malformed", id="nested too deep"),
        pytest.param(streams(line("ADDED", {"metadata": 3})), "malformed", id="an object without readable metadata"),
        pytest.param(streams(line("ERROR", 3)), "malformed", id="ERROR event without a Status"),
        pytest.param(streams(then="hang"), "timeout", id="half-open"),
        pytest.param(streams(line("ERROR", status(500, "InternalError", "boom"))), "error", id="ERROR event"),
    ],
)
def test_a_broken_watch_is_taken_up_again_where_it_was(server: FakeApi, start: Start, broken: Any, reason: str) -> None:
    server.script("GET", PATH, replies(200, pod_list(version=5)))
    server.script("WATCH", PATH, broken, broken, streams(line("ADDED", pod("a", 6)), then="hang"))
    restarts = Restarts()
    _, inbox = start(on_restart=restarts)
    wait_until(lambda: inbox.changes, timeout=5)
    assert inbox.changes == [("ADDED", "a")]
    assert {query["resourceVersion"] for query in watches(server)[:3]} == {"5"}
    assert len(lists(server)) == 1
    assert restarts.reasons == [reason, reason]


def test_an_end_as_agreed_and_an_expiry_are_told_apart(server: FakeApi, start: Start) -> None:
    server.script("GET", PATH, replies(200, pod_list(version=5)))
    expired = streams(line("ERROR", status(410, "Expired", "too old")))
    server.script("WATCH", PATH, streams(bookmark(6)), expired, streams(then="hang"))
    restarts = Restarts()
    start(on_restart=restarts, settings=replace(FAST, watch_read_timeout_s=5.0))
    wait_until(lambda: len(watches(server)) == 3)
    assert restarts.reasons == ["closed", "expired"]


def test_a_stream_that_stays_unreadable_is_left_behind_by_a_list(server: FakeApi, start: Start) -> None:
    server.script("GET", PATH, replies(200, pod_list(version=5)), replies(200, pod_list(pod("a"), version=6)))
    server.script("WATCH", PATH, streams(b"{not json}\n"))
    _, inbox = start()
    wait_until(lambda: len(inbox.lists) >= 2)
    assert inbox.lists[1] == ["a"]


def test_an_event_cut_into_many_chunks_arrives_whole(server: FakeApi, start: Start) -> None:
    whole = line("ADDED", pod("a", 6)) + line("ADDED", pod("b", 7))
    server.script("GET", PATH, replies(200, pod_list(version=5)))
    server.script("WATCH", PATH, streams(*(whole[at : at + 7] for at in range(0, len(whole), 7)), then="hang"))
    _, inbox = start()
    wait_until(lambda: len(inbox.changes) == 2)
    assert inbox.changes == [("ADDED", "a"), ("ADDED", "b")]


def test_retry_after_is_waited_for(server: FakeApi, start: Start) -> None:
    refused = replies(429, status(429, "TooManyRequests", "slow down"), {"Retry-After": "1"})
    server.script("GET", PATH, refused, replies(200, pod_list()))
    server.script("WATCH", PATH, streams(then="hang"))
    _, inbox = start()
    wait_until(lambda: inbox.lists, timeout=5)
    first, second = server.of("GET", PATH)[:2]
    assert 1.0 <= second.at_s - first.at_s < 1.5


def test_401_takes_the_new_token_at_once(server: FakeApi, start: Start) -> None:
    tokens = iter(["Bearer A", "Bearer B"])
    transport = Transport(connection_to(server.host, Credentials(lambda: Token(next(tokens)))))

    def only_b(good: Any) -> Any:
        def respond(exchange: Any) -> None:
            if exchange.received.headers.get("Authorization") == "Bearer B":
                good(exchange)
            else:
                exchange.json(401, status(401, "Unauthorized", "Unauthorized"))

        return respond

    server.script("GET", PATH, replies(200, pod_list(version=5)))
    server.script("WATCH", PATH, only_b(streams(line("ADDED", pod("a", 6)), then="hang")))
    restarts = Restarts()
    _, inbox = start(over=transport, on_restart=restarts)
    wait_until(lambda: inbox.changes)
    assert restarts.reasons == []
    sent = [one.headers["Authorization"] for one in server.received]
    assert sent == ["Bearer A", "Bearer A", "Bearer B"]
    transport.close()


def test_a_pod_that_does_not_decode_is_named_not_lost(server: FakeApi, start: Start) -> None:
    odd = pod("odd", 6, nodeName="n1", tolerations="oops")
    server.script("GET", PATH, replies(200, pod_list(odd, pod("a"), version=5)))
    server.script("WATCH", PATH, streams(then="hang"))
    _, inbox = start()
    wait_until(lambda: inbox.messages)
    message = inbox.messages[0]
    assert isinstance(message, Replaced)
    assert isinstance(message.objects[0], UnreadablePod)
    assert message.objects[0].node_name == "n1"


def test_a_node_that_does_not_decode_is_named_not_lost(
    server: FakeApi, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    good = {"metadata": {"name": "n1", "uid": "u1", "resourceVersion": "5"}}
    odd = {"metadata": {"name": "n1", "uid": "u1", "resourceVersion": "6"}, "spec": {"taints": "oops"}}
    new = {"metadata": {"name": "n2", "uid": "u2", "resourceVersion": "7"}, "spec": 3}
    nameless = {"metadata": 3}
    body = {"metadata": {"resourceVersion": "5"}, "items": [good, nameless, new]}
    server.script("GET", NODES.path, replies(200, body))
    server.script("WATCH", NODES.path, streams(line("MODIFIED", odd), line("ADDED", new), then="hang"))
    _, inbox = start(kind=NODES)
    wait_until(lambda: len(inbox.changes) == 2)
    assert inbox.lists == [["n1", "n2"]]
    assert inbox.changes == [("MODIFIED", "n1"), ("ADDED", "n2")]
    assert all(isinstance(message.object, UnreadableNode) for message in inbox.messages if isinstance(message, Changed))
    assert "a Node that cannot be read is ignored" in caplog.text


def test_a_bug_in_the_receiver_starts_over_with_a_list(
    server: FakeApi, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Replaced | Changed] = []

    def sink(message: Replaced | Changed) -> None:
        seen.append(message)
        if len(seen) == 2:
            raise RuntimeError("a bug")

    server.script("GET", PATH, replies(200, pod_list(version=5)))
    server.script("WATCH", PATH, streams(line("ADDED", pod("a", 6)), then="hang"))
    reflector = Reflector(PODS, transport, sink, settings=FAST)
    reflector.start()
    wait_until(lambda: len(seen) >= 3)
    reflector.stop()
    assert isinstance(seen[2], Replaced)
    assert "a bug" in caplog.text


def test_stop_ends_a_silent_watch_at_once(server: FakeApi, transport: Transport) -> None:
    server.script("GET", PATH, replies(200, pod_list(version=5)))
    server.script("WATCH", PATH, streams(then="hang"))
    reflector = Reflector(PODS, transport, Inbox())
    reflector.start()
    wait_until(lambda: watches(server))
    time.sleep(0.05)
    took = OwnTime()
    reflector.stop()
    assert took.seconds < 1.0
    assert not reflector.is_alive


def test_decoding_keeps_no_page_in_memory() -> None:
    from scheduler.kube.watch_stream import ObjectReader

    claims = [{"name": "c", "resourceClaimName": "x"}]
    body = json.dumps(pod_list(*(pod(f"p{i}", i, resourceClaims=claims) for i in range(3)))).encode()
    page = ObjectReader(PODS).page(body)
    raw = page.objects[0].spec.resource_claims[0]
    assert bytes(raw) == json.dumps(claims[0]).encode()
    assert len(memoryview(raw).obj) < len(body) / 2  # type: ignore[arg-type] # a Raw is a buffer over its source
