from __future__ import annotations

import pytest

from scheduler.model.identity import NodeIdentity
from scheduler.signals.asking.resolver import UNMAPPED, NodeResolver
from scheduler.signals.series_labels import NODE_LABELS, domain_labels, spellings
from tests.builders import node_of


def identity(**nodes: dict[str, object]) -> NodeIdentity:
    found = []
    for name, extra in nodes.items():
        addresses = [{"type": kind, "address": value} for kind, value in extra.get("addresses", ())]  # type: ignore[attr-defined]  # a table
        fields = {
            "metadata": {"name": name.replace("_", "-"), "labels": {"kubernetes.io/hostname": f"host-{name}"}},
            "spec": {"providerID": extra.get("provider", "")},
            "status": {"addresses": addresses},
        }
        found.append(node_of(fields))
    return NodeIdentity.of(1, found)


NODES = identity(
    a={"addresses": [("InternalIP", "10.0.0.1"), ("InternalIP", "fd00::1"), ("Hostname", "a.local")]},
    b={
        "addresses": [("InternalIP", "10.0.0.2"), ("ExternalIP", "203.0.113.2")],
        "provider": "azure:///subscriptions/s/virtualMachineScaleSets/pool/virtualMachines/0",
    },
)
A, B = 0, 1


@pytest.mark.parametrize("label", NODE_LABELS)
def test_every_style_of_naming_a_node_is_understood(label: str) -> None:
    assert NodeResolver(NODES).index_of({label: "b", "job": "x"}) == B


@pytest.mark.parametrize(
    ("labels", "index"),
    [
        pytest.param({"instance": "a"}, A, id="node name"),
        pytest.param({"instance": "a:9100"}, A, id="node name and port"),
        pytest.param({"instance": "10.0.0.1:9100"}, A, id="InternalIP and port"),
        pytest.param({"instance": "10.0.0.2"}, B, id="InternalIP"),
        pytest.param({"instance": "203.0.113.2:9100"}, B, id="ExternalIP and port"),
        pytest.param({"instance": "[fd00::1]:9100"}, A, id="IPv6 in brackets and port"),
        pytest.param({"instance": "[fd00::1]"}, A, id="IPv6 in brackets"),
        pytest.param({"instance": "fd00::1"}, A, id="bare IPv6"),
        pytest.param({"instance": "a.local:9100"}, A, id="Hostname address and port"),
        pytest.param({"instance": "host-b:9100"}, B, id="hostname label and port"),
        pytest.param({"instance": "https://a.local:443/metrics"}, A, id="a probed address"),
        pytest.param({"Hostname": "host-a"}, A, id="hostname label in another label"),
        pytest.param({"node": "host-a", "instance": "b"}, A, id="the first label that names a node wins"),
        pytest.param({"node": "gone", "instance": "b:1"}, B, id="an unknown name lets the next label speak"),
        pytest.param({"node": "0", "instance": "10.0.0.1:9100"}, A, id="a NUMA node is no node"),
        pytest.param({"node": "0"}, UNMAPPED, id="not even where a provider's id ends in 0"),
        pytest.param({"instance": "a:9100:1"}, UNMAPPED, id="no endpoint"),
        pytest.param({"instance": ":9100"}, UNMAPPED, id="no host"),
        pytest.param({"instance": ""}, UNMAPPED, id="empty"),
        pytest.param({"instance": "A"}, UNMAPPED, id="names are exact"),
        pytest.param({"k8s.node.name": "b"}, B, id="OpenTelemetry's name as it is"),
        pytest.param({"U__k8s_2e_node_2e_name": "b"}, B, id="OpenTelemetry's name, escaped by values"),
        pytest.param({"internal_ip": "10.0.0.1", "host": "gone"}, A, id="an address of kube_node_info"),
        pytest.param({"host": "a", "instance": "b:1"}, B, id="a host may be another one than what was scraped"),
        pytest.param({"host": "a:9100"}, UNMAPPED, id="a host has no port"),
        pytest.param({"pod": "a"}, UNMAPPED, id="labels that name no node"),
        pytest.param({}, UNMAPPED, id="no labels"),
    ],
)
def test_series_are_mapped_by_known_names_only(labels: dict[str, str], index: int) -> None:
    resolver = NodeResolver(NODES)
    assert resolver.index_of(labels) == index
    assert resolver.index_of(labels) == index, "and the same again from memory"


@pytest.mark.parametrize(
    ("labels", "index"),
    [
        pytest.param({"target": "b", "node": "a"}, B, id="before all others"),
        pytest.param({"target": "http://10.0.0.1:9100/probe"}, A, id="an address with scheme, port and path"),
        pytest.param({"target": "gone", "node": "a"}, UNMAPPED, id="no other counts"),
        pytest.param({"node": "a"}, UNMAPPED, id="a series without it"),
        pytest.param({"target": ""}, UNMAPPED, id="empty"),
    ],
)
def test_the_label_that_a_signal_names_is_the_only_one(labels: dict[str, str], index: int) -> None:
    resolver = NodeResolver(NODES)
    assert resolver.index_of(labels, "target") == index
    for series in ([labels], [labels, {}], [labels, {"target": "a"}]):
        assert resolver.indexes_of(series, node_label="target").tolist()[0] == index


def test_a_label_may_be_read_in_both_ways_at_once() -> None:
    resolver = NodeResolver(NODES)
    series = [{"node": "b:9100"}]
    for _ in range(2):
        assert resolver.indexes_of(series).tolist() == [UNMAPPED], "the name of a node as it stands"
        assert resolver.indexes_of(series, node_label="node").tolist() == [B], "or an address"


def test_how_prometheus_writes_the_names_of_opentelemetry() -> None:
    assert spellings("k8s.node.name") == (
        "k8s_node_name",
        "k8s.node.name",
        "k8s_dot_node_dot_name",
        "U__k8s_2e_node_2e_name",
    )
    assert spellings("a_b.c") == ("a_b_c", "a_b.c", "a__b_dot_c", "U__a__b_2e_c")


def test_a_node_may_be_called_0() -> None:
    nodes = NodeIdentity(1, ("0", "1"), {"0": 0, "1": 1})
    assert NodeResolver(nodes).index_of({"node": "0"}) == 0


def test_the_names_of_a_domain_label_as_exporters_write_it() -> None:
    assert domain_labels("topology.kubernetes.io/zone") == (
        "topology.kubernetes.io/zone",
        "topology_kubernetes_io_zone",
        "label_topology_kubernetes_io_zone",
        "cloud_availability_zone",
        "zone",
    )
    assert "cloud_region" in domain_labels("topology.kubernetes.io/region")
    assert domain_labels("zone") == ("zone", "label_zone")


def test_many_series_are_mapped_as_each_alone() -> None:
    values = ["a", "b", "0", "10.0.0.1:9100", "host-b:1", "gone", ""]
    sorts = [[{label: value} for value in values] for label in ("node", "instance", "Hostname", "pod")]
    mixed = [labels for series in sorts for labels in series]
    several = [{"node": value, "instance": "b:1"} for value in values]
    worlds: list[list[dict[str, str]]] = [*sorts, mixed, several, [*sorts[0], {}], [{}], []]
    for series in worlds:
        resolver = NodeResolver(NODES)
        for again in (series, series, series[::-1]):  # at first, from memory, and in another order
            assert resolver.indexes_of(again).tolist() == [NodeResolver(NODES).index_of(labels) for labels in again]
