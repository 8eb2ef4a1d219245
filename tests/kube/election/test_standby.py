from __future__ import annotations

import json
from typing import Any

import pytest

from scheduler.errors import InvalidObjectError
from scheduler.kube.election.lease import Lease, decode_lease
from scheduler.kube.election.settings import ElectionSettings, new_identity
from scheduler.kube.election.standby import GetLease, StandBy, Step, TakeLease, WaitForLease

PERIOD_S = 2.0


def lease(holder: str = "other", renewed: int = 1, version: int = 1, **spec: Any) -> Lease:
    given = {"holderIdentity": holder, "renewTime": str(renewed), "leaseDurationSeconds": 15, **spec}
    return decode_lease(json.dumps({"metadata": {"resourceVersion": str(version)}, "spec": given}).encode())


def standby(chance: float = 0.0) -> StandBy:
    return StandBy("us", 20.0, PERIOD_S, lambda: chance)


def seen(found: Lease | None, now_s: float = 100.0) -> StandBy:
    made = standby()
    made.saw(found, now_s)
    return made


def free_at(of: StandBy, from_s: float) -> float:
    """Return when the Lease would be taken, with the watch saying nothing and every question failing."""
    now_s = from_s
    while not isinstance(step := of.next(now_s), TakeLease):
        if isinstance(step, GetLease):
            of.ask_failed(now_s)
        else:
            now_s += step.seconds
    return now_s


def test_it_asks_first() -> None:
    made = standby()
    assert made.next(100.0) == GetLease()
    made.ask_failed(100.0)
    assert made.next(100.0) == WaitForLease(2.0)
    assert made.next(102.0) == GetLease()


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(None, id="there is none"),
        pytest.param(lease(holder=""), id="released"),
        pytest.param(lease(holder="us"), id="ours, by an answer that was lost"),
    ],
)
def test_a_free_lease_is_taken_at_once(found: Lease | None) -> None:
    assert seen(found).next(100.0) == TakeLease(found)


@pytest.mark.parametrize(
    ("spec", "expected_s"),
    [
        pytest.param({}, 115.0, id="its holder's duration"),
        pytest.param({"leaseDurationSeconds": 40}, 140.0, id="a longer one than ours"),
        pytest.param({"leaseDurationSeconds": None}, 120.0, id="none named: ours"),
        pytest.param({"renewTime": "1970-01-01T00:00:00.000000Z"}, 115.0, id="a time long ago means nothing"),
    ],
)
def test_a_held_lease_is_timed_from_when_we_saw_it(spec: dict[str, Any], expected_s: float) -> None:
    assert free_at(seen(lease(**spec)), 100.0) == expected_s


def test_a_renewal_starts_the_time_again_and_a_repetition_does_not() -> None:
    made = seen(lease(renewed=1, version=1))
    made.watched(lease(renewed=1, version=2), 105.0)  # a label
    assert free_at(made, 105.0) == 115.0
    made = seen(lease(renewed=1, version=1))
    made.watched(lease(renewed=2, version=2), 105.0)
    made.saw(lease(renewed=2, version=2), 110.0)
    assert free_at(made, 110.0) == 120.0


def test_what_is_taken_is_the_lease_as_last_seen() -> None:
    made = seen(lease(renewed=1, version=1))
    labelled = lease(renewed=1, version=2)
    made.watched(labelled, 105.0)
    step = made.next(115.0)
    assert isinstance(step, TakeLease)
    assert step.lease is labelled


def test_an_old_event_does_not_hide_a_new_answer() -> None:
    made = seen(lease(holder="", version=9))
    made.watched(lease(renewed=5, version=8), 100.5)
    assert made.next(100.5) == TakeLease(lease(holder="", version=9))


def test_an_answer_counts_even_where_versions_went_back() -> None:
    """As after a restore of etcd: what is read is what is there."""
    made = seen(lease(version=900))
    made.saw(lease(renewed=7, version=5), 101.0)
    assert made.holder == "other"
    assert free_at(made, 101.0) == 116.0


def test_deleting_the_lease_releases_nobody() -> None:
    made = seen(lease())
    made.watched(None, 103.0)
    assert free_at(made, 103.0) == 115.0
    assert made.next(115.0) == TakeLease(None)


def test_a_watch_that_is_heard_spares_questions() -> None:
    made = seen(lease())
    for second in range(1, 60):
        now_s = 100.0 + second
        if second % 2 == 0:
            made.watched(lease(renewed=second, version=second), now_s)
        step: Step = made.next(now_s)
        assert second == 3 or isinstance(step, WaitForLease), second  # at 3: the watch has only just begun


def test_a_quiet_watch_is_taken_for_broken() -> None:
    made = seen(lease())
    made.watched(lease(renewed=2, version=2), 102.0)
    made.watched(lease(renewed=3, version=3), 104.0)
    assert made.next(104.0) == WaitForLease(4.0)
    assert made.next(108.0) == GetLease()
    made.saw(lease(renewed=4, version=4), 108.0)
    assert made.next(108.0) == WaitForLease(PERIOD_S)
    made.saw(lease(holder="", version=5), 110.0)
    assert isinstance(made.next(110.0), TakeLease)


@pytest.mark.parametrize(("chance", "pause_s"), [(0.0, 2.0), (0.5, 3.2), (1.0, 4.4)])
def test_failed_attempts_are_spread(chance: float, pause_s: float) -> None:
    made = standby(chance)
    made.saw(lease(holder=""), 100.0)
    made.take_failed(100.0)
    step = made.next(100.0)
    assert isinstance(step, WaitForLease)
    assert step.seconds == pytest.approx(pause_s)


def test_a_conflict_is_looked_into_at_once_but_not_for_ever() -> None:
    made = seen(lease(holder=""))
    for _ in range(3):
        assert isinstance(made.next(100.0), TakeLease)
        made.conflicted(100.0)
        assert made.next(100.0) == GetLease()
        made.saw(lease(holder=""), 100.0)
    assert made.next(100.0) == WaitForLease(PERIOD_S)


def test_a_lost_race_is_a_holder_like_any() -> None:
    made = seen(lease(holder=""))
    made.conflicted(100.0)
    made.saw(lease(holder="third", version=2), 100.1)
    assert (made.holder, free_at(made, 100.1)) == ("third", 115.1)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"metadata":{},"spec":[]}', b"\xff"])
def test_what_is_no_lease(body: bytes) -> None:
    with pytest.raises(InvalidObjectError, match="not a Lease"):
        decode_lease(body)


@pytest.mark.parametrize("times", [(10.0, 10.0, 2.0), (15.0, 2.4, 2.0), (15.0, 10.0, 0.0), (float("nan"), 10.0, 2.0)])
def test_times_that_cannot_work(times: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="renew deadline"):
        ElectionSettings(*times)


def test_identities_differ() -> None:
    one, two = new_identity(), new_identity()
    assert one != two
    assert one.rpartition("_")[0] == two.rpartition("_")[0] != ""
