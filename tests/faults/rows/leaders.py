"""Leaders that end, freeze, or are two."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tests.faults.bench.bench import Bench, Setting
from tests.faults.checker.evidence import Allowance
from tests.faults.checker.processes import Flat
from tests.faults.checker.requests import n_binds_asked
from tests.faults.proxy.http import Fault
from tests.faults.row import Row
from tests.faults.rows import steps

_GRACEFUL_S = 2.0
_AFTER_KILL_S = 3.0
_FAIL_OVER_S = 17.4
"""The default lease of 15 s, and 1.2 retry periods of 2 s."""
_SHORT_LEASE_S = 3.0
_SHORT_LEASE = (
    f"--leader-elect-lease-duration={_SHORT_LEASE_S:g}s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)
_STOPPED_S = 20.0


def _taken_over(bench: Bench, number: signal.Signals, roles: Sequence[str] = ("deciding",)) -> tuple[str, float]:
    """Signal processes of the leader, and wait until another leads; return who led, and the seconds that took."""
    leader = steps.wait_standby(bench)
    identity, begun_s = leader.vane.identity, time.monotonic()
    leader.signal(number, *roles)
    steps.another_leads(bench, identity)
    return identity, time.monotonic() - begun_s


def _slow_binds() -> Fault:
    return Fault(lambda call: call.is_bind, answer_delay_s=0.5)


def _lost_answers() -> Fault:
    return Fault(lambda call: call.is_bind, share=0.3, resets_after=True)


def ended(bench: Bench) -> None:
    """The leader is told to end with binds in flight."""
    took_s, codes = [], []
    bench.servers.front.add(_slow_binds())
    for _ in range(int(bench.seconds(6, 2))):
        identity, after_s = _taken_over(bench, signal.SIGTERM)
        took_s.append(after_s)
        codes.append(steps.wait_ended(bench, identity))
        bench.last(1.0)
    bench.servers.front.mend()
    bench.measure_recovery()
    steps.tell_take_overs(bench, took_s, _GRACEFUL_S + 0.5)
    bench.figure("exit codes other than 0", sum(code != 0 for code in codes), at_most=0)
    bench.figure("binds asked per Pod", max(n_binds_asked(bench.bindings()).values()), at_most=1)


def told_to_end(bench: Bench) -> None:
    """One leader after the other gets SIGTERM."""
    took_s = []
    for _ in range(int(bench.seconds(15, 3))):
        took_s.append(_taken_over(bench, signal.SIGTERM)[1])
        bench.last(0.3)
    bench.measure_recovery()
    steps.tell_take_overs(bench, took_s, _GRACEFUL_S)


def killed(bench: Bench, fault: Callable[[], Fault] | None = None, roles: Sequence[str] = ("deciding",)) -> None:
    """One leader after the other is killed under load; with no `roles` all its processes at the same moment."""
    if fault is not None:
        bench.servers.front.add(fault())
    took_s = []
    for _ in range(int(bench.seconds(25, 3))):
        bench.last(1.0)  # so that it is killed while it binds
        took_s.append(_taken_over(bench, signal.SIGKILL, roles)[1])
    bench.servers.front.mend()
    bench.measure_recovery()
    steps.tell_take_overs(bench, took_s, _SHORT_LEASE_S + _AFTER_KILL_S)


def frozen(bench: Bench, roles: Sequence[str] = (), is_end: bool = True) -> None:
    """Processes of one leader after the other stop for longer than its lease, and go on as if nothing were."""
    n_times = int(bench.seconds(30, 2))
    for _ in range(n_times):
        leader = steps.wait_standby(bench)
        identity = leader.vane.identity
        leader.signal(signal.SIGSTOP, *roles)
        bench.last(_SHORT_LEASE_S + 0.5)
        leader.signal(signal.SIGCONT, *roles)
        if is_end:
            steps.wait_ended(bench, identity)
    bench.measure_recovery()
    n_ended = len(bench.replicas.ended)
    bench.figure("times frozen", n_times)
    bench.figure("replicas that ended", n_ended, at_most=None if is_end else 0)


def stopped(bench: Bench, roles: Sequence[str] = ()) -> None:
    """Processes of the leader stop for 20 s with binds under way; another leads long before they go on."""
    took_s, codes = [], []
    for _ in range(int(bench.seconds(4, 1))):
        leader = steps.wait_standby(bench)
        identity, begun_s = leader.vane.identity, time.monotonic()
        leader.signal(signal.SIGSTOP, *roles)
        steps.another_leads(bench, identity, _STOPPED_S)
        took_s.append(time.monotonic() - begun_s)
        bench.last(begun_s + _STOPPED_S - time.monotonic())
        leader.signal(signal.SIGCONT, *roles)
        codes.append(steps.wait_ended(bench, identity))
    bench.measure_recovery()
    steps.tell_take_overs(bench, took_s, _FAIL_OVER_S)
    bench.figure("exit codes other than 1", sum(code != 1 for code in codes), at_most=0)


def two_lead(bench: Bench) -> None:
    """Two replicas lead at once, and a fifth of the answers to binds that were done is lost."""
    bench.servers.front.add(Fault(lambda call: call.is_bind, share=0.2, resets_after=True, codes=frozenset({201})))
    for i in range(int(bench.seconds(5, 2))):
        names = [f"twin-{i}-{j}" for j in range(int(bench.seconds(40, 30)))]
        steps.create(bench, names)
        steps.wait_placed(bench, names)
        bench.last(1.0)
        steps.delete(bench, names)
    bench.measure_recovery()
    binds = [call for call in bench.servers.front.calls if call.is_bind]
    by_replica = Counter((call.replica, call.path) for call in binds)
    bench.figure("answers lost", sum(call.code == 0 for call in binds), at_least=1)
    bench.figure("binds that both asked for", _n_shared(by_replica), at_least=1)
    bench.figure("binds asked per Pod by one replica", max(by_replica.values()), at_most=2)


def _n_shared(by_replica: Counter[tuple[str, str]]) -> int:
    """Return of how many Pods both replicas asked for a bind."""
    return sum(n > 1 for n in Counter(path for _, path in by_replica).values())


_LOST = frozenset({1})
_KILLED = frozenset({1, -signal.SIGKILL})
_POOL = Flat(n_descriptors=48)
"""A binder that begins to lead opens up to 40 connections."""
_LOOPED = Setting(n_replicas=3, flags=_SHORT_LEASE, exits=_KILLED, allowance=Allowance(flat=_POOL))
_LOOPED_SLOW = replace(_LOOPED, allowance=Allowance(network_s=1.0, flat=_POOL))
_FROZEN = replace(_LOOPED, allowance=Allowance(stale_s=_SHORT_LEASE_S + 2.0, late_s=10.0, flat=_POOL))
"""A process that was frozen for less than its term goes on with what it had under way."""
_BOTH_LEAD = Setting(
    flags=("--leader-elect=false",), is_elected=False, allowance=Allowance(has_many_leaders=True, stale_s=1.0)
)

ROWS = (
    Row("F01", "two that both lead, and lost answers", two_lead, _BOTH_LEAD),
    Row("F10", "SIGSTOP of a leader for 20 s", stopped, Setting(exits=_LOST)),
    Row("F10-binder", "SIGSTOP of its binder for 20 s", partial(stopped, roles=("binder",)), Setting(exits=_LOST)),
    Row("F10-deciding", "its binder goes on alone", partial(stopped, roles=("deciding",)), Setting(exits=_LOST)),
    Row("F10-kills", "leaders killed in a loop", killed, _LOOPED, is_full=True),
    Row("F10-kills-whole", "leaders with all their processes", partial(killed, roles=()), _LOOPED, is_full=True),
    Row("F10-kills-slow", "leaders with slow binds", partial(killed, fault=_slow_binds), _LOOPED_SLOW, is_full=True),
    Row("F10-kills-lost", "leaders, and lost answers", partial(killed, fault=_lost_answers), _LOOPED, is_full=True),
    Row("F10-terms", "leaders told to end in a loop", told_to_end, Setting(n_replicas=3, exits=frozenset({0}))),
    Row("F10-freezes", "whole leaders frozen in a loop", frozen, _FROZEN, is_full=True),
    Row(
        "F10-freezes-deciding",
        "deciding processes frozen in a loop",
        partial(frozen, roles=("deciding",)),
        _FROZEN,
        is_full=True,
    ),
    Row(
        "F10-freezes-binder",
        "binder processes frozen in a loop",
        partial(frozen, roles=("binder",)),
        _FROZEN,
        is_full=True,
    ),
    Row(
        "F10-freezes-refresher",
        "refreshers frozen in a loop",
        partial(frozen, roles=("refresher",), is_end=False),
        _FROZEN,
        is_full=True,
    ),
    Row(
        "F26", "SIGTERM with binds in flight", ended, Setting(exits=frozenset({0}), allowance=Allowance(network_s=1.0))
    ),
)
