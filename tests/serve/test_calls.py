"""`POST /permit/NAMESPACE/NAME`: who may call, what is taken, what is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPSConnection
from typing import Any, NamedTuple

import pytest

from scheduler.loop.messages import PermitCall
from scheduler.serve.calls import MAX_MESSAGE
from scheduler.serve.http import PageServer
from scheduler.settings.settings import ServingSettings
from tests.serve.source import Source
from tests.serve.test_access import ScriptedReviews
from tests.serve.test_http import any_certificate, request
from tests.support.ports import free_port

JSON = "application/json"
TOKEN = {"Authorization": "Bearer driver"}


class Answered(NamedTuple):
    status: int
    body: Any


@pytest.fixture
def server(source: Source) -> Iterator[PageServer]:
    server = PageServer(ServingSettings(secure_port=free_port()), source, ScriptedReviews())
    server.start()
    yield server
    server.stop()


def call(
    server: PageServer,
    body: object,
    path: str = "/permit/shop/web-1",
    content_type: str = JSON,
) -> Answered:
    port = int(server.url.rpartition(":")[2])
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = HTTPSConnection("127.0.0.1", port, timeout=10, context=any_certificate())
    try:
        connection.request("POST", path, data, TOKEN | ({"Content-Type": content_type} if content_type else {}))
        response = connection.getresponse()
        return Answered(response.status, json.loads(response.read()))
    finally:
        connection.close()


def test_a_pod_that_waits_is_set_free(server: PageServer, source: Source) -> None:
    assert call(server, {"allow": True}) == (200, {"waiting": True})
    assert call(server, {"allow": False, "message": "not today"}) == (200, {"waiting": True})
    assert call(server, {"allow": False}, content_type="application/json; charset=utf-8").status == 200
    assert source.calls == [
        PermitCall("shop", "web-1", True, ""),
        PermitCall("shop", "web-1", False, "not today"),
        PermitCall("shop", "web-1", False, ""),
    ]


def test_a_pod_that_does_not_wait(server: PageServer, source: Source) -> None:
    source.waiting = False
    message = "no Pod shop/web-1 waits here; of all replicas only the leader knows the Pods that wait"
    assert call(server, {"allow": True}) == (404, {"waiting": False, "message": message})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"", "truncated", id="empty"),
        pytest.param(b"allow", "malformed", id="no JSON"),
        pytest.param(b"\xff", "malformed", id="no text"),
        pytest.param([], "Expected `object`, got `array`", id="a list"),
        pytest.param({}, "missing required field `allow`", id="no decision"),
        pytest.param({"allow": "true"}, "Expected `bool`, got `str` - at `$.allow`", id="text"),
        pytest.param({"allow": 1}, "Expected `bool`, got `int`", id="number"),
        pytest.param({"allow": True, "Message": ""}, "unknown field `Message`", id="unknown field"),
        pytest.param({"allow": True, "message": "go"}, "message: goes with allow false only", id="message on yes"),
        pytest.param(
            {"allow": False, "message": "x" * (MAX_MESSAGE + 1)}, "at most 1000 characters, got 1001", id="too long"
        ),
    ],
)
def test_bad_input_is_told_and_changes_nothing(server: PageServer, source: Source, body: object, words: str) -> None:
    status, answer = call(server, body)
    assert status == 400
    assert words in answer["message"]
    assert source.calls == []


def test_a_form_of_some_web_page_is_refused(server: PageServer, source: Source) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", ""):
        status, answer = call(server, {"allow": True}, content_type=content_type)
        assert status == 415
        assert answer["message"].endswith("Write application/json")
    assert source.calls == []


def test_other_methods_and_places(server: PageServer, source: Source) -> None:
    path = "/permit/shop/web-1"
    answer = request(server, path)
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    assert request(server, path, "OPTIONS").status == 401, "a web page is told nothing before its call"
    assert request(server, "/permit/shop").status == 404
    assert source.calls == []


def test_a_deciding_thread_that_does_not_answer(server: PageServer, source: Source) -> None:
    source.waiting = None
    connection = HTTPSConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=10, context=any_certificate())
    connection.request("POST", "/permit/shop/web-1", b'{"allow": true}', TOKEN | {"Content-Type": JSON})
    response = connection.getresponse()
    assert (response.status, response.read()) == (503, b"/permit/shop/web-1: no answer in 2 s\n")
    connection.close()
