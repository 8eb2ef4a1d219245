"""PodTopologySpread's columns against a plain loop over nodes, written from the specification."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any

import numpy as np

from scheduler.framework.status import PreFilterResult
from scheduler.model.objects import Node, TopologySpreadConstraint
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import Selector, selector_of
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.pod_topology_spread import PodTopologySpread
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod, object_of, pod_of
from tests.worlds import each_seed, is_so

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
KEYS = (HOST, ZONE, "rack")
MISSING = (
    "UnschedulableAndUnresolvable",
    "node(s) didn't match pod topology spread constraints (missing required label)",
)
SKEWED = ("Unschedulable", "node(s) didn't match pod topology spread constraints")
SERVICE = object_of("Service", {"metadata": {"name": "s", "namespace": "a"}, "spec": {"selector": {"app": "web"}}})
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@dataclass
class World:
    nodes: list[Node]
    placed: list[PodInfo]
    pod: PodInfo
    moves: list[tuple[PodInfo, int, int]] = field(default_factory=list)
    """On trial: (Pod, number of the node, +1 or -1)."""


def random_constraint(random: Random) -> dict[str, Any]:
    expression = {"key": "app", "operator": "NotIn", "values": ["web"]}
    selectors = [None, {}, {"matchLabels": {"app": "web"}}, {"matchExpressions": [expression]}]
    return {
        "maxSkew": random.randint(1, 3),
        "topologyKey": random.choice(KEYS),
        "whenUnsatisfiable": random.choice(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": random.choice(selectors),
        "minDomains": random.choice([None, 1, 2, 4]),
        "nodeAffinityPolicy": random.choice([None, "Honor", "Ignore"]),
        "nodeTaintsPolicy": random.choice([None, "Honor", "Ignore"]),
        "matchLabelKeys": random.choice([None, ["v"], ["v", "app"]]),
    }


def random_pod(random: Random, name: str, node: str = "", spec: Mapping[str, Any] = MappingProxyType({})) -> PodInfo:
    labels = {key: random.choice(values) for key, values in (("app", ["web", "db"]), ("v", "12")) if is_so(random)}
    metadata = {"name": name, "namespace": random.choice("aab"), "uid": name, "labels": labels}
    if node and random.randint(0, 4) == 0:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return pod_of({"metadata": metadata, "spec": {**spec, "nodeName": node}})


def random_node(random: Random, name: str) -> Node:
    labels = {key: random.choice(["x", "y", "z", ""]) for key in (ZONE, "rack") if is_so(random)}
    return make_node(
        name,
        labels={**labels, **({"disk": "fast"} if is_so(random) else {})},
        taints=[TAINT] if random.randint(0, 3) == 0 else [],
    )


def random_world(random: Random) -> World:
    n = random.randint(1, 7)
    nodes = [random_node(random, f"n{i}") for i in range(n)]
    if is_so(random):
        nodes.append(pick_unnamed(random.choice(["x", "y", "z", ""])))
    where = [random.randint(0, n) for _ in range(random.randint(0, 12))]
    placed = [random_pod(random, f"p{i}", f"n{node}") for i, node in enumerate(where)]
    spec: dict[str, Any] = {
        "topologySpreadConstraints": [random_constraint(random) for _ in range(random.randint(0, 3))]
    }
    if is_so(random):
        spec["nodeSelector"] = {"disk": "fast"}
    if is_so(random):
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    # On trial Pods come to and go from one node at a time: preemption's and that of nominated Pods.
    node = random.randint(0, n - 1)
    moves = [(random_pod(random, f"m{i}"), node, random.choice([1, -1])) for i in range(random.randint(0, 3))]
    return World(nodes, placed, random_pod(random, "pod", spec=spec), moves)


def pick_unnamed(zone: str) -> Node:
    """Return a node without the label of its name."""
    node = make_node("unnamed", labels={ZONE: zone})
    del (node.metadata.labels or {})[HOST]
    return node


def labels_of(node: Node) -> Mapping[str, str]:
    return node.metadata.labels or {}


@dataclass
class Loop:
    """What the specification says, node by node."""

    world: World

    def constraints(self, action: str) -> list[tuple[TopologySpreadConstraint, Selector]]:
        pod = self.world.pod
        found = [one for one in pod.pod.spec.topology_spread_constraints or [] if one.when_unsatisfiable == action]
        return [(one, self._selector(one)) for one in found]

    def _selector(self, one: TopologySpreadConstraint) -> Selector:
        labels = self.world.pod.labels
        wanted = {
            "matchExpressions": [
                {"key": key, "operator": "In", "values": [labels[key]]}
                for key in one.match_label_keys or []
                if key in labels
            ]
        }
        extra = make_pod(spec={"topologySpreadConstraints": [{"labelSelector": wanted}]})
        added = (extra.pod.spec.topology_spread_constraints or [])[0].label_selector
        return selector_of(one.label_selector).also((added and added.match_expressions) or [])

    def counts(self, one: TopologySpreadConstraint, node: Node) -> bool:
        spec = self.world.pod.pod.spec
        labels = labels_of(node)
        if one.node_affinity_policy != "Ignore" and any(
            labels.get(k) != v for k, v in (spec.node_selector or {}).items()
        ):
            return False
        return not (one.node_taints_policy == "Honor" and node.spec.taints and not spec.tolerations)

    def n_matching(self, selector: Selector, node: Node) -> int:
        if selector.is_everything:
            return 0
        return sum(
            pod.namespace == self.world.pod.namespace
            and pod.pod.spec.node_name == node.metadata.name
            and pod.pod.metadata.deletion_timestamp is None
            and selector.matches(pod.labels)
            for pod in self.world.placed
        )

    def refusals(self) -> list[tuple[str, str] | None]:
        found = self.constraints("DoNotSchedule")
        keys = [one.topology_key for one, _ in found]
        able = [node for node in self.world.nodes if all(key in labels_of(node) for key in keys)]
        tables: list[Counter[str]] = []
        for one, selector in found:
            table: Counter[str] = Counter()
            for node in able:
                if self.counts(one, node):
                    table[labels_of(node)[one.topology_key]] += self.n_matching(selector, node)
            for guest, number, n in self.world.moves:
                node = self.world.nodes[number]
                is_alike = guest.namespace == self.world.pod.namespace and selector.matches(guest.labels)
                if is_alike and node in able and self.counts(one, node):
                    table[labels_of(node)[one.topology_key]] += n
            tables.append(table)
        return [self._refusal(node, found, tables) for node in self.world.nodes]

    def _refusal(
        self,
        node: Node,
        found: Sequence[tuple[TopologySpreadConstraint, Selector]],
        tables: Sequence[Counter[str]],
    ) -> tuple[str, str] | None:
        for (one, selector), table in zip(found, tables, strict=True):
            value = labels_of(node).get(one.topology_key)
            if value is None:
                return MISSING
            least = min(table.values()) if len(table) >= (one.min_domains or 1) else 0
            if table[value] + selector.matches(self.world.pod.labels) - least > one.max_skew:
                return SKEWED
        return None

    def scores(self) -> tuple[list[int], list[int]] | None:
        """Return (raw, normalised), all nodes being feasible; None without a soft constraint."""
        found, is_default = self.constraints("ScheduleAnyway"), False
        if not self.world.pod.pod.spec.topology_spread_constraints:
            found, is_default = self._defaults(), True
        if not found:
            return None
        keys = [one.topology_key for one, _ in found]
        nodes = self.world.nodes
        scored = [is_default or all(key in labels_of(node) for key in keys) for node in nodes]
        able = [node for node, is_scored in zip(nodes, scored, strict=True) if is_scored]
        totals = [0.0] * len(nodes)
        for one, selector in found:
            key = one.topology_key
            table = {labels_of(node).get(key, ""): 0 for node in able}
            for node in able:
                if self.counts(one, node):
                    table[labels_of(node).get(key, "")] += self.n_matching(selector, node)
            weight = math.log((len(able) if key == HOST else len(table)) + 2)
            for i, node in enumerate(nodes):
                if scored[i] and key in labels_of(node):
                    n = self.n_matching(selector, node) if key == HOST else table[labels_of(node)[key]]
                    totals[i] += n * weight + (one.max_skew - 1)
        raw = [math.floor(total + 0.5) for total in totals]
        seen = [one for one, is_scored in zip(raw, scored, strict=True) if is_scored]
        most, least = max(seen, default=0), min(seen, default=0)
        final = [100 * (most + least - one) // most if most else 100 for one in raw]
        return raw, [one if is_scored else 0 for one, is_scored in zip(final, scored, strict=True)]

    def _defaults(self) -> list[tuple[TopologySpreadConstraint, Selector]]:
        pod = self.world.pod
        if pod.namespace != "a" or pod.labels.get("app") != "web":
            return []
        fields = [
            {"maxSkew": skew, "topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}}
            for skew, key in ((3, HOST), (5, ZONE))
        ]
        found = make_pod(spec={"topologySpreadConstraints": fields}).pod.spec.topology_spread_constraints or []
        return [(one, selector_of(one.label_selector)) for one in found]


def snapshot_of(world: World) -> Snapshot:
    plugins = [PodTopologySpread()]
    return Snapshot(cluster_of(world.nodes, world.placed, plugins, [SERVICE]), NO_SIGNALS, 0.0)


@each_seed(1_000)
def test_refuses_whom_the_loop_refuses(random: Random) -> None:
    world = random_world(random)
    plugin, snapshot = PodTopologySpread(), snapshot_of(world)
    result = plugin.prefilter(world.pod, snapshot)
    found: list[tuple[str, str] | None] = [None] * len(world.nodes)
    if isinstance(result, PreFilterResult):
        state: Any = result.state
        for guest, row, n in world.moves:
            change = plugin.add_pod if n > 0 else plugin.remove_pod
            state = change(state, guest, row, snapshot)
        for rejection in plugin.filter(state, world.pod, snapshot, np.arange(len(world.nodes))):
            for row in np.flatnonzero(rejection.mask).tolist():
                assert found[row] is None
                found[row] = (rejection.code.label, rejection.reason)

    assert found == Loop(world).refusals()


@each_seed(1_000)
def test_scores_as_the_loop_scores(random: Random) -> None:
    world = random_world(random)
    plugin, snapshot = PodTopologySpread(), snapshot_of(world)
    rows = np.arange(len(world.nodes))
    state: Any = plugin.prescore(world.pod, snapshot, rows)
    expected = Loop(world).scores()
    if expected is None:
        assert state.code.label == "Skip"
        return

    (term,) = plugin.score(state, world.pod, snapshot, rows)

    assert (term.values.tolist(), plugin.normalize(term).tolist()) == expected
