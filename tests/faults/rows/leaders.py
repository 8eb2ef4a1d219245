"""Leaders that end."""

from __future__ import annotations

import signal
import time

from tests.faults.bench.bench import Bench, Setting
from tests.faults.checker.evidence import Allowance
from tests.faults.checker.requests import n_binds_asked
from tests.faults.proxy.http import Fault
from tests.faults.row import Row

_GRACEFUL_S = 2.0


def ended(bench: Bench) -> None:
    """The leader is told to end with binds in flight."""
    took_s, codes = [], []
    bench.servers.front.add(Fault(lambda call: call.is_bind, answer_delay_s=0.5))
    for _ in range(int(bench.seconds(6, 2))):
        leader = bench.leader()
        identity, begun_s = leader.vane.identity, time.monotonic()
        leader.vane.process.signal(signal.SIGTERM)
        bench.until(lambda identity=identity: bench.replicas.holder not in ("", identity), 60.0, "another leader")  # type: ignore[misc]
        took_s.append(time.monotonic() - begun_s)
        bench.until(
            lambda identity=identity: any(one.identity == identity for one in bench.replicas.ended),  # type: ignore[misc]
            20.0,
            "its end",
        )
        codes += [one.code for one in bench.replicas.ended if one.identity == identity]
        bench.until(lambda leader=leader: leader.vane.is_ready(), 40.0, "its return")  # type: ignore[misc]
        bench.last(1.0)
    bench.servers.front.mend()
    bench.measure_recovery()
    bench.figure("another leads after, longest, s", max(took_s), at_most=_GRACEFUL_S + 0.5)
    bench.figure("exit codes other than 0", sum(code != 0 for code in codes), at_most=0)
    bench.figure("binds asked per Pod", max(n_binds_asked(bench.bindings()).values()), at_most=1)


_SETTING = Setting(exits=frozenset({0}), allowance=Allowance(network_s=1.0))

ROWS = (Row("F26", "SIGTERM with binds in flight", ended, _SETTING),)
