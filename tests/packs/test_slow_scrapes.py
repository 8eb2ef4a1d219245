"""Node utilisation where each exporter is scraped once a minute: a hot node is refused, a dead exporter forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pytest

from scheduler.evaluator.store import SeriesStore
from scheduler.rule_tests.model import RuleTest
from scheduler.rule_tests.servers import EmbeddedClient
from scheduler.rule_tests.world import ClusterUnderTest, StandingClock
from tests.builders import make_node, make_pod
from tests.packs.world import RULES, load

PACK: Final = RULES / "node-utilisation.yaml"
HISTORY_S: Final = 1200
WATCHED_S: Final = 600
DIES_S: Final = 120


def scrapes(offset_s: int, every_s: int, until_s: int) -> Iterator[int]:
    return iter(range(offset_s - HISTORY_S, until_s + 1, every_s))


def exported(store: SeriesStore, instance: str, use: float, times: Iterator[int]) -> None:
    for at_s in times:
        labels = {"instance": instance, "job": "node-exporter"}
        ran_s = at_s + 2.0 * HISTORY_S
        for mode, share in (("idle", 1.0 - use), ("user", use)):
            cpu = {**labels, "__name__": "node_cpu_seconds_total", "cpu": "0", "mode": mode}
            store.append(cpu, at_s, share * ran_s)
        store.append({**labels, "__name__": "node_memory_MemTotal_bytes"}, at_s, 1e9)
        store.append({**labels, "__name__": "node_memory_MemAvailable_bytes"}, at_s, (1.0 - use) * 1e9)


def watched(every_s: int, dead: str = "") -> Iterator[tuple[int, list[str], dict[str, np.ndarray]]]:
    """Yield each second the names of the nodes, and what each rule refuses; half of the nodes are hot.

    Scrapes of the hot nodes begin a second apart. The exporter of `dead` ends at `DIES_S`.
    """
    store, clock = SeriesStore(1e9), StandingClock()
    names = [f"{kind}-{i}" for i in range(every_s) for kind in ("hot", "cool", "calm")]
    for name in names:
        kind, offset = name.split("-")
        until_s = DIES_S if name == dead else WATCHED_S
        exported(store, name, 0.95 if kind == "hot" else 0.2, scrapes(int(offset), every_s, until_s))
    test = RuleTest("here", "slow scrapes", tuple(make_node(name) for name in names), (), (), ())
    cluster = ClusterUnderTest(load(PACK), test, EmbeddedClient(store, clock), clock)
    for second in range(WATCHED_S):
        cluster.move_to(float(second))
        said = cluster.verdicts(make_pod("p"))
        yield second, cluster.node_names, {name: one.refused for name, one in said.items()}


@pytest.mark.parametrize("every_s", [30, 60])
def test_a_node_above_its_limit_is_never_allowed_while_its_exporter_lives(every_s: int) -> None:
    for second, names, refused in watched(every_s):
        is_hot = np.array([name.startswith("hot") for name in names])
        for rule, mask in refused.items():
            assert mask.tolist() == is_hot.tolist(), f"{rule} at second {second}"


def test_a_dead_exporter_is_noticed_within_four_spacings() -> None:
    last_refused_s = {}
    for second, names, refused in watched(60, dead="hot-7"):
        for rule, mask in refused.items():
            if mask[names.index("hot-7")]:
                last_refused_s[rule] = second
            assert mask[names.index("hot-8")], f"{rule} at second {second}"
    assert last_refused_s.keys() == {"node-cpu-use", "node-memory-use"}
    assert all(last_s - DIES_S <= 4 * 60 for last_s in last_refused_s.values()), last_refused_s
