from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import ByKind, PairKey, Reduce, Signal, WorkloadKey
from scheduler.signals.answers import Drops, KeyedValues, SignalAnswer
from scheduler.signals.asking.answer_keys import SeriesKeys
from scheduler.signals.asking.groupings import card_of, grouping_of
from scheduler.signals.asking.ingest import ingest
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import ResultSeries

NAMES = ("a", "b", "c")
RESOLVER = NodeResolver(NodeIdentity(1, NAMES, {name: i for i, name in enumerate(NAMES)}))
CPU = Signal("cpu", "x")
ZONE = Signal("zone", "x", by=ByKind.LABEL, label="zone")
BURN = Signal("burn", "x", by=ByKind.CLUSTER)
GPU = Signal("gpu", "x", by=ByKind.GPU)
P99 = Signal("p99", "x", by=ByKind.WORKLOAD, workload=WorkloadKey("destination_workload", "namespace"))
ANYWHERE = Signal("p99", "x", by=ByKind.WORKLOAD, workload=WorkloadKey("app"))
RTT = Signal("rtt", "x", by=ByKind.PAIR, label="zone", pair=PairKey("source", "target"))

Sample = tuple[str, str, str, float]
"""Group, inner key, and value, as an answer carries them."""


def series(*samples: tuple[Mapping[str, str], str]) -> list[ResultSeries]:
    return [ResultSeries(dict(labels), (0.0, text)) for labels, text in samples]


def card(node: str, uuid: str, text: str, **labels: str) -> tuple[Mapping[str, str], str]:
    return {"Hostname": node, "UUID": uuid, **labels}, text


def packed(signal: Signal, found: list[ResultSeries], resolver: NodeResolver = RESOLVER) -> KeyedValues:
    ingested = ingest(signal, found, resolver)
    keyed = ingested.keys.packed(ingested.values)["keyed"]
    assert isinstance(keyed, KeyedValues)
    return keyed


def triples(answer: KeyedValues) -> list[tuple[str, str, float]]:
    group = np.frombuffer(answer.group, dtype=np.int32)
    inner = np.frombuffer(answer.inner, dtype=np.int32)
    values = np.frombuffer(answer.values)
    names = answer.domains or NAMES
    return [(answer.groups[g], names[i], float(v)) for g, i, v in zip(group, inner, values, strict=True)]


def test_cards_stand_by_node_and_name_and_are_ranked_by_value() -> None:
    found = series(card("b", "z", "10"), card("a", "x", "70"), card("b", "y", "30"), card("gone", "w", "1"))
    answer = packed(GPU, found)
    assert triples(answer) == [("", "a", 70.0), ("", "b", 30.0), ("", "b", 10.0)]
    assert np.frombuffer(answer.by_value, dtype=np.int32).tolist() == [0, 2, 1]
    codes = np.frombuffer(answer.codes, dtype=np.uint64)[np.frombuffer(answer.by_code, dtype=np.int32)].tolist()
    assert codes == sorted(set(codes))


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"UUID": "GPU-1", "gpu": "0", "device": "nvidia0"}, "GPU-1"),
        ({"UUID": "GPU-1", "GPU_I_ID": "7", "GPU_I_PROFILE": "1g.10gb"}, "GPU-1/7"),
        ({"uuid": "1"}, "1"),
        ({"gpu_id": "3", "serial_number": "S", "gpu_partition_id": "1"}, "S/1"),
        ({"pci_bdf": "0000:18:00.0", "dev_file": "card0"}, "0000:18:00.0"),
        ({"minor_number": "2"}, "2"),
        ({"Hostname": "a"}, ""),
    ],
)
def test_a_card_is_known_by_the_first_label_that_names_it(labels: dict[str, str], name: str) -> None:
    assert card_of(labels) == name


def test_workloads_are_of_their_namespace_and_their_node() -> None:
    found = series(
        ({"node": "b", "destination_workload": "cart", "namespace": "shop"}, "2"),
        ({"node": "a", "destination_workload": "cart", "namespace": "shop"}, "1"),
        ({"node": "a", "destination_workload": "cart", "namespace": "test"}, "9"),
        ({"node": "a", "destination_workload": "", "namespace": "shop"}, "9"),
        ({"node": "a", "destination_workload": "cart"}, "9"),
        ({"destination_workload": "cart", "namespace": "shop"}, "9"),
    )
    ingested = ingest(P99, found, RESOLVER)
    assert ingested.drops == Drops(unmapped=3)
    assert ingested.covered() == {"a", "b"}
    assert triples(packed(P99, found)) == [("shop/cart", "a", 1.0), ("shop/cart", "b", 2.0), ("test/cart", "a", 9.0)]


def test_workloads_of_all_namespaces_are_one_where_the_signal_names_no_namespace() -> None:
    assert triples(packed(ANYWHERE, series(({"node": "c", "app": "cart"}, "2")))) == [("cart", "c", 2.0)]


def test_pairs_are_read_from_where_they_go_to() -> None:
    found = series(
        ({"source": "z1", "target": "z2"}, "0.02"),
        ({"source": "z1", "target": "z1"}, "0.001"),
        ({"source": "z2", "target": "z1"}, "0.03"),
        ({"source": "z2"}, "1"),
    )
    ingested = ingest(RTT, found, RESOLVER)
    assert ingested.drops == Drops(unmapped=1)
    assert ingested.covered() == {"z1", "z2"}
    assert triples(packed(RTT, found)) == [("z1", "z1", 0.001), ("z1", "z2", 0.03), ("z2", "z1", 0.02)]


def test_two_series_of_one_card_need_a_way_to_become_one() -> None:
    found = series(card("a", "x", "1", job="one"), card("a", "x", "3", job="two"), card("a", "y", "NaN"))
    assert ingest(GPU, found, RESOLVER).drops == Drops(duplicate=2, nan=1)
    assert triples(packed(GPU, found)) == []
    reduced = Signal("gpu", "x", by=ByKind.GPU, reduce=Reduce.MAX)
    assert triples(packed(reduced, found)) == [("", "a", 3.0)]


def test_the_order_of_the_series_does_not_matter() -> None:
    found = [card(node, f"{node}{i}", str(i)) for node in NAMES for i in range(4)]
    assert packed(GPU, series(*found)) == packed(GPU, series(*reversed(found)))


def coded(found: list[ResultSeries], resolver: NodeResolver) -> tuple[SeriesKeys, list[int]]:
    keys, of_series = grouping_of(GPU).keys(found, resolver)
    assert isinstance(keys, SeriesKeys)
    return keys, of_series.tolist()


def test_codes_mean_the_keys_whatever_else_was_measured() -> None:
    later = NodeResolver(NodeIdentity(2, ("a", "aa", "b"), {"a": 0, "aa": 1, "b": 2}))
    few, of_few = coded(series(card("b", "x", "1")), RESOLVER)
    many, of_many = coded(series(card("a", "w", "1"), card("aa", "x", "1"), card("b", "x", "1")), later)
    assert few.codes[of_few[0]] == many.codes[of_many[2]]
    assert len(set(many.codes.tolist())) == 3


def test_an_answer_without_series() -> None:
    for one in (GPU, P99, RTT):
        ingested = ingest(one, [], RESOLVER)
        assert ingested.covered() == frozenset()
        assert triples(packed(one, [])) == []


@pytest.mark.parametrize(
    ("signal", "labels", "expected"),
    [
        (CPU, {"instance": "a:9100", "job": "x"}, ("instance",)),
        (CPU, {"instance": "10.9.9.9:8080", "node": "b"}, ("node",)),
        (CPU, {"instance": "a:9100", "node": "0"}, ("instance",)),
        (CPU, {"instance": "elsewhere"}, ()),
        (P99, {"node": "a", "destination_workload": "x"}, ("destination_workload", "namespace", "node")),
        (ANYWHERE, {"node": "a"}, ("app", "node")),
        (RTT, {"node": "a"}, ("source", "target")),
        (GPU, {"Hostname": "a", "gpu": "3", "GPU_I_ID": "1"}, ("GPU_I_ID", "Hostname", "gpu")),
        (Signal("zone", "x", by=ByKind.LABEL, label="topology.kubernetes.io/zone"), {"zone": "z"}, ("zone",)),
        (Signal("burn", "x", by=ByKind.CLUSTER), {"node": "a"}, ()),
    ],
)
def test_the_labels_that_name_a_key(signal: Signal, labels: dict[str, str], expected: tuple[str, ...]) -> None:
    assert grouping_of(signal).naming_labels([ResultSeries(labels)], RESOLVER) == expected


@pytest.mark.parametrize(
    ("signal", "fields", "expected", "covered", "n_nodes"),
    [
        (CPU, {"values": np.zeros(3).tobytes(), "n_mapped": 2}, {"a", "b", "c"}, " (2 of 3 nodes covered)", 7),
        (ZONE, {"n_mapped": 2}, None, " (2 values of zone covered)", 7),
        (BURN, {"n_mapped": 1}, None, "", None),
        (GPU, {"n_mapped": 2}, {"a", "b", "c"}, " (2 nodes covered)", 2),
        (P99, {"n_mapped": 2}, {"a", "b", "c"}, " (2 nodes covered)", 2),
        (RTT, {"n_mapped": 2}, None, " (2 values of zone covered)", None),
    ],
)
def test_what_an_answer_is_expected_to_cover_and_did(
    signal: Signal, fields: dict[str, Any], expected: set[str] | None, covered: str, n_nodes: int | None
) -> None:
    grouping = grouping_of(signal)
    assert grouping.names_nodes == (expected is not None)
    assert grouping.expected(RESOLVER) == expected
    answer = SignalAnswer(signal.name, "", 1, 60.0, 0.0, **fields)
    assert grouping.coverage(answer) == covered
    assert grouping.n_nodes(answer, 7) == n_nodes


def test_every_kind_has_a_grouping() -> None:
    groupings = {type(grouping_of(signal)) for signal in (CPU, ZONE, BURN, GPU, P99, RTT)}
    assert len(groupings) == len(ByKind)


@pytest.mark.parametrize("kind", [ByKind.WORKLOAD, ByKind.PAIR])
def test_a_signal_that_does_not_say_what_names_its_keys_is_a_fault(kind: ByKind) -> None:
    with pytest.raises(ValueError, match="does not say by which labels"):
        grouping_of(Signal("s", "x", by=kind))
