"""The refresher process behind its link: notifications go out, calls come in, an end of it is survived."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from scheduler.app.refresher_link import RefresherLink
from scheduler.app.wire import Start
from scheduler.framework.instructions import Notify, Receiver
from scheduler.loop.messages import Inbox, PageAsked, PermitCall, PermitCalled
from scheduler.loop.pages.signals import RuleFigures, SignalsQuery
from scheduler.metrics import Metrics
from scheduler.model.rules import RuleSet
from scheduler.rules.shown import Sort
from scheduler.settings.settings import ServingSettings, Settings
from scheduler.signals.loader import RuleLoader
from scheduler.sim.apiserver import kubeconfig
from tests.kube.fake_api import FakeApi, fake_api, hangs, replies
from tests.serve.test_http import any_certificate
from tests.support.ports import free_port
from tests.support.waiting import wait_until

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
RULE = RuleFigures("hot", "cpu", "enforce", 3.0, True, True, False, 1)


class Running:
    """A link and its process; `api` reviews the callers of that one, and lets them do all."""

    def __init__(self, api: FakeApi, folder: Path) -> None:
        api.script("POST", TOKEN_REVIEWS, replies(201, {"status": {"authenticated": True, "user": {"username": "u"}}}))
        api.script("POST", ACCESS_REVIEWS, replies(201, {"status": {"allowed": True}}))
        config = folder / "kubeconfig"
        config.write_text(kubeconfig(api.host))
        self.port = free_port()
        self.inbox = Inbox()
        self.metrics = Metrics(CollectorRegistry())
        self.problems: list[str] = []
        settings = Settings(kubeconfig=config, serving=ServingSettings(secure_port=self.port))
        loader = RuleLoader((), lambda _: None, lambda _: None)
        start = Start(settings, loader.state, {"deciding": os.getpid()}, "test")
        self.link = RefresherLink(start, RuleSet(), self.inbox, self.problems.append, self.metrics)
        self.link.start()
        wait_until(self.serves, 30.0, "the pages")

    def serves(self) -> bool:
        try:
            return self.get("/metrics/slis")[0] == 200
        except OSError:
            return False

    def call(self, body: object) -> int:
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=10, context=any_certificate())
        try:
            headers = {"Content-Type": "application/json", "Authorization": "Bearer driver"}
            connection.request("POST", "/permit/shop/web", json.dumps(body), headers)
            response = connection.getresponse()
            response.read()
            return response.status
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, bytes]:
        connection = HTTPSConnection("127.0.0.1", self.port, timeout=10, context=any_certificate())
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def count(self, result: str) -> float:
        return float(self.metrics.registry.get_sample_value("vane_notifications_total", {"result": result}) or 0)


@contextmanager
def started(folder: Path) -> Iterator[Running]:
    with fake_api() as api:
        running = Running(api, folder)
        yield running
        running.link.stop()
    assert running.problems == []


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for the tests that leave it running: a process takes seconds to start."""
    with started(tmp_path_factory.mktemp("running")) as running:
        yield running


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Running]:
    with started(tmp_path) as running:
        yield running


@pytest.fixture
def receiver() -> Iterator[FakeApi]:
    with fake_api() as server:
        server.script("POST", "/hook", replies(200, {}))
        yield server


def notify(server: FakeApi, path: str = "/hook", data: Any = None) -> Notify:
    return Notify(Receiver(f"{server.host}{path}"), "u.n1", "dev.vane.pod.bound", "shop/web", data or {"node": "n1"})


def test_notifications_are_delivered_by_the_other_process(running: Running, receiver: FakeApi) -> None:
    running.link.notify(notify(receiver))
    (request,) = wait_until(lambda: receiver.of("POST", "/hook"))
    assert request.json["source"] == "/vane/kube-system/vane"
    assert request.json["data"] == {"node": "n1"}


def test_what_is_no_json_is_told_and_does_not_end_the_wire(
    running: Running, receiver: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    running.link.notify(notify(receiver, data={"node": object()}))
    assert running.count("failed") == 1
    assert "a plugin's notification is not valid JSON" in caplog.text
    running.link.notify(notify(receiver))
    wait_until(lambda: receiver.of("POST", "/hook"))


def test_the_last_notifications_go_out_before_the_end(own: Running, receiver: FakeApi) -> None:
    for _ in range(20):
        own.link.notify(notify(receiver))
    own.link.stop()
    assert len(receiver.of("POST", "/hook")) == 20


def test_a_receiver_that_hangs_does_not_delay_the_end_for_long(own: Running, receiver: FakeApi) -> None:
    receiver.script("POST", "/stuck", hangs)
    own.link.notify(notify(receiver, "/stuck"))
    wait_until(lambda: receiver.of("POST", "/stuck"))
    own.link.stop()
    own.link.notify(notify(receiver))
    assert own.count("dropped") == 1


@pytest.mark.parametrize(("waiting", "status"), [(True, 200), (False, 404)])
def test_a_call_is_carried_to_the_deciding_thread_and_its_answer_back(
    running: Running, waiting: bool, status: int
) -> None:
    with ThreadPoolExecutor(1) as caller:
        answer = caller.submit(running.call, {"allow": False, "message": "not today"})
        message = running.inbox.take(10.0)
        assert isinstance(message, PermitCalled)
        assert message.call == PermitCall("shop", "web", False, "not today")
        message.reply(waiting)
        assert answer.result(10.0) == status


def test_a_page_asks_the_deciding_thread_slice_by_slice(running: Running) -> None:
    with ThreadPoolExecutor(1) as reader:
        page = reader.submit(running.get, "/signals?node=n1&sort=age&limit=3")
        for goes_on, slice_ in ((False, msgspec.msgpack.encode([RULE])), (True, b"")):
            message = running.inbox.take(10.0)
            assert isinstance(message, PageAsked)
            assert (message.query, message.goes_on) == (SignalsQuery("", "n1", Sort.AGE, 3), goes_on)
            message.reply(slice_)
        status, body = page.result(10.0)
    assert status == 200
    assert [rule["name"] for rule in json.loads(body)["rules"]] == ["hot"]


def test_a_page_over_which_the_deciding_thread_runs_into_a_fault_is_a_500(running: Running) -> None:
    with ThreadPoolExecutor(1) as reader:
        page = reader.submit(running.get, "/signals")
        message = running.inbox.take(10.0)
        assert isinstance(message, PageAsked)
        message.failed("KeyError: 'cpu'")
        assert page.result(10.0) == (500, b"/signals: failed with AnswerFault; see the log\n")


def test_without_a_refresher_process_notifications_are_dropped_and_counted(own: Running, receiver: FakeApi) -> None:
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    *_, pid = [pid for pid in children if "refresher_process" in Path(f"/proc/{pid}/cmdline").read_text()]
    os.kill(int(pid), signal.SIGKILL)  # our own was started last

    def dropped() -> bool:
        own.link.notify(notify(receiver))
        return own.count("dropped") > 0

    wait_until(dropped)
    wait_until(own.serves, 30.0, "the next refresher process")
    before = len(receiver.of("POST", "/hook"))
    own.link.notify(notify(receiver))
    wait_until(lambda: len(receiver.of("POST", "/hook")) == before + 1)
