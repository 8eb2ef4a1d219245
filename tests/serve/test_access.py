"""Who may see a page: probes are open, a server on loopback shows its pages, all else is asked of the API server."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPSConnection
from typing import NamedTuple

import pytest

from scheduler.errors import VaneError
from scheduler.kube.reviews import Caller
from scheduler.serve.http import PageServer
from scheduler.settings.settings import ServingSettings
from tests.serve.source import Source
from tests.serve.test_http import any_certificate
from tests.support.ports import free_port, own_address

CALLERS = {
    "scraper": Caller(username="prometheus", groups=["g"]),
    "driver": Caller(username="queue"),
    "stranger": Caller(username="eve"),
}
ALLOWED = {
    ("prometheus", "get", "/metrics"),
    ("prometheus", "head", "/metrics"),
    ("queue", "post", "/permit/shop/web"),
    ("queue", "post", "/permit/shop/web-1"),
}


class ScriptedReviews:
    """What the API server would say; `is_down` makes every question fail, `wait` holds them up."""

    def __init__(self) -> None:
        self.asked: Counter[object] = Counter()
        self.is_down = False
        self.wait: Callable[[], object] = lambda: None

    def caller(self, token: str) -> Caller | None:
        self._ask(token)
        return CALLERS.get(token)

    def allows(self, caller: Caller, verb: str, path: str) -> bool:
        self._ask((caller.username, verb, path))
        return (caller.username, verb, path) in ALLOWED

    def _ask(self, question: object) -> None:
        self.asked[question] += 1
        self.wait()
        if self.is_down:
            raise VaneError("connection refused")


class Answered(NamedTuple):
    status: int
    text: str
    challenge: str | None


@pytest.fixture
def reviews() -> ScriptedReviews:
    return ScriptedReviews()


@pytest.fixture
def server(reviews: ScriptedReviews) -> Iterator[PageServer]:
    server = PageServer(ServingSettings(secure_port=free_port(), bind_address="0.0.0.0"), Source(), reviews)
    server.start()
    yield server
    server.stop()


def ask(
    server: PageServer, path: str, token: str | None = None, method: str = "GET", host: str = "", scheme: str = "Bearer"
) -> Answered:
    port = int(server.url.rpartition(":")[2])
    connection = HTTPSConnection(host or own_address(), port, timeout=10, context=any_certificate())
    try:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"{scheme} {token}"} if token else {})
        connection.request(method, path, b'{"allow": true}' if method == "POST" else None, headers)
        response = connection.getresponse()
        return Answered(response.status, response.read().decode(), response.headers["WWW-Authenticate"])
    finally:
        connection.close()


@contextmanager
def serving_at(address: str, reviews: ScriptedReviews | None = None) -> Iterator[PageServer]:
    server = PageServer(ServingSettings(secure_port=free_port(), bind_address=address), Source(), reviews)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def test_probes_are_open_to_all(server: PageServer, reviews: ScriptedReviews) -> None:
    for path in ("/livez", "/readyz", "/healthz"):
        assert ask(server, path).status == ask(server, path, host="127.0.0.1").status == 200
    assert not reviews.asked


def test_loopback_is_nobody_where_others_may_come_from_there_too(server: PageServer) -> None:
    for path, method in (("/metrics", "GET"), ("/decisions", "GET"), ("/permit/shop/web", "POST")):
        answer = ask(server, path, method=method, host="127.0.0.1")
        assert (answer.status, answer.challenge) == (401, 'Bearer realm="vane"')
    assert ask(server, "/metrics", "scraper", host="127.0.0.1").status == 200
    assert ask(server, "/decisions", "scraper", host="127.0.0.1").status == 403


def test_a_server_on_loopback_shows_its_pages_but_takes_no_call_without_a_token() -> None:
    reviews = ScriptedReviews()
    with serving_at("127.0.0.1", reviews) as server:
        for path in ("/metrics", "/decisions", "/metrics/resources"):
            assert ask(server, path, host="127.0.0.1").status == 200
        assert not reviews.asked
        assert ask(server, "/permit/shop/web", method="POST", host="127.0.0.1").status == 401
        assert ask(server, "/permit/shop/web", "scraper", "POST", host="127.0.0.1").status == 403
        assert ask(server, "/permit/shop/web", "driver", "POST", host="127.0.0.1").status == 200


@pytest.mark.parametrize(
    ("token", "scheme"),
    [(None, "Bearer"), ("unknown", "Bearer"), ("scraper", "Basic"), ("", "Bearer")],
)
def test_who_brings_no_token_that_is_known_is_asked_for_one(server: PageServer, token: str | None, scheme: str) -> None:
    for path, method in (("/metrics", "GET"), ("/decisions", "GET"), ("/permit/shop/web", "POST"), ("/nowhere", "GET")):
        answer = ask(server, path, token, method, scheme=scheme)
        assert (answer.status, answer.challenge) == (401, 'Bearer realm="vane"')


def test_who_is_known_may_do_what_was_granted(server: PageServer) -> None:
    assert ask(server, "/metrics", "scraper").status == 200
    assert ask(server, "/metrics", "scraper", "HEAD").status == 200
    answer = ask(server, "/metrics", "stranger")
    expected = "eve may not get /metrics; a role with nonResourceURLs and this verb allows it\n"
    assert (answer.status, answer.text) == (403, expected)
    assert ask(server, "/decisions", "scraper").status == 403
    assert ask(server, "/permit/shop/web", "scraper", "POST").status == 403


def test_an_answer_is_gone_by_for_a_while(server: PageServer, reviews: ScriptedReviews) -> None:
    for _ in range(5):
        ask(server, "/metrics", "scraper")
        ask(server, "/metrics", "stranger")
    assert reviews.asked == Counter(
        {"scraper": 1, "stranger": 1, ("prometheus", "get", "/metrics"): 1, ("eve", "get", "/metrics"): 1}
    )


def test_many_who_wait_ask_once(server: PageServer, reviews: ScriptedReviews) -> None:
    together = threading.Barrier(2)
    reviews.wait = together.wait
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(ask, server, "/metrics", "scraper") for _ in range(8)]
        for _ in range(2):  # the token, then the path
            together.wait(10)
        assert {answer.result().status for answer in answers} == {200}
    assert set(reviews.asked.values()) == {1}


def test_nobody_is_let_in_while_the_api_server_is_silent(server: PageServer, reviews: ScriptedReviews) -> None:
    reviews.is_down = True
    answer = ask(server, "/metrics", "scraper")
    assert answer.status == 500
    assert answer.text == "the API server did not answer a review of this access; see the log\n"
    assert ask(server, "/livez").status == 200
    reviews.is_down = False
    assert ask(server, "/metrics", "scraper").status == 200  # a failure is not remembered


@pytest.mark.parametrize("is_open", [True, False])
def test_reads_can_be_open_to_all_but_calls_never(is_open: bool) -> None:
    settings = ServingSettings(secure_port=free_port(), bind_address="0.0.0.0", unauthenticated_metrics=is_open)
    server = PageServer(settings, Source())
    server.start()
    try:
        assert ask(server, "/metrics").status == (200 if is_open else 401)
        assert ask(server, "/metrics", "scraper").status == (200 if is_open else 401)
        for host in ("", "127.0.0.1"):
            assert ask(server, "/permit/shop/web", method="POST", host=host).status == 401
    finally:
        server.stop()
