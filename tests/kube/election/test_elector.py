from __future__ import annotations

import threading
from itertools import count

import pytest

from scheduler.kube.config import Connection
from scheduler.kube.election.settings import Times
from tests.kube.election.lease_server import (
    EVENTS,
    LEASE,
    LEASES,
    PODS,
    UNAVAILABLE,
    Heard,
    LeaseServer,
    StartElector,
    leading,
    make_elector,
)
from tests.kube.fake_api import Exchange, raw, replies, status
from tests.support.clocks import PatientClock
from tests.support.waiting import wait_until


def test_a_missing_lease_is_created_and_renewed(lease: LeaseServer, elect: StartElector, clock: PatientClock) -> None:
    started = clock()
    elector, heard = leading(elect())
    assert elector.holder == "us"
    first = dict(lease.spec)
    assert (first["holderIdentity"], first["leaseDurationSeconds"], first["leaseTransitions"]) == ("us", 1, 0)
    assert list(heard.times_s) == ["term", "leading"]
    wait_until(lambda: len(heard.terms) >= 4)
    assert lease.spec["acquireTime"] == first["acquireTime"]
    assert lease.spec["renewTime"] > first["renewTime"]
    for term in heard.terms:
        assert term.ends_at - term.not_after == pytest.approx(0.4)
        assert started + 0.6 <= term.not_after <= clock() + 0.6
    assert [term.not_after for term in heard.terms] == sorted(term.not_after for term in heard.terms)
    assert [roll_call.resource_version for roll_call in heard.leading] == [500]
    assert lease.server.of("GET", LEASES) == []


def test_the_other_replica_waits_and_takes_over_at_once_after_a_release(
    lease: LeaseServer, elect: StartElector, clock: PatientClock
) -> None:
    one, _ = leading(elect("one"))
    two, heard = elect("two")
    wait_until(lambda: two.holder == "one")
    wait_until(lambda: lease.n_watches)
    clock.sleep(1.5)  # longer than the lease: renewals keep it
    assert heard.terms == []
    released = clock()
    assert one.release(2.0)
    leading((two, heard))
    assert heard.times_s["leading"] - released < 0.5
    assert not one.is_leading
    assert (lease.spec["holderIdentity"], lease.spec["leaseTransitions"]) == ("two", 1)


def test_a_release_names_nobody_and_keeps_the_count(
    lease: LeaseServer, elect: StartElector, clock: PatientClock
) -> None:
    lease.hold("", leaseTransitions=6)
    elector, heard = leading(elect())
    assert lease.spec["leaseTransitions"] == 7
    assert elector.release(2.0)
    assert (lease.spec["holderIdentity"], lease.spec["leaseDurationSeconds"]) == ("", 1)
    assert lease.spec["leaseTransitions"] == 7
    assert heard.lost == []
    before = len(lease.server.received)
    clock.sleep(0.5)
    assert len(lease.server.received) == before


def test_who_stands_by_ends_without_a_trace(lease: LeaseServer, elect: StartElector) -> None:
    lease.hold("other", leaseDurationSeconds=60)
    elector, heard = elect()
    wait_until(lambda: elector.holder == "other")
    assert elector.release(2.0)
    assert heard == Heard()
    assert lease.server.of("PUT", LEASE) == []


def test_a_kill_is_noticed_when_the_lease_of_the_dead_has_ended(
    lease: LeaseServer, elect: StartElector, clock: PatientClock
) -> None:
    """Its own duration, that is, not ours."""
    lease.hold("other", leaseDurationSeconds=2)
    _, heard = elect()
    wait_until(lambda: lease.n_watches)
    clock.sleep(0.5)
    renewed = clock()
    lease.hold("other", leaseDurationSeconds=2)
    wait_until(lambda: heard.leading)
    assert 2.0 <= heard.times_s["term"] - renewed < 2.5


def test_a_deleted_lease_is_made_again_by_its_holder(
    lease: LeaseServer, elect: StartElector, clock: PatientClock
) -> None:
    _, one = leading(elect("one"))
    two, waiting = elect("two")
    wait_until(lambda: two.holder == "one")
    wait_until(lambda: lease.n_watches)
    acquired = lease.spec["acquireTime"]
    lease.delete()
    wait_until(lambda: lease.lease is not None)
    clock.sleep(1.2)
    assert (lease.spec["holderIdentity"], lease.spec["acquireTime"]) == ("one", acquired)
    assert (one.lost, waiting.terms) == ([], [])


@pytest.mark.parametrize("wall_ns", [[0, 2**62, 10**18], [2**62, 0, 10**9]])
def test_steps_of_the_wall_clock_change_nothing(
    lease: LeaseServer, elect: StartElector, wall_ns: list[int], clock: PatientClock
) -> None:
    steps = (wall_ns[i % 3] for i in count())
    one, heard = leading(elect("one", times={"now_ns": lambda: next(steps)}))
    _, other = elect("two", times={"now_ns": lambda: 10**17})
    clock.sleep(1.5)
    assert one.is_leading
    assert (heard.lost, other.terms) == ([], [])


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
def test_a_fault_of_ours_while_leading_is_a_loss(
    lease: LeaseServer, connection: Connection, clock: PatientClock, number: int
) -> None:
    elector, heard = make_elector(connection, "us", times=Times(clock=clock))
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

    _, heard = elect(times={"random": chance})
    wait_until(lambda: heard.leading)
    assert "standing by goes on" in caplog.text
