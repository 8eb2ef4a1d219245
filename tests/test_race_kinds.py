"""Nobody wins the race by breaking rules: the check at the end of a turn notices."""

from __future__ import annotations

import pytest

from benchmarks.race_kinds import KINDS, Kind, RuleBroken, check, labels_of, node, pod, zone_of
from tests.support.manifests import Json


def placed(nodes: list[str], mixed: tuple[Kind, ...]) -> list[Json]:
    """Return Pods of a kind on these nodes, one after the other; "" stands for none."""
    pods = [pod(f"pod-{i}", i, mixed, "vane") for i in range(len(nodes))]
    for one, node_name in zip(pods, nodes, strict=True):
        one["spec"]["nodeName"] = node_name
    return pods


def on(*numbers: int) -> list[str]:
    return [f"node-{number:05}" for number in numbers]


@pytest.mark.parametrize(
    ("kind", "nodes"),
    [
        ("plain", on(0, 0, 0)),
        ("spread", on(*[0] * 5)),
        ("spread", on(*range(0, 30, 3), *range(1, 15, 3), *range(2, 15, 3))),
        ("anti-affinity", on(*range(300))),
        ("preferred-affinity", on(*[0, 3, 6] * 6, 1)),
        ("mix", on(0, 0, 0, 0, 0, 1, 1, 0)),
    ],
)
def test_what_is_allowed(kind: str, nodes: list[str]) -> None:
    check(placed(nodes, KINDS[kind]), KINDS[kind])


@pytest.mark.parametrize(
    ("kind", "nodes", "problem"),
    [
        ("plain", [*on(0, 1), ""], "1 Pods have no node, pod-2 among them"),
        ("spread", on(*[0] * 6), "the skew is above 5: {'zone-0': 6, 'zone-1': 0, 'zone-2': 0}"),
        ("anti-affinity", on(4, 5, 4), "2 Pods that must be apart are on node-00004"),
        ("preferred-affinity", on(0, 1, 3, 6), "only 3 of 4 Pods that want to be together share a zone"),
        ("mix", on(0, 0, 7, 0, 0, 0, 7, 0), "2 Pods that must be apart are on node-00007"),
    ],
)
def test_what_is_not(kind: str, nodes: list[str], problem: str) -> None:
    with pytest.raises(RuleBroken) as caught:
        check(placed(nodes, KINDS[kind]), KINDS[kind])
    assert str(caught.value) == problem


def test_sets_are_counted_by_themselves() -> None:
    mixed = KINDS["anti-affinity"]
    check(placed(on(*range(1_000), 0), mixed), mixed)
    assert labels_of(999, mixed) != labels_of(1_000, mixed)


def test_a_nodes_zone_follows_from_its_name() -> None:
    zones = {zone_of(made["metadata"]["name"]) for made in map(node, range(3))}
    assert len(zones) == 3
    for made in map(node, range(7)):
        assert made["metadata"]["labels"]["topology.kubernetes.io/zone"] == zone_of(made["metadata"]["name"])
