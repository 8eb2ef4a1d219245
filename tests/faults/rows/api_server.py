"""API servers that are busy, silent or gone, and an etcd that starts again."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence

from tests.faults.bench.bench import PLACED_AFTER_S, Bench, Setting
from tests.faults.checker.evidence import Allowance
from tests.faults.checker.processes import Flat
from tests.faults.proxy.http import Call, Fault, too_many_requests
from tests.faults.row import Row
from tests.faults.rows import steps

_RETRY_AFTER_S = 3
_MAX_RATE_SHARE = 1.2
_DRAINED_AFTER_S = 120.0
_RENEW_DEADLINE_S = 10.0
_ENDED_AFTER_S = _RENEW_DEADLINE_S + 5.0
_FAIL_OVER_S = 17.4
_READY_AFTER_S = 15.0
_FOUND_AFTER_S = 45.0
_BACKOFF_S = 2.0


def too_busy(bench: Bench) -> None:
    """Four requests of five are told to come again in 3 s, but for those about the Lease, which has its own seats."""
    front, holder = bench.servers.front, bench.replicas.holder
    window_s = bench.seconds(60.0, 12.0)
    bench.last(window_s / 2)
    before_per_s = _calls_per_s(front.calls, steps.unix_clock() - window_s / 2, window_s / 2)
    begun_s = steps.unix_clock()
    busy = front.add(Fault(lambda call: not call.is_lease, share=0.8, answer=too_many_requests(_RETRY_AFTER_S)))
    bench.last(window_s)
    during = [call for call in front.calls if call.at_s >= begun_s]
    during_per_s = _calls_per_s(during, begun_s, window_s)
    is_kept = bench.replicas.holder == holder
    front.mend()
    bench.measure_recovery(lambda: _DRAINED_AFTER_S)
    bench.figure("requests refused", busy.n_hit, at_least=1)
    bench.figure("requests per second before", before_per_s)
    bench.figure("requests per second, as share of before", during_per_s / before_per_s, at_most=_MAX_RATE_SHARE)
    bench.figure("soonest that a refused request came again, s", _soonest_again_s(during), at_least=_RETRY_AFTER_S)
    bench.figure("leaders lost", not is_kept, at_most=0)


def _calls_per_s(calls: Sequence[Call], begun_s: float, window_s: float) -> float:
    return sum(begun_s <= call.at_s < begun_s + window_s for call in list(calls)) / window_s


def _soonest_again_s(calls: Sequence[Call]) -> float:
    """Return after how long at least a bind, a list or a watch was asked for again that had been refused."""
    again_s = [3600.0]
    refused_s: dict[tuple[str, ...], float] = {}
    for call in calls:
        key = call.replica, call.path, "watch" if call.is_watch else call.method
        if key in refused_s:
            again_s.append(call.at_s - refused_s.pop(key))
        if call.code == 429 and (call.is_bind or call.method == "GET"):
            refused_s[key] = call.ended_s
    return min(again_s)


def blackholed(bench: Bench) -> None:
    """Nothing of what the leader sends arrives anywhere, and it is not told."""
    leader = bench.leader()
    identity, begun_s = leader.vane.identity, time.monotonic()
    leader.line.blackhole()
    steps.another_leads(bench, identity)
    bench.figure("another leads after, s", time.monotonic() - begun_s, at_most=_FAIL_OVER_S)
    steps.wait_ended(bench, identity)
    ended_s = next(one.at_s for one in bench.replicas.ended if one.identity == identity)
    bench.figure("the leader ended after, s", ended_s - begun_s, at_most=_ENDED_AFTER_S)
    bench.last(begun_s + bench.seconds(100.0, 20.0) - time.monotonic())
    healed_s = time.monotonic()
    leader.line.heal()
    bench.until(lambda: leader.vane.is_ready(), 60.0, "the replica's return")
    bench.figure("ready again after, s", time.monotonic() - healed_s, at_most=_READY_AFTER_S)
    bench.measure_recovery()


def half_open(bench: Bench) -> None:
    """The other end of all that the leader has open has gone without a word; what it opens then is well."""
    leader = bench.leader()
    identity, since_s = leader.vane.identity, steps.unix_clock()
    leader.line.vanish()
    calls = bench.servers.front.calls

    def is_watching() -> bool:
        found = (call for call in list(calls) if call.at_s >= since_s and call.replica == identity)
        return any(call.is_watch and call.path.endswith("/pods") for call in found)

    bench.until(is_watching, 120.0, "a new watch of Pods")
    bench.figure("a new watch of Pods after, s", steps.unix_clock() - since_s, at_most=_FOUND_AFTER_S + _BACKOFF_S)
    bench.figure("leaders lost", bench.replicas.holder != identity, at_most=0)
    bench.measure_recovery()


def gone(bench: Bench) -> None:
    """Both API servers are killed, and start again after a minute."""
    servers = bench.servers.control_plane.apiservers
    for server in servers:
        server.kill()
    bench.last(bench.seconds(60.0, 12.0))
    for server in servers:
        server.start()
    bench.servers.control_plane.wait_well()
    bench.measure_recovery()
    bench.figure("replicas that ended", len(bench.replicas.ended))


def etcd_restarted(bench: Bench) -> None:
    """Etcd is killed, and started again a few seconds later.

    An API server may need so long to find it again that the leader can't renew its lease for ten seconds: then it has
    to end, and another takes over.
    """
    for _ in range(int(bench.seconds(4, 1))):
        bound = _recovery_bound(bench, len(bench.replicas.ended))
        bench.servers.control_plane.restart_etcd(between_s=5.0)
        bench.servers.control_plane.wait_well()
        bench.measure_recovery(bound)
        bench.last(bench.seconds(15.0, 3.0))


def _recovery_bound(bench: Bench, n_ended: int) -> Callable[[], float]:
    """Return what tells how long a recovery may take: that of a failover once more replicas have ended than these."""
    return lambda: _FAIL_OVER_S if len(bench.replicas.ended) > n_ended else PLACED_AFTER_S


def reset_before(bench: Bench) -> None:
    """Three of ten requests are reset before they arrive, and every watch every few seconds."""
    _reset(bench, Fault(share=0.3, resets_before=True))


def reset_after(bench: Bench) -> None:
    """Three of ten requests are carried out, and reset in place of the answer; so is every watch every few seconds."""
    _reset(bench, Fault(lambda call: not call.is_watch, share=0.3, resets_after=True))


def _reset(bench: Bench, fault: Fault) -> None:
    bench.servers.front.add(fault)
    until_s = time.monotonic() + bench.seconds(150.0, 15.0)
    while time.monotonic() < until_s:
        bench.servers.front.cut_watches()
        bench.last(5.0)
    bench.servers.front.mend()
    bench.measure_recovery()
    binds = defaultdict[str, int](int)
    for call in bench.servers.front.calls:
        binds[call.path] += call.is_bind
    bench.figure("requests reset", fault.n_hit, at_least=1)
    bench.figure("binds asked per Pod, most", max(binds.values()))


_MAY_LOSE = frozenset({1})
_POOL = Flat(n_descriptors=80)
"""After an outage much is to be bound at once, and the binder opens up to 64 connections."""
_OLD = Allowance(stale_s=5.0, late_s=15.0, flat=_POOL)
_LATE = Allowance(stale_s=60.0, late_s=60.0, flat=_POOL)
_OUTAGE = Setting(exits=_MAY_LOSE, allowance=Allowance(flat=_POOL))
# Once etcd is back an API server takes binds at once, and begins its watches again a second later.
_RESTARTED = Setting(exits=_MAY_LOSE, allowance=Allowance(stale_s=2.0, flat=_POOL))
_RESET = Setting(exits=_MAY_LOSE, allowance=_OLD)

ROWS = (
    Row(
        "F08",
        "429 with Retry-After for most requests",
        too_busy,
        Setting(allowance=_LATE),
    ),
    Row(
        "F09",
        "a blackhole before the leader",
        blackholed,
        _OUTAGE,
    ),
    Row(
        "F09-half-open",
        "connections of the leader half-open",
        half_open,
        Setting(allowance=_LATE),
    ),
    Row("F09-gone", "API servers gone for a minute", gone, _OUTAGE, is_full=True),
    Row("F09-etcd", "etcd killed and started", etcd_restarted, _RESTARTED, is_full=True),
    Row("F09-resets", "requests reset before they arrive", reset_before, _RESET, is_full=True),
    Row("F09-lost", "answers reset", reset_after, _RESET, is_full=True),
)
