"""Binds that are slow, or refused for good."""

from __future__ import annotations

from tests.faults.bench.bench import Bench, Setting
from tests.faults.checker.evidence import UNPLACEABLE, Allowance
from tests.faults.proxy.http import Answer, Call, Fault
from tests.faults.row import Row
from tests.faults.rows import steps

_SLOW_S = 9.0
_MAX_UNDER_WAY = 64
_LEAST_SHARE = 0.8
_ROOM, _ALONE = "room", "alone"
_REFUSED = "refused-"
_DENIED = Answer(
    403,
    body=b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,'
    b'"message":"admission webhook denied the request"}',
)


def slow_and_refused(bench: Bench) -> None:
    """One bind in five takes 9 s, as with a slow webhook, and that of one Pod is always refused."""
    for room in (_ROOM, _ALONE):
        steps.create_room(bench, room, cpu="1")
    window_s = bench.seconds(40.0, 10.0)
    bench.last(window_s)
    before_per_s = _bound_per_s(bench, window_s)

    front = bench.servers.front
    begun_s = steps.unix_clock()
    front.add(Fault(_is_refused, answer=_DENIED))
    front.add(Fault(lambda call: call.is_bind and not _is_refused(call), share=0.2, delay_s=_SLOW_S))
    for room in (_ROOM, _ALONE):
        steps.create(bench, [_REFUSED + room], labels={UNPLACEABLE: "yes"}, cpu="900m", spec=steps.in_room(room))
    bench.until(lambda: _n_tries(bench, _ROOM), 20.0, "the refused bind")
    steps.create(bench, ["in-its-place"], cpu="900m", spec=steps.in_room(_ROOM))
    took_s = steps.wait_placed(bench, ["in-its-place"], 30.0)
    bench.last(_SLOW_S + window_s)
    during_per_s = _bound_per_s(bench, window_s)
    lasted_s = steps.unix_clock() - begun_s
    bench.figure("binds per second before", before_per_s)
    bench.figure("binds per second, as share of before", during_per_s / before_per_s, at_least=_LEAST_SHARE)
    bench.figure("binds under way at once", _most_under_way(front.calls), at_most=_MAX_UNDER_WAY)
    bench.figure("its room taken by another after, s", took_s, at_most=_SLOW_S + 3.0)
    bench.figure(
        "tries of the Pod that is refused", _n_tries(bench, _ALONE), at_least=2, at_most=_tries_within(lasted_s)
    )
    front.mend()
    bench.measure_recovery()
    steps.delete(bench, [_REFUSED + _ROOM, _REFUSED + _ALONE])


def _is_refused(call: Call) -> bool:
    return call.is_bind and f"/{_REFUSED}" in call.path


def _n_tries(bench: Bench, room: str) -> int:
    return sum(call.is_bind and f"/{_REFUSED}{room}/" in call.path for call in bench.servers.front.calls)


def _bound_per_s(bench: Bench, window_s: float) -> float:
    """Return how many Pods a second got their node within the last seconds, of those that wait for nothing."""
    begun_s = steps.unix_clock() - window_s
    return sum(at_s >= begun_s for at_s in steps.bound_at_s(bench).values()) / window_s


def _tries_within(seconds: float) -> int:
    """Return how often a Pod whose backoff doubles from 1 to 10 s is tried at most."""
    n_tries, at_s, backoff_s = 1, 0.0, 1.0
    while (at_s := at_s + backoff_s) <= seconds:
        n_tries, backoff_s = n_tries + 1, min(2 * backoff_s, 10.0)
    return n_tries


def _most_under_way(calls: list[Call]) -> int:
    """Return how many binds one replica had under way at most."""
    most = 0
    for replica in {call.replica for call in calls}:
        binds = [call for call in calls if call.is_bind and call.replica == replica]
        changes = [(call.at_s, 1) for call in binds] + [(call.ended_s, -1) for call in binds if call.ended_s]
        n_under_way = 0
        for _, change in sorted(changes):
            n_under_way += change
            most = max(most, n_under_way)
    return most


ROWS = (
    Row(
        "F14",
        "slow binds, and one refused for good",
        slow_and_refused,
        Setting(
            pods_per_s=6.0, allowance=Allowance(network_s=_SLOW_S + 0.5, stale_s=_SLOW_S + 0.5, late_s=_SLOW_S + 5.0)
        ),
    ),
)
