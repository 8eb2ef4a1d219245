"""The wire between the two processes: what is sent arrives, and an end is always noticed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.app.wire import AskPage, FromRefresher, Notification, Reply, ToRefresher, Wire
from scheduler.framework.instructions import Receiver
from scheduler.loop.pages.metrics import MetricsQuery
from scheduler.serve.cloud_event import Event
from tests.support.waiting import wait_until

OnAsk = Callable[[FromRefresher], None]


class Ends:
    """Both ends over a socket pair; `asked` and `replied` are what arrived."""

    def __init__(self, on_ask: OnAsk | None = None) -> None:
        ours, theirs = socket.socketpair()
        self.asked: list[FromRefresher] = []
        self.replied: list[ToRefresher] = []
        self.ours_closed, self.theirs_closed = threading.Event(), threading.Event()
        receive = on_ask or self.asked.append
        self.ours: Wire[ToRefresher, FromRefresher] = Wire(
            ours.detach(), FromRefresher, receive, self.ours_closed.set, "ours"
        )
        self.theirs: Wire[FromRefresher, ToRefresher] = Wire(
            theirs.detach(), ToRefresher, self.replied.append, self.theirs_closed.set, "theirs"
        )
        self.ours.start()
        self.theirs.start()


def test_messages_arrive_in_order_both_ways() -> None:
    ends = Ends()
    for number in range(100):
        ends.theirs.send(AskPage(number, MetricsQuery()))
        ends.ours.send(Reply(number, b"x" * 10_000))

    wait_until(lambda: len(ends.asked) == len(ends.replied) == 100, 5.0, "all messages")

    assert ends.asked == [AskPage(number, MetricsQuery()) for number in range(100)]
    ends.ours.close()


def test_closing_sends_what_is_queued_and_is_noticed_on_both_ends() -> None:
    ends = Ends()
    ends.ours.send(Reply(1, b"last words"))

    ends.ours.close()

    assert ends.theirs_closed.wait(5.0)
    assert ends.ours_closed.wait(5.0)
    assert ends.replied == [Reply(1, b"last words")]


@pytest.mark.parametrize("fault", ["\ud800", 2**70, object()], ids=["no text", "too large", "another type"])
def test_a_message_that_cannot_be_sent_is_dropped_aloud_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture, fault: Any
) -> None:
    ends = Ends()
    ends.ours.send(Notification(Event(Receiver("http://h/"), "id", fault, "shop/web", b"{}")))
    ends.ours.send(Reply(1, b"after it"))

    wait_until(lambda: ends.replied == [Reply(1, b"after it")], 5.0, "the next message")
    assert "a message between the processes is dropped: it cannot be sent" in caplog.text
    assert not ends.ours_closed.is_set()
    ends.ours.close()


def test_a_fault_in_what_receives_ends_the_wire_loudly(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: FromRefresher) -> None:
        raise ZeroDivisionError

    ends = Ends(fail)
    ends.theirs.send(AskPage(1, MetricsQuery()))

    assert ends.ours_closed.wait(5.0)
    assert ends.theirs_closed.wait(5.0)
    assert "the connection between two of Vane's processes failed" in caplog.text
