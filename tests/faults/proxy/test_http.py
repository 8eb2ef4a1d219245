from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator

import pytest
import urllib3

from tests.faults.proxy.http import Answer, Call, Fault, HttpProxy, doubling, dropping, too_many_requests
from tests.faults.proxy.tcp import ProxyLoop
from tests.kube.fake_api import FakeApi, fake_api, replies, streams

PODS = "/api/v1/pods"
BIND = "/api/v1/namespaces/default/pods/p/binding"


@pytest.fixture
def server() -> Iterator[FakeApi]:
    with fake_api() as server:
        server.script("GET", PODS, replies(200, {"items": ["x" * 1000]}))
        server.script("POST", BIND, replies(201, {"status": "Success"}))
        yield server


@pytest.fixture
def proxy(server: FakeApi) -> Iterator[HttpProxy]:
    loop = ProxyLoop()
    loop.start()
    proxy = HttpProxy(loop, server.host)
    proxy.start()
    yield proxy
    proxy.stop()
    loop.stop()


@pytest.fixture
def pool(proxy: HttpProxy) -> Iterator[urllib3.PoolManager]:
    agent = {"User-Agent": "vane/0.1.0 (linux/amd64) replica-1/binder", "Authorization": "Bearer old"}
    with urllib3.PoolManager(retries=False, timeout=5.0, headers=agent) as pool:
        yield pool


def is_bind(call: Call) -> bool:
    return call.is_bind


def test_what_is_whole_passes_and_is_written_down(proxy: HttpProxy, pool: urllib3.PoolManager) -> None:
    answer = pool.request("POST", proxy.url + BIND, body=b"{}")
    assert (answer.status, answer.json()) == (201, {"status": "Success"})
    (call,) = proxy.calls
    assert (call.replica, call.is_bind, call.code) == ("replica-1", True, 201)


def test_a_code_is_answered_in_place_of_the_server(
    proxy: HttpProxy, pool: urllib3.PoolManager, server: FakeApi
) -> None:
    fault = proxy.add(Fault(is_bind, answer=too_many_requests(3)))
    answer = pool.request("POST", proxy.url + BIND, body=b"{}")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "3")
    assert pool.request("GET", proxy.url + PODS).status == 200
    assert fault.n_hit == 1
    assert server.of("POST", BIND) == []


def test_an_answer_may_be_lost_after_the_server_has_done_it(
    proxy: HttpProxy, pool: urllib3.PoolManager, server: FakeApi
) -> None:
    proxy.add(Fault(is_bind, resets_after=True))
    with pytest.raises(urllib3.exceptions.ProtocolError):
        pool.request("POST", proxy.url + BIND, body=b"{}")
    assert len(server.of("POST", BIND)) == 1


def test_a_request_may_be_lost_before(proxy: HttpProxy, pool: urllib3.PoolManager, server: FakeApi) -> None:
    proxy.add(Fault(is_bind, resets_before=True))
    with pytest.raises(urllib3.exceptions.ProtocolError):
        pool.request("POST", proxy.url + BIND, body=b"{}")
    assert server.of("POST", BIND) == []


def test_a_body_may_end_early_or_be_wrong(proxy: HttpProxy, pool: urllib3.PoolManager) -> None:
    proxy.add(Fault(cut_after=100))
    with pytest.raises(urllib3.exceptions.ProtocolError):
        pool.request("GET", proxy.url + PODS)
    proxy.mend()
    whole = pool.request("GET", proxy.url + PODS).data
    proxy.add(Fault(is_corrupt=True))
    broken = pool.request("GET", proxy.url + PODS).data
    assert len(broken) == len(whole)
    assert broken != whole


@pytest.mark.parametrize("fault", [Fault(delay_s=0.2), Fault(answer_delay_s=0.2)], ids=["asked late", "answered late"])
def test_a_call_may_be_late(fault: Fault, proxy: HttpProxy, pool: urllib3.PoolManager) -> None:
    proxy.add(fault)
    begun_s = time.monotonic()
    assert pool.request("GET", proxy.url + PODS).status == 200
    assert time.monotonic() - begun_s >= 0.2


def test_what_hangs_goes_on_when_the_fault_is_mended(proxy: HttpProxy, pool: urllib3.PoolManager) -> None:
    proxy.add(Fault(hangs=True))
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        pool.request("GET", proxy.url + PODS, timeout=0.2)
    proxy.mend()
    assert pool.request("GET", proxy.url + PODS).status == 200


def test_a_share_of_the_calls_is_hit(proxy: HttpProxy, pool: urllib3.PoolManager) -> None:
    proxy.add(Fault(share=0.3, answer=Answer(500)))
    codes = [pool.request("GET", proxy.url + PODS).status for _ in range(100)]
    assert 15 <= codes.count(500) <= 45


def test_lines_of_a_watch_are_lost_and_doubled(proxy: HttpProxy, pool: urllib3.PoolManager, server: FakeApi) -> None:
    lines = [json.dumps({"type": "ADDED", "object": {"n": n}}).encode() + b"\n" for n in range(200)]
    server.script("WATCH", PODS, streams(*lines))

    def seen() -> list[int]:
        body = pool.request("GET", f"{proxy.url}{PODS}?watch=1").data
        return [json.loads(line)["object"]["n"] for line in body.splitlines()]

    assert seen() == list(range(200))
    proxy.add(Fault(lines=dropping(0.1, random.Random(1))))
    dropped = seen()
    assert 160 <= len(dropped) < 200
    assert dropped == sorted(dropped)
    proxy.mend()
    proxy.add(Fault(lines=doubling(0.1, random.Random(1))))
    doubled = seen()
    assert sorted(set(doubled)) == list(range(200))
    assert 200 < len(doubled) <= 240


def test_tokens_are_exchanged(proxy: HttpProxy, pool: urllib3.PoolManager, server: FakeApi) -> None:
    proxy.token_of = {"old": "real"}.__getitem__
    pool.request("GET", proxy.url + PODS)
    assert server.received[-1].headers["Authorization"] == "Bearer real"


def test_watches_are_cut(proxy: HttpProxy, pool: urllib3.PoolManager, server: FakeApi) -> None:
    server.script("WATCH", PODS, streams(b'{"type": "ADDED"}\n', then="hang"))
    answer = pool.request("GET", f"{proxy.url}{PODS}?watch=1", preload_content=False)
    stream = answer.stream()
    assert next(stream) == b'{"type": "ADDED"}\n'
    proxy.cut_watches()
    with pytest.raises(urllib3.exceptions.ProtocolError):
        next(stream)
