"""DefaultPreemption where a Filter plugin has a fault, or contradicts itself, once Pods have left a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from scheduler.decision.decide import decide
from scheduler.decision.decision import Decision
from scheduler.framework.plugin import FilterPlugin, FreedBy, Plugin, PostFilterPlugin, PreFilterPlugin
from scheduler.framework.profile import Enabled, Profile
from scheduler.framework.status import Code, PostFilterResult, PreFilterResult, Rejection, Status
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins import default_chain
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod

NODES = [make_node(name, cpu="2") for name in "abc"]
FULL = [make_pod(f"on-{name}", node=name, cpu="2", priority=1) for name in "abc"]


class Faulty(FilterPlugin):
    """Has a fault on some nodes; it runs last, so that only a node with room comes to it."""

    freed_by = FreedBy.NOTHING

    def __init__(self, faults: Mapping[str, str]) -> None:
        self._faults = faults

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[Rejection]:
        names = np.array(snapshot.nodes.names)[rows]
        return [Rejection(names == name, Code.ERROR, fault) for name, fault in self._faults.items()]


class FaultyIfEmpty(Faulty):
    """The same, found by moving Pods."""

    freed_by = FreedBy.ITS_ROW


class Optimist(PostFilterPlugin):
    """Takes the promise back and lets others try."""

    def postfilter(self, state: Any, pod: PodInfo, snapshot: Snapshot, diagnosis: Any, dry_run: Any) -> Any:
        return PostFilterResult(Status(Code.UNSCHEDULABLE, ("no idea",)), "")


class Undecided(PreFilterPlugin):
    """Refuses the Pod although a node may take it."""

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        return Status(Code.UNSCHEDULABLE, ("not now",))


def decided(*plugins: Plugin, cpu: str = "2", pods: Sequence[PodInfo] = FULL) -> Decision:
    snapshot = Snapshot(cluster_of(NODES, pods), NO_SIGNALS, 0.0)
    chain = default_chain()
    preemption = next(one for one in chain if one.plugin.name == "DefaultPreemption")
    others = [one for one in chain if one is not preemption]
    profile = Profile.build("vane", [*others, *map(Enabled, plugins), preemption])
    return decide(make_pod("target", cpu=cpu, priority=9, nominated="a"), snapshot, profile)


def fault(plugin: Plugin, text: str) -> str:
    return f'running "{plugin.name}" filter plugin: {text}'


@pytest.mark.parametrize("kind", [Faulty, FaultyIfEmpty])
def test_a_fault_without_a_candidate_is_told_once_and_the_promise_stands(kind: type[Faulty]) -> None:
    plugin = kind(dict.fromkeys("abc", "broken"))

    decision = decided(plugin)

    assert decision.diagnosis.message() == (
        f"0/3 nodes are available: 3 Insufficient cpu. preemption: {fault(plugin, 'broken')}"
    )
    assert (decision.nomination, decision.victims) == (None, ())


def test_different_faults_are_told_side_by_side() -> None:
    plugin = Faulty({"a": "broken", "b": "bent", "c": "broken"})

    told = decided(plugin).diagnosis.postfilter

    assert told.startswith("preemption: [")
    assert sorted(told[len("preemption: [") : -1].split(", ")) == [fault(plugin, "bent"), fault(plugin, "broken")]


def test_a_candidate_makes_faults_of_no_account() -> None:
    decision = decided(Faulty({"a": "broken", "c": "bent"}))

    assert decision.nomination == "b"
    assert [victim.name for victim in decision.victims] == ["on-b"]


def test_a_fault_ends_what_other_plugins_have_said() -> None:
    decision = decided(Optimist(), Faulty(dict.fromkeys("abc", "broken")))

    assert "no idea" not in decision.diagnosis.postfilter
    assert decision.nomination is None


def test_who_fits_beside_everyone_is_no_candidate_but_a_fault() -> None:
    small = [make_pod("on-a", node="a", cpu="1", priority=1)]

    decision = decided(Undecided(), cpu="1", pods=small)

    assert decision.diagnosis.postfilter == 'preemption: expected at least one victim pod on node "a"'
    assert (decision.nomination, decision.victims) == (None, ())
