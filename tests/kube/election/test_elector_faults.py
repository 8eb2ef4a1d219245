from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.kube.election.settings import ElectionSettings
from tests.kube.election.lease_server import LEASE, UNAVAILABLE, Heard, LeaseServer, StartElector, leading
from tests.kube.fake_api import Exchange, cuts, hangs, raw, replies, resets, status
from tests.support.clocks import PatientClock
from tests.support.waiting import wait_until


def once(responder: Callable[[Exchange], None], method: str, lease: LeaseServer) -> Callable[[Exchange], None]:
    """Let one request of a method have this answer, all others the right one."""
    left = [responder]

    def respond(exchange: Exchange) -> None:
        if exchange.received.method == method and left:
            left.pop()(exchange)
        else:
            lease.do(exchange)

    return respond


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
def test_the_lease_is_lost_at_the_deadline(
    lease: LeaseServer, elect: StartElector, fault: Any, clock: PatientClock
) -> None:
    elector, heard = leading(elect())
    lease.fault = fault
    (reason,) = wait_until(lambda: heard.lost)
    late_s = heard.times_s["lost"] - heard.terms[-1].not_after
    assert 0 <= late_s < 0.2
    assert reason.startswith("the lease could not be renewed for 0.6 s")
    assert not elector.is_leading
    lease.fault = None
    n_terms = len(heard.terms)
    clock.sleep(0.5)
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
def test_a_short_fault_costs_nothing(lease: LeaseServer, elect: StartElector, fault: Any, clock: PatientClock) -> None:
    _, heard = leading(elect())
    lease.fault = fault
    clock.sleep(0.35)
    lease.fault = None
    n_terms = len(heard.terms)
    wait_until(lambda: len(heard.terms) >= n_terms + 3)
    assert heard.lost == []


def test_what_answers_again_shortly_before_the_deadline_answers_in_time(
    lease: LeaseServer, elect: StartElector, clock: PatientClock
) -> None:
    """As an API server whose etcd was away: requests from before it was back are never answered."""
    _, heard = leading(elect(settings=ElectionSettings(4.0, 3.0, 0.5)))
    back_s: list[float] = []

    def hangs_at_first(exchange: Exchange) -> None:
        back_s.append(clock() + 1.6)
        (hangs if clock() < back_s[0] else lease.do)(exchange)

    lease.fault = hangs_at_first
    n_terms = len(heard.terms)
    wait_until(lambda: len(heard.terms) >= n_terms + 1 or heard.lost)
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
    ("holder", "reason"), [("other", "'other' holds the lease now"), ("", "the lease was released")]
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


def test_an_answer_that_came_too_late_is_none(lease: LeaseServer, elect: StartElector, clock: PatientClock) -> None:
    def slowly(exchange: Exchange) -> None:
        # Two reads, each within its timeout, together beyond the deadline.
        code, body = lease.carry_out(exchange)
        clock.sleep(0.25)
        exchange.handler.send_response(code)
        exchange.handler.send_header("Content-Length", str(len(data := json.dumps(body).encode())))
        exchange.handler.end_headers()
        for half in (data[:100], data[100:]):
            clock.sleep(0.25)
            exchange.handler.wfile.write(half)

    lease.fault = once(slowly, "POST", lease)
    _, heard = elect()
    wait_until(lambda: len(lease.server.of("PUT", LEASE)) >= 1)
    wait_until(lambda: heard.leading)
    assert heard.terms[0].not_after - heard.times_s["term"] > 0.3, "a term from the second try"


def test_standing_by_outlives_every_fault(lease: LeaseServer, elect: StartElector, clock: PatientClock) -> None:
    lease.fault = lease.watch_fault = UNAVAILABLE
    _, heard = elect()
    clock.sleep(1.0)
    assert 3 <= len(lease.server.of("GET", LEASE)) <= 8
    for fault in (hangs, resets, raw(200, b"<html>"), replies(404, status(404, "NotFound", "no such namespace"))):
        lease.fault = fault
        clock.sleep(0.4)
    assert heard == Heard()
    lease.fault = None
    wait_until(lambda: heard.leading)


def test_without_a_watch_the_lease_is_asked_for_in_every_period(
    lease: LeaseServer, elect: StartElector, clock: PatientClock
) -> None:
    lease.watch_fault = hangs
    lease.hold("other", leaseDurationSeconds=30)
    elector, heard = elect(times={"random": lambda: 0.0})
    wait_until(lambda: elector.holder == "other")
    before = len(lease.server.of("GET", LEASE))
    clock.sleep(1.5)
    assert 7 <= len(lease.server.of("GET", LEASE)) - before <= 11
    released = clock()
    lease.hold("")
    wait_until(lambda: heard.leading)
    assert heard.times_s["term"] - released < 0.5


def test_with_a_watch_nobody_is_asked(lease: LeaseServer, elect: StartElector, clock: PatientClock) -> None:
    leading(elect("one"))
    two, _ = elect("two")
    wait_until(lambda: two.holder == "one")
    wait_until(lambda: lease.n_watches)
    clock.sleep(0.3)
    before = len(lease.server.of("GET", LEASE))
    clock.sleep(1.5)
    assert len(lease.server.of("GET", LEASE)) - before <= 1


def test_a_server_that_hangs_does_not_hold_the_end_up(
    lease: LeaseServer, elect: StartElector, clock: PatientClock
) -> None:
    elector, heard = leading(elect(settings=ElectionSettings(10.0, 8.0, 0.2)))
    lease.fault = hangs
    started = clock()
    assert not elector.release(0.5)
    assert clock() - started < 1.0
    assert heard.lost == []
