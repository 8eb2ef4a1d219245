"""Tables that plugins make of objects are brought up to date between the cycles of Pods, not in them."""

from __future__ import annotations

import logging

import pytest

from scheduler.framework.plugin import PreFilterPlugin
from scheduler.framework.status import SKIP, PreFilterResult, Status
from scheduler.kube.watch_stream import Replaced
from scheduler.loop.messages import Stop
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.volumes.csi_nodes import CSINodes
from scheduler.plugins.volumes.volume_binding.free_storage import FreeStorage
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness
from tests.plugins.volumes.objects import claim, csi_node, storage_class, term, volume

RULES = """
apiVersion: vane.dev/v1
kind: Rules
signals:
  cpu: {expr: max by (node) (cpu), by: node, unit: ratio}
rules:
  - {name: hot, signal: cpu, filter: {max: 0.8}}
"""


class Follower(PreFilterPlugin):
    """Notes how many nodes it has seen each time it followed, and before which Pod."""

    def __init__(self, fails: bool = False) -> None:
        self.seen: list[int | str] = []
        self._fails = fails

    def follow(self, snapshot: Snapshot) -> None:
        self.seen.append(snapshot.nodes.n_alive)
        if self._fails:
            raise ValueError("cannot follow")

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        self.seen.append(pod.pod.metadata.name)
        return SKIP


def test_plugins_follow_before_the_first_pod_and_after_each_change() -> None:
    plugin = Follower()
    harness = Harness([plugin])
    harness.list_nodes(make_node("a"), make_node("b"))
    harness.list_pods(make_pod("first"))
    harness.inbox.put(Stop(0, "the end of the test"))

    harness.loop.run()
    harness.list_nodes(make_node("a"))
    harness.cycle.follow()
    harness.now_s += 1.0
    harness.cycle.follow()
    harness.now_s += 1.0
    harness.cycle.follow()

    assert plugin.seen == [2, 1]


class SignalFollower(PreFilterPlugin):
    """Notes the values of `cpu` each time it follows."""

    def __init__(self) -> None:
        self.seen: list[list[float]] = []

    def follow(self, snapshot: Snapshot) -> None:
        if "cpu" in snapshot.signals.columns:
            self.seen.append(snapshot.signals.columns["cpu"].values.tolist())

    def prefilter(self, pod: PodInfo, snapshot: Snapshot) -> PreFilterResult | Status:
        return SKIP


def test_plugins_follow_the_signals_too() -> None:
    plugin = SignalFollower()
    harness = Harness([plugin])
    harness.list_nodes(make_node("a"), make_node("b"))
    harness.list_pods()
    harness.load_rules(RULES)
    for value in (0.5, 0.7):
        harness.answer("cpu", {"a": value, "b": 0.2})
        harness.cycle.follow()
        harness.now_s += 1.0
        harness.cycle.follow()

    assert plugin.seen == [[0.5, 0.2], [0.7, 0.2]]


def test_a_burst_of_changes_is_followed_now_and_then() -> None:
    plugin = Follower()
    harness = Harness([plugin])
    for n_nodes in range(1, 6):
        harness.list_nodes(*(make_node(f"n{i}") for i in range(n_nodes)))
        harness.cycle.follow()
        harness.now_s += 0.005

    assert plugin.seen == [1, 5]


def test_a_plugin_that_cannot_follow_is_left_alone_and_pods_go_on(caplog: pytest.LogCaptureFixture) -> None:
    plugin = Follower(fails=True)
    harness = Harness([plugin])
    for n_nodes in (1, 2, 3):
        harness.list_nodes(*(make_node(f"n{i}") for i in range(n_nodes)))
        harness.now_s += 1.0
        harness.cycle.follow()
    harness.list_pods(make_pod("web"))
    harness.run()

    assert plugin.seen == [1, "web"]
    assert [record.levelno for record in caplog.records if "follow of a plugin raised" in record.message] == [
        logging.ERROR
    ]
    assert len(harness.binder.binds) == 1


def test_the_tables_of_volumes_stand_before_a_pod_asks_for_them() -> None:
    harness = Harness()
    harness.list_nodes(make_node("a", labels={"zone": "1"}), make_node("b"))
    for items in (
        [storage_class("static", provisioner="kubernetes.io/no-provisioner")],
        [claim("c", storage_class="static")],
        [volume("pv", storage_class="static", affinity=[term("zone", "1")])],
        [csi_node("b", csi_example_com=3)],
    ):
        harness.loop.apply(Replaced(type(items[0]).__name__, items))
    harness.cycle.follow()

    catalog = harness.world.cache.state.catalog
    offers = catalog.derived(FreeStorage)
    table = offers.volumes("static")
    (rows, _) = offers.reaches.expand(table.reach[table.is_there])
    assert rows.tolist() == [0]
    assert catalog.derived(CSINodes).limit("csi.example.com").tolist() == [-1, 3]
