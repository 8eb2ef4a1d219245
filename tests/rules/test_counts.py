"""What built-in signals read, compared with a plain loop over nodes and Pods."""

from __future__ import annotations

import math
from random import Random

import pytest

from scheduler.model.arrays import FloatArray
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import BuiltIn, BuiltInKind, ByKind, Rule, Signal, Unit
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.examples.team_nodes import TEAM
from scheduler.rules.counts import BuiltInReading
from scheduler.rules.kinds import reading_of
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod, pod_of
from tests.worlds import each_seed, random_world


def built_in_values(signal: Signal, pod: PodInfo | None, snapshot: Snapshot) -> FloatArray:
    reading = reading_of(Rule("reads it", signal.name), signal, Memo())
    assert isinstance(reading, BuiltInReading)
    return reading.values(pod, snapshot)


ZONES = ("a", "a", "b", "", "b")
GIB = 2**30


def cluster() -> Snapshot:
    """Five nodes in two zones and outside of them, Pods of two apps on four of them, one on a node that is gone."""
    nodes = [
        make_node(f"n{i}", cpu=i + 1, memory="8Gi", pods=10, labels={"zone": z} if z else {})
        for i, z in enumerate(ZONES)
    ]
    where = {"n0": 2, "n1": 1, "n2": 3, "n3": 1, "gone": 2}
    pods = [
        make_pod(f"{node}-{i}", node=node, labels={"app": "web"}, cpu="500m", memory="1Gi")
        for node, n in where.items()
        for i in range(n)
    ]
    pods.append(make_pod("db", node="n0", labels={"app": "db"}, cpu="1"))
    pods.append(make_pod("far", namespace="else", node="n0", labels={"app": "web"}))
    pods.append(make_pod("leaving", node="n4", labels={"app": "web"}))
    return Snapshot(cluster_of(nodes, pods), NO_SIGNALS, 0.0)


def values(snapshot: Snapshot, built_in: BuiltIn, by: str = "node", unit: Unit = Unit.NONE) -> list[float | None]:
    kind = ByKind(by) if by in ("node", "cluster") else ByKind.LABEL
    signal = Signal("it", "", by=kind, label=by if kind is ByKind.LABEL else "", unit=unit, built_in=built_in)
    found = built_in_values(signal, make_pod(labels={"app": "web"}), snapshot)
    return [None if math.isnan(value) else round(value, 6) for value in found[:5].tolist()]


COUNT = BuiltIn(BuiltInKind.COUNT, same=("app",))


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("node", [2, 1, 3, 1, 1]),
        ("zone", [3, 3, 4, None, 4]),
        ("cluster", [8, 8, 8, 8, 8]),
        ("nowhere", [None] * 5),
    ],
)
def test_a_count_is_summed_over_live_nodes(by: str, expected: list[float | None]) -> None:
    assert values(cluster(), COUNT, by) == expected


def test_a_count_may_be_of_all_namespaces() -> None:
    built_in = BuiltIn(BuiltInKind.COUNT, same=("app",), all_namespaces=True)
    assert values(cluster(), built_in) == [3, 1, 3, 1, 1]


@pytest.mark.parametrize(
    ("built_in", "unit", "by", "expected"),
    [
        pytest.param(BuiltIn(BuiltInKind.PODS), Unit.NONE, "node", [4, 1, 3, 1, 1], id="pods"),
        pytest.param(BuiltIn(BuiltInKind.PODS), Unit.RATIO, "node", [0.4, 0.1, 0.3, 0.1, 0.1], id="share of pods"),
        pytest.param(BuiltIn(BuiltInKind.REQUESTED, "cpu"), Unit.NONE, "node", [2, 0.5, 1.5, 0.5, 0], id="cores"),
        pytest.param(
            BuiltIn(BuiltInKind.REQUESTED, "cpu"), Unit.PERCENT, "node", [200, 25, 50, 12.5, 0], id="percent of cores"
        ),
        pytest.param(
            BuiltIn(BuiltInKind.REQUESTED, "cpu"), Unit.RATIO, "zone",
            [2.5 / 3, 2.5 / 3, 1.5 / 8, None, 1.5 / 8], id="a share of a zone is that of the sums",
        ),
        pytest.param(
            BuiltIn(BuiltInKind.REQUESTED, "memory"), Unit.BYTES, "node", [2 * GIB, GIB, 3 * GIB, GIB, 0], id="bytes"
        ),
        pytest.param(BuiltIn(BuiltInKind.ALLOCATABLE, "cpu"), Unit.NONE, "node", [1, 2, 3, 4, 5], id="allocatable"),
        pytest.param(BuiltIn(BuiltInKind.ALLOCATABLE, "cpu"), Unit.NONE, "cluster", [15] * 5, id="of the cluster"),
        pytest.param(BuiltIn(BuiltInKind.REQUESTED, "un/known"), Unit.NONE, "node", [0] * 5, id="nobody has it"),
        pytest.param(BuiltIn(BuiltInKind.REQUESTED, "un/known"), Unit.RATIO, "node", [None] * 5, id="share of nothing"),
    ],
)  # fmt: skip
def test_values_in_the_units_that_users_write(
    built_in: BuiltIn, unit: Unit, by: str, expected: list[float | None]
) -> None:
    assert values(cluster(), built_in, by, unit) == pytest.approx(expected, abs=1e-6)


def test_a_pod_that_lacks_a_label_counts_nobody() -> None:
    signal = Signal("it", "", built_in=COUNT)
    assert built_in_values(signal, make_pod(), cluster()).tolist() == [0.0] * 6


def test_a_pod_that_is_being_deleted_counts_until_it_is_gone() -> None:
    metadata = {"name": "p", "namespace": "default", "uid": "p", "labels": {"app": "web"}}
    leaving = pod_of(
        {"metadata": metadata | {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"nodeName": "n"}, "status": {}}
    )
    snapshot = Snapshot(cluster_of([make_node("n")], [leaving]), NO_SIGNALS, 0.0)
    assert built_in_values(Signal("it", "", built_in=COUNT), make_pod(labels={"app": "web"}), snapshot).tolist() == [
        1.0
    ]


def test_no_node_no_value() -> None:
    snapshot = Snapshot(cluster_of([]), NO_SIGNALS, 0.0)
    for by in (ByKind.NODE, ByKind.LABEL, ByKind.CLUSTER):
        signal = Signal("it", "", by=by, label="zone", built_in=BuiltIn(BuiltInKind.PODS))
        assert built_in_values(signal, None, snapshot).tolist() == []


@each_seed(100)
def test_counts_are_those_of_a_plain_loop(random: Random) -> None:
    world = random_world(random, min_nodes=1)
    state = world.state()
    snapshot, pod = Snapshot(state, NO_SIGNALS, 0.0), world.pod
    alike = [
        sum(
            one.labels.get("app") == pod.labels["app"] and one.labels[TEAM] == pod.labels[TEAM]
            for one in state.pods_on(row)
        )
        for row in range(state.nodes.n_rows)
    ]
    zones = [None if node is None else (node.metadata.labels or {}).get("zone") for node in state.nodes.objects]
    built_in = BuiltIn(BuiltInKind.COUNT, same=("app", TEAM))

    by_node = built_in_values(Signal("n", "", built_in=built_in), pod, snapshot).tolist()
    by_zone = built_in_values(Signal("z", "", by=ByKind.LABEL, label="zone", built_in=built_in), pod, snapshot).tolist()

    assert by_node == alike
    for row, zone in enumerate(zones):
        summed = sum(n for n, other in zip(alike, zones, strict=True) if other == zone)
        assert math.isnan(by_zone[row]) if zone is None else by_zone[row] == summed
