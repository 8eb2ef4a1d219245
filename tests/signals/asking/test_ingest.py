from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import ByKind, Reduce, Signal
from scheduler.signals.answers import Drops
from scheduler.signals.asking.ingest import ingest, parse_number
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import ResultSeries

NAMES = ("a", "b", "c")
RESOLVER = NodeResolver(NodeIdentity(1, NAMES, {name: i for i, name in enumerate(NAMES)}))
NAN = math.nan


def series(*samples: tuple[str, str]) -> list[ResultSeries]:
    return [ResultSeries({"node": name}, (0.0, text)) for name, text in samples]


def signal(**fields: object) -> Signal:
    return Signal("s", "up", **fields)  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("text", "drops"),
    [
        ("NaN", Drops(nan=1)),
        ("+Inf", Drops(inf=1)),
        ("-Inf", Drops(inf=1)),
        ("1e999", Drops(inf=1)),
        ("", Drops(parse=1)),
        ("abc", Drops(parse=1)),
        ("1_000", Drops(parse=1)),
        (" 1", Drops(parse=1)),
        ("1\n", Drops(parse=1)),
        ("\x1c1", Drops(parse=1)),
        ("1,2", Drops(parse=1)),
        ("\u0661", Drops(parse=1)),
        ("0x1p3", Drops(parse=1)),
        ("1.01", Drops(range=1)),
        ("-0.01", Drops(range=1)),
    ],
)
def test_what_is_no_usable_number_is_missing_with_its_reason(text: str, drops: Drops) -> None:
    found = ingest(signal(range=(0.0, 1.0)), series(("a", text), ("b", "0.5")), RESOLVER)
    np.testing.assert_array_equal(found.values, [NAN, 0.5, NAN])
    assert found.drops == drops


def test_a_histogram_and_an_unknown_node_are_counted() -> None:
    found = ingest(signal(), [ResultSeries({"node": "a"}), *series(("x", "1"))], RESOLVER)
    assert found.drops == Drops(parse=1, unmapped=1)
    assert not found.has_value.any()


def test_minus_zero_is_zero() -> None:
    assert math.copysign(1.0, ingest(signal(), series(("a", "-0")), RESOLVER).values[0]) == 1.0


def test_two_series_of_a_node_are_missing_and_the_others_stay() -> None:
    found = ingest(signal(), series(("a", "1"), ("b", "2"), ("a", "1")), RESOLVER)
    np.testing.assert_array_equal(found.values, [NAN, 2.0, NAN])
    assert found.drops == Drops(duplicate=2)


@pytest.mark.parametrize(
    ("reduce", "value"), [(Reduce.MAX, 4.0), (Reduce.MIN, 1.0), (Reduce.AVG, 2.5), (Reduce.SUM, 5.0)]
)
def test_several_series_become_one_value_where_the_signal_says_how(reduce: Reduce, value: float) -> None:
    found = ingest(signal(reduce=reduce), series(("a", "4"), ("b", "2"), ("a", "1")), RESOLVER)
    np.testing.assert_array_equal(found.values, [value, 2.0, NAN])
    assert found.drops == Drops()


def test_a_sum_lacks_no_part_and_its_range_is_that_of_the_sum() -> None:
    bounded = signal(reduce=Reduce.SUM, range=(10.0, 20.0))
    found = ingest(
        bounded, series(("a", "6"), ("a", "6"), ("b", "12"), ("b", "NaN"), ("c", "15"), ("c", "15")), RESOLVER
    )
    np.testing.assert_array_equal(found.values, [12.0, NAN, NAN])
    assert found.drops == Drops(nan=1, range=1)


def test_a_maximum_takes_the_parts_that_are_numbers_within_the_range() -> None:
    bounded = signal(reduce=Reduce.MAX, range=(0.0, 10.0))
    found = ingest(bounded, series(("a", "6"), ("a", "NaN"), ("a", "1e9"), ("b", "NaN")), RESOLVER)
    np.testing.assert_array_equal(found.values, [6.0, NAN, NAN])
    assert found.drops == Drops(nan=2, range=1)


def test_sums_beyond_a_float_are_dropped_without_a_warning() -> None:
    for reduce in (Reduce.SUM, Reduce.AVG):
        found = ingest(signal(reduce=reduce), series(("a", "1e308"), ("a", "1e308"), ("a", "1e308")), RESOLVER)
        assert not np.isinf(found.values).any()


def test_zones_are_read_from_any_of_their_labels() -> None:
    zoned = signal(by=ByKind.LABEL, label="topology.kubernetes.io/zone")
    found = ingest(
        zoned,
        [
            ResultSeries({"zone": "z2"}, (0.0, "2")),
            ResultSeries({"topology_kubernetes_io_zone": "z1", "zone": "other"}, (0.0, "1")),
            ResultSeries({"label_topology_kubernetes_io_zone": "z3"}, (0.0, "3")),
            ResultSeries({"region": "r"}, (0.0, "4")),
        ],
        RESOLVER,
    )
    assert found.keys.names is not None
    assert dict(zip(found.keys.names, found.values, strict=True)) == {"z1": 1.0, "z2": 2.0, "z3": 3.0}
    assert found.drops == Drops(unmapped=1)


def test_the_cluster_is_one_series() -> None:
    cluster = signal(by=ByKind.CLUSTER)
    assert ingest(cluster, [ResultSeries(value=(0.0, "3"))], RESOLVER).values.tolist() == [3.0]
    assert np.isnan(ingest(cluster, [], RESOLVER).values).all()
    two = ingest(cluster, series(("a", "1"), ("b", "2")), RESOLVER)
    assert np.isnan(two.values).all()
    assert two.drops == Drops(duplicate=2)
    assert ingest(signal(by=ByKind.CLUSTER, reduce=Reduce.SUM), series(("a", "1"), ("b", "2")), RESOLVER).values == [
        3.0
    ]


TEXTS = st.one_of(
    st.sampled_from(["NaN", "+Inf", "-Inf", "-0", "1e308", "-1e308", "", "abc", "1e99999", "1_0", "0.1", "0.3"]),
    st.floats().map(repr),
    st.text(max_size=5),
)


@given(
    samples=st.lists(st.tuples(st.sampled_from([*NAMES, "x", ""]), TEXTS), max_size=12),
    reduce=st.sampled_from([None, *Reduce]),
    bounds=st.sampled_from([None, (0.0, 1.0), (-5.0, 1e308)]),
    shuffled=st.randoms(use_true_random=False),
)
def test_whatever_comes_only_finite_numbers_within_the_range_pass_in_any_order(
    samples: list[tuple[str, str]], reduce: Reduce | None, bounds: tuple[float, float] | None, shuffled: object
) -> None:
    asked = signal(reduce=reduce, range=bounds)
    found = ingest(asked, series(*samples), RESOLVER)
    values = found.values[found.has_value]
    assert np.isfinite(values).all()
    if bounds:
        assert ((values >= bounds[0]) & (values <= bounds[1])).all()
    assert 0 <= found.drops.total <= len(samples) + len(NAMES)
    other = list(samples)
    shuffled.shuffle(other)  # type: ignore[attr-defined]  # a random.Random
    again = ingest(asked, series(*other), RESOLVER)
    assert again.values.tobytes() == found.values.tobytes()
    assert again.drops == found.drops


@given(st.text(max_size=8))
def test_texts_are_numbers_or_not_and_never_an_exception(text: str) -> None:
    number = parse_number(text)
    assert number is None or isinstance(number, float)


@pytest.mark.benchmark(group="signals")
def test_ingesting_5000_series_named_by_endpoint(benchmark: object) -> None:
    names = tuple(f"node-{i:05}" for i in range(5000))
    aliases = {f"10.{i // 65536}.{i // 256 % 256}.{i % 256}": i for i in range(5000)}
    resolver = NodeResolver(NodeIdentity(1, names, aliases))
    labels = [{"instance": f"{address}:9100", "job": "node-exporter"} for address in aliases]
    found = [ResultSeries(one, (0.0, "0.25")) for one in labels]
    assert ingest(signal(), found, resolver).has_value.all()
    benchmark(ingest, signal(), found, resolver)  # type: ignore[operator]  # a fixture


@pytest.mark.benchmark(group="signals")
def test_resolving_5000_series_named_by_endpoint(benchmark: object) -> None:
    names = tuple(f"node-{i:05}" for i in range(5000))
    resolver = NodeResolver(NodeIdentity(1, names, {name: i for i, name in enumerate(names)}))
    labels = [{"instance": f"{name}:9100", "job": "node-exporter"} for name in names]
    assert [resolver.index_of(one) for one in labels] == list(range(5000))
    benchmark(lambda: [resolver.index_of(one) for one in labels])  # type: ignore[operator]  # a fixture
