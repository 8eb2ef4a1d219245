"""How soon a reflector finds an API server that is back after an outage."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from scheduler.kube.backoff import BackoffSettings
from scheduler.kube.reflector import Reflector, ReflectorSettings
from scheduler.kube.resources import PODS
from scheduler.kube.transport import Transport
from scheduler.kube.watch_stream import Changed, Replaced
from tests.kube.fake_api import FakeApi, pod, pod_list, replies, resets, status, streams
from tests.support.waiting import wait_until

PATH = PODS.path


@contextmanager
def listing(transport: Transport, backoff: BackoffSettings) -> Iterator[list[list[str]]]:
    """Run a reflector; what it has listed is there as soon as it comes, by names of Pods."""
    lists: list[list[str]] = []

    def sink(message: Replaced | Changed) -> None:
        if isinstance(message, Replaced):
            lists.append([one.metadata.name for one in message.objects])

    settings = ReflectorSettings(list_timeout_s=2.0, watch_read_timeout_s=5.0, backoff=backoff)
    reflector = Reflector(PODS, transport, sink, settings=settings, random=random.Random(1))
    reflector.start()
    try:
        yield lists
    finally:
        reflector.stop()


def test_lists_soon_after_an_api_server_that_was_gone_for_long_is_back(server: FakeApi, transport: Transport) -> None:
    server.script("GET", PATH, *[resets] * 12, replies(200, pod_list(pod("a"), version=5)))
    server.script("WATCH", PATH, streams(then="hang"))
    # As where a server answers, the last of the delays would be 40 s.
    with listing(transport, BackoffSettings(first_s=0.02, longest_s=600.0, longest_unanswered_s=0.1)) as lists:
        wait_until(lambda: lists == [["a"]], 5.0)


def test_lists_soon_where_a_watch_has_expired_while_the_api_server_failed(
    server: FakeApi, transport: Transport
) -> None:
    server.script("GET", PATH, replies(200, pod_list(version=5)), replies(200, pod_list(pod("a"), version=50)))
    failed, expired = replies(503, status(503, "Unavailable", "")), replies(410, status(410, "Expired", "too old"))
    server.script("WATCH", PATH, *[failed] * 7, expired, streams(then="hang"))
    with listing(transport, BackoffSettings(first_s=0.02, longest_s=60.0)) as lists:
        wait_until(lambda: len(lists) == 2)
    watched_s = [one.at_s for one in server.of("GET", PATH) if "watch" in one.query]
    listed_s = [one.at_s for one in server.of("GET", PATH) if "watch" not in one.query]
    # Otherwise it would wait twice as long as for the last try, 2.56 s.
    assert listed_s[1] - watched_s[7] < 1.0
