from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from scheduler.kube.election.elector import Elector
from scheduler.kube.election.settings import ElectionSettings, Times
from tests.kube.fake_api import Exchange, FakeApi, cuts, hangs, raw, replies, resets, status
from tests.kube.lease_server import LEASE, LEASES, PODS, Heard, LeaseServer, StartElector, make_elector
from tests.support.waiting import wait_until

EVENTS = "/apis/events.k8s.io/v1/namespaces/kube-system/events"
UNAVAILABLE = replies(503, status(503, "ServiceUnavailable", "etcd is away"))


@pytest.fixture
def lease(server: FakeApi) -> LeaseServer:
    return LeaseServer(server)


@pytest.fixture
def elect(server: FakeApi) -> Iterator[StartElector]:
    started: list[Elector] = []

    def start(identity: str = "us", **options: Any) -> tuple[Elector, Heard]:
        elector, heard = make_elector(server.host, identity, **options)
        elector.start()
        started.append(elector)
        return elector, heard

    yield start
    for elector in started:
        elector.release(2.0)


def leading(started: tuple[Elector, Heard]) -> tuple[Elector, Heard]:
    elector, heard = started
    wait_until(lambda: heard.leading)
    assert elector.is_leading
    return elector, heard


def once(responder: Callable[[Exchange], None], method: str, lease: LeaseServer) -> Callable[[Exchange], None]:
    """Let one request of a method have this answer, all others the right one."""
    left = [responder]

    def respond(exchange: Exchange) -> None:
        if exchange.received.method == method and left:
            left.pop()(exchange)
        else:
            lease.do(exchange)

    return respond


def test_a_missing_lease_is_created_and_renewed(lease: LeaseServer, elect: StartElector) -> None:
    started = time.monotonic()
    elector, heard = leading(elect())
    assert elector.holder == "us"
    first = dict(lease.spec)
    assert (first["holderIdentity"], first["leaseDurationSeconds"], first["leaseTransitions"]) == ("us", 1, 0)
    assert heard.times_s["term"] < heard.times_s["leading"]
    wait_until(lambda: len(heard.terms) >= 4)
    assert lease.spec["acquireTime"] == first["acquireTime"]
    assert lease.spec["renewTime"] > first["renewTime"]
    for term in heard.terms:
        assert term.ends_at - term.not_after == pytest.approx(0.4)
        assert started + 0.6 <= term.not_after <= time.monotonic() + 0.6
    assert [term.not_after for term in heard.terms] == sorted(term.not_after for term in heard.terms)
    assert [roll_call.resource_version for roll_call in heard.leading] == [500]
    assert lease.server.of("GET", LEASES) == []


def test_the_other_replica_waits_and_takes_over_at_once_after_a_release(
    lease: LeaseServer, elect: StartElector
) -> None:
    one, _ = leading(elect("one"))
    two, heard = elect("two")
    wait_until(lambda: two.holder == "one")
    wait_until(lambda: lease.n_watches)
    time.sleep(1.5)  # longer than the lease: renewals keep it
    assert heard.terms == []
    released = time.monotonic()
    assert one.release(2.0)
    leading((two, heard))
    assert heard.times_s["leading"] - released < 0.5
    assert not one.is_leading
    assert (lease.spec["holderIdentity"], lease.spec["leaseTransitions"]) == ("two", 1)


def test_a_release_names_nobody_and_keeps_the_count(lease: LeaseServer, elect: StartElector) -> None:
    lease.hold("", leaseTransitions=6)
    elector, heard = leading(elect())
    assert lease.spec["leaseTransitions"] == 7
    assert elector.release(2.0)
    assert (lease.spec["holderIdentity"], lease.spec["leaseDurationSeconds"]) == ("", 1)
    assert lease.spec["leaseTransitions"] == 7
    assert heard.lost == []
    before = len(lease.server.received)
    time.sleep(0.5)
    assert len(lease.server.received) == before


def test_who_stands_by_ends_without_a_trace(lease: LeaseServer, elect: StartElector) -> None:
    lease.hold("other", leaseDurationSeconds=60)
    elector, heard = elect()
    wait_until(lambda: elector.holder == "other")
    assert elector.release(2.0)
    assert heard == Heard()
    assert lease.server.of("PUT", LEASE) == []


def test_a_kill_is_noticed_when_the_lease_of_the_dead_has_ended(lease: LeaseServer, elect: StartElector) -> None:
    """Its own duration, that is, not ours."""
    lease.hold("other", leaseDurationSeconds=2)
    _, heard = elect()
    wait_until(lambda: lease.n_watches)
    time.sleep(0.5)
    renewed = time.monotonic()
    lease.hold("other", leaseDurationSeconds=2)
    wait_until(lambda: heard.leading)
    assert 2.0 <= heard.times_s["term"] - renewed < 2.5


def test_a_deleted_lease_is_made_again_by_its_holder(lease: LeaseServer, elect: StartElector) -> None:
    _, one = leading(elect("one"))
    two, waiting = elect("two")
    wait_until(lambda: two.holder == "one")
    wait_until(lambda: lease.n_watches)
    acquired = lease.spec["acquireTime"]
    lease.delete()
    wait_until(lambda: lease.lease is not None)
    time.sleep(1.2)
    assert (lease.spec["holderIdentity"], lease.spec["acquireTime"]) == ("one", acquired)
    assert (one.lost, waiting.terms) == ([], [])


@pytest.mark.parametrize("wall_ns", [[0, 2**62, 10**18], [2**62, 0, 10**9]])
def test_steps_of_the_wall_clock_change_nothing(lease: LeaseServer, elect: StartElector, wall_ns: list[int]) -> None:
    steps = (wall_ns[i % 3] for i in count())
    one, heard = leading(elect("one", times=Times(now_ns=lambda: next(steps))))
    _, other = elect("two", times=Times(now_ns=lambda: 10**17))
    time.sleep(1.5)
    assert one.is_leading
    assert (heard.lost, other.terms) == ([], [])


# A server in trouble


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(hangs, id="hangs"),
        pytest.param(cuts, id="closes"),
        pytest.param(resets, id="resets"),
        pytest.param(UNAVAILABLE, id="503"),
        pytest.param(replies(429, status(429, "TooManyRequests", ""), {"Retry-After": "30"}), id="429"),
        pytest.param(replies(403, status(403, "Forbidden", "no rights")), id="403"),
        pytest.param(raw(200, b"<html>a proxy</html>"), id="a page"),
    ],
)
def test_the_lease_is_lost_at_the_deadline(lease: LeaseServer, elect: StartElector, fault: Any) -> None:
    elector, heard = leading(elect())
    lease.fault = fault
    (reason,) = wait_until(lambda: heard.lost)
    late_s = heard.times_s["lost"] - heard.terms[-1].not_after
    assert 0 <= late_s < 0.2
    assert reason.startswith("the lease could not be renewed for 0.6 s")
    assert not elector.is_leading
    lease.fault = None
    n_terms = len(heard.terms)
    time.sleep(0.5)
    assert (len(heard.lost), len(heard.terms)) == (1, n_terms)
    assert not elector.release(1.0)


def test_a_trickling_answer_does_not_outlast_the_deadline(lease: LeaseServer, elect: StartElector) -> None:
    """Every byte comes within the read timeout, the answer never: only the deadline's own thread sees that."""
    _, heard = leading(elect())

    def trickle(exchange: Exchange) -> None:
        exchange.handler.send_response(200)
        exchange.handler.send_header("Content-Length", "100000")
        exchange.handler.end_headers()
        while not exchange.ended.wait(0.05):
            exchange.handler.wfile.write(b" ")

    lease.fault = trickle
    wait_until(lambda: heard.lost)
    assert 0 <= heard.times_s["lost"] - heard.terms[-1].not_after < 0.2


@pytest.mark.parametrize("fault", [pytest.param(cuts, id="closes"), pytest.param(UNAVAILABLE, id="503")])
def test_a_short_fault_costs_nothing(lease: LeaseServer, elect: StartElector, fault: Any) -> None:
    _, heard = leading(elect())
    lease.fault = fault
    time.sleep(0.35)
    lease.fault = None
    n_terms = len(heard.terms)
    wait_until(lambda: len(heard.terms) >= n_terms + 3)
    assert heard.lost == []


def test_a_lost_answer_is_no_lost_lease(lease: LeaseServer, elect: StartElector) -> None:
    """The update was carried out: the next one finds another version, and ourselves as its holder."""
    _, heard = leading(elect())

    def carry_out_and_cut(exchange: Exchange) -> None:
        lease.carry_out(exchange)
        exchange.cut()

    lease.fault = once(carry_out_and_cut, "PUT", lease)
    n_terms = len(heard.terms)
    wait_until(lambda: len(heard.terms) >= n_terms + 3)
    assert heard.lost == []
    assert lease.server.of("GET", LEASE)


def test_a_label_by_somebody_is_kept(lease: LeaseServer, elect: StartElector) -> None:
    _, heard = leading(elect())
    lease.label()
    n_terms = len(heard.terms)
    wait_until(lambda: len(heard.terms) >= n_terms + 2)
    assert lease.lease is not None
    assert lease.lease["metadata"]["labels"] == {"mine": "kept"}
    assert heard.lost == []


@pytest.mark.parametrize(
    ("holder", "reason"), [("other", "the lease is 'other''s now"), ("", "the lease was released")]
)
def test_another_holder_is_a_loss_at_once(lease: LeaseServer, elect: StartElector, holder: str, reason: str) -> None:
    _, heard = leading(elect())
    lease.hold(holder)
    assert wait_until(lambda: heard.lost) == [reason]
    assert heard.times_s["lost"] < heard.terms[-1].not_after
    assert lease.spec["holderIdentity"] == holder


def test_an_unanswered_attempt_to_take_it_is_made_good(lease: LeaseServer, elect: StartElector) -> None:
    """The Lease names us, and we don't know: nobody leads until we have asked."""
    lease.hold("")

    def carry_out_and_cut(exchange: Exchange) -> None:
        lease.carry_out(exchange)
        exchange.cut()

    lease.fault = once(carry_out_and_cut, "PUT", lease)
    leading(elect())
    assert lease.spec["leaseTransitions"] == 1


def test_an_answer_that_came_too_late_is_none(lease: LeaseServer, elect: StartElector) -> None:
    def slowly(exchange: Exchange) -> None:
        # Two reads, each within its timeout, together beyond the deadline.
        code, body = lease.carry_out(exchange)
        time.sleep(0.25)
        exchange.handler.send_response(code)
        exchange.handler.send_header("Content-Length", str(len(data := _json(body))))
        exchange.handler.end_headers()
        for half in (data[:100], data[100:]):
            time.sleep(0.25)
            exchange.handler.wfile.write(half)

    lease.fault = once(slowly, "POST", lease)
    _, heard = elect()
    wait_until(lambda: len(lease.server.of("PUT", LEASE)) >= 1)
    wait_until(lambda: heard.leading)
    assert heard.terms[0].not_after - heard.times_s["term"] > 0.3, "a term from the second try"


def test_standing_by_outlives_every_fault(lease: LeaseServer, elect: StartElector) -> None:
    lease.fault = lease.watch_fault = UNAVAILABLE
    _, heard = elect()
    time.sleep(1.0)
    assert 3 <= len(lease.server.of("GET", LEASE)) <= 8
    for fault in (hangs, resets, raw(200, b"<html>"), replies(404, status(404, "NotFound", "no such namespace"))):
        lease.fault = fault
        time.sleep(0.4)
    assert heard == Heard()
    lease.fault = None
    wait_until(lambda: heard.leading)


def test_without_a_watch_the_lease_is_asked_for_in_every_period(lease: LeaseServer, elect: StartElector) -> None:
    lease.watch_fault = hangs
    lease.hold("other", leaseDurationSeconds=30)
    elector, heard = elect(times=Times(random=lambda: 0.0))
    wait_until(lambda: elector.holder == "other")
    before = len(lease.server.of("GET", LEASE))
    time.sleep(1.5)
    assert 7 <= len(lease.server.of("GET", LEASE)) - before <= 11
    released = time.monotonic()
    lease.hold("")
    wait_until(lambda: heard.leading)
    assert heard.times_s["term"] - released < 0.5


def test_with_a_watch_nobody_is_asked(lease: LeaseServer, elect: StartElector) -> None:
    leading(elect("one"))
    two, _ = elect("two")
    wait_until(lambda: two.holder == "one")
    wait_until(lambda: lease.n_watches)
    time.sleep(0.3)
    before = len(lease.server.of("GET", LEASE))
    time.sleep(1.5)
    assert len(lease.server.of("GET", LEASE)) - before <= 1


def test_a_server_that_hangs_does_not_hold_the_end_up(lease: LeaseServer, elect: StartElector) -> None:
    elector, heard = leading(elect(settings=ElectionSettings(10.0, 8.0, 0.2)))
    lease.fault = hangs
    started = time.monotonic()
    assert not elector.release(0.5)
    assert time.monotonic() - started < 1.0
    assert heard.lost == []


# The roll call


def test_the_roll_is_called_until_it_is_answered_while_renewals_go_on(lease: LeaseServer, elect: StartElector) -> None:
    page = {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [{"metadata": {"uid": "u1"}}]}
    last = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"uid": "u2"}}]}
    gone = replies(410, status(410, "Expired", "too old"))
    no_list = raw(200, b"<html>")
    no_version = replies(200, {"metadata": {}, "items": []})
    slow = threading.Event()

    def slowly(exchange: Exchange) -> None:
        slow.wait(1.0)
        exchange.json(200, page)

    lease.server.script(
        "GET", PODS, UNAVAILABLE, no_list, no_version, slowly, gone, replies(200, page), replies(200, last)
    )
    elector, heard = elect()
    wait_until(lambda: len(heard.terms) >= 5)
    assert heard.leading == []
    assert elector.is_leading
    (roll_call,) = wait_until(lambda: heard.leading)
    assert (roll_call.resource_version, roll_call.pending) == (7, frozenset({"u1", "u2"}))
    asked = lease.server.of("GET", PODS)
    assert asked[0].query == {"fieldSelector": "spec.nodeName=,spec.schedulerName=vane", "limit": "500"}
    assert asked[-1].query["continue"] == "more"
    assert {one.headers["Accept"] for one in asked} == {
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    }


def test_each_scheduler_is_called_and_the_oldest_version_counts(lease: LeaseServer, elect: StartElector) -> None:
    def answer(exchange: Exchange) -> None:
        name = exchange.received.query["fieldSelector"].partition("schedulerName=")[2]
        version = {"vane": "31", "a\\,b": "30"}[name]
        exchange.json(200, {"metadata": {"resourceVersion": version}, "items": [{"metadata": {"uid": name}}]})

    lease.server.script("GET", PODS, answer)
    _, heard = leading(elect(names=("vane", "a,b")))
    assert heard.leading[0].resource_version == 30
    assert heard.leading[0].pending == {"vane", "a\\,b"}


# Who asks, what is told


def test_requests_name_the_replica_and_its_part(lease: LeaseServer, elect: StartElector) -> None:
    lease.hold("other")
    elector, _ = leading(elect("host_1"))
    elector.release(2.0)
    agents = {one.headers["User-Agent"] for one in lease.server.received}
    assert len(agents) == 1
    (agent,) = agents
    assert agent.startswith("vane/")
    assert agent.endswith(") host_1/leader-election")


def test_events_tell_of_both_ends(lease: LeaseServer, elect: StartElector) -> None:
    lease.server.script("POST", EVENTS, replies(201, {}))
    elector, _ = leading(elect())
    wait_until(lambda: lease.server.of("POST", EVENTS))
    elector.release(2.0)
    first, last = (one.json for one in lease.server.of("POST", EVENTS))
    assert (first["note"], last["note"]) == ("us became leader", "us stopped leading")
    assert (first["regarding"]["kind"], first["regarding"]["uid"], first["reason"]) == (
        "Lease",
        "lease-uid",
        "LeaderElection",
    )


@pytest.mark.parametrize("number", [pytest.param(1, id="the first"), pytest.param(3, id="a renewal")])
def test_a_fault_of_ours_while_leading_is_a_loss(lease: LeaseServer, elect: StartElector, number: int) -> None:
    elector, heard = make_elector(lease.server.host, "us")
    heard.fail_on_term = number
    elector.start()
    (reason,) = wait_until(lambda: heard.lost)
    assert "a bug" in reason
    assert not elector.is_leading
    assert not elector.release(1.0)


def test_a_fault_of_ours_while_standing_by_is_not(
    lease: LeaseServer, elect: StartElector, caplog: pytest.LogCaptureFixture
) -> None:
    """Chance is asked for after each answer, so this one fails between two of them."""
    chances = iter([ZeroDivisionError("a bug")])

    def chance() -> float:
        for fault in chances:
            raise fault
        return 0.0

    _, heard = elect(times=Times(random=chance))
    wait_until(lambda: heard.leading)
    assert "standing by goes on" in caplog.text


def _json(body: Any) -> bytes:

    return json.dumps(body).encode()
