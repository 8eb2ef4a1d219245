"""Answers whose samples are no numbers, are there twice, or name their node in every way there is."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from tests.e2e.world import CPU_EXPR
from tests.faults.bench.answers import INTERVAL_S, NODE_CPU, break_with, mend, until_told, until_well, with_series
from tests.faults.bench.bench import Bench, Setting
from tests.faults.bench.placing import Placing, measure_all_placed
from tests.faults.bench.servers import NODES
from tests.faults.bench.told import Decisions, metrics, nodes, signal, summed
from tests.faults.row import Row
from tests.support.fault_proxy import Asked, Fault
from tests.support.manifests import Json

_EXPR = "max by (instance) (node_load5)"


def _by_query(faults: Mapping[str, Fault]) -> Fault:
    """Let each fault have its query, and pass all others."""

    def either(asked: Asked) -> None:
        fault = faults.get(asked.query)
        if fault is None:
            asked.say(asked.forward())
        else:
            fault(asked)

    return either


# F18

_HISTOGRAM = "a histogram"
_NO_NUMBERS = (
    ("NaN", "+Inf", "-Inf"),
    ("1e999", "abc", ""),
    ("0x1", "1_0", " 0.5"),
    ("1e308", "-1", _HISTOGRAM),
)
"""Of node_cpu, which is from 0 to 1; of three nodes at a time: without more of them an answer would be partial."""
_HUGE = ("1e308", "-1e308", "1.7976931348623157e308", "5e-324", "-0.0", "9007199254740993")
"""Numbers all of them, of a signal that has no range."""


def _with_values(values: Sequence[str]) -> Fault:
    """Give the first nodes these values."""
    of_node = dict(zip(NODES, values, strict=False))

    def change(series: list[Json]) -> list[Json]:
        for one in series:
            value = of_node.get(one["metric"].get("instance"))
            if value == _HISTOGRAM:
                at_s = one.pop("value")[0]
                one["histogram"] = [at_s, {"count": "1", "sum": "1", "buckets": [[0, "0", "1", "1"]]}]
            elif value is not None:
                one["value"][1] = value
        return series

    return with_series(change)


def no_numbers(bench: Bench) -> None:
    """Samples are NaN, infinite, texts, out of range, histograms; those of a signal without range are huge."""
    vane, placing, decisions = bench.leader().vane, Placing(bench), Decisions(bench.leader().vane)
    before = metrics(vane)
    n_bad_used = n_good_missing = n_looks = 0
    for values in _NO_NUMBERS:
        break_with(bench, _by_query({CPU_EXPR: _with_values(values), _EXPR: _with_values(_HUGE)}))
        until_told(bench, vane, NODE_CPU, {"nan", "inf", "parse", "range"})
        bench.last(2 * INTERVAL_S)
        for _ in range(int(bench.seconds(15, 3))):
            found = nodes(vane, NODE_CPU)
            n_looks += len(found)
            n_bad_used += sum(one["value"] is not None for name, one in found.items() if name in NODES[: len(values)])
            n_good_missing += sum(one["value"] is None for name, one in found.items() if name in NODES[len(values) :])
            bench.last(0.8)
        mend(bench)
        until_well(bench, vane, NODE_CPU)
    made, after = decisions.more(), metrics(vane)
    for reason in ("nan", "inf", "parse", "range"):
        labels = ('signal="node_cpu"', f'reason="{reason}"')
        n_dropped = [summed(page, "vane_signal_samples_dropped_total", *labels) for page in (before, after)]
        bench.figure(f"samples dropped as {reason}", n_dropped[1] - n_dropped[0], at_least=1)
    scores = [value for one in made for term in one["terms"] for value in term["values"]]
    beyond = [value for value in scores if value is None or not math.isfinite(value) or not 0 <= value <= 100]
    bench.figure("bad samples taken for values", n_bad_used, at_most=0)
    # A node that was just made anew waits for the next answer.
    bench.figure("good nodes without a value, share", n_good_missing / max(1, n_looks), at_most=0.05)
    bench.figure("scores", len(scores), at_least=1)
    bench.figure("of them not from 0 to 100", len(beyond), at_most=0)
    warnings = sum(text.count("RuntimeWarning") for text in bench.replicas.logs().values())
    bench.figure("RuntimeWarnings", warnings, at_most=0)
    measure_all_placed(bench, placing.names())


# F19

_TWICE = frozenset(NODES[:3])
"""With more of them the answer would count as partial."""


def _doubled(chance: random.Random) -> Fault:
    """Give some nodes two series that differ, in another order each time."""

    def change(series: list[Json]) -> list[Json]:
        found = []
        for one in series:
            name = one["metric"].get("instance", "")
            if name not in _TWICE:
                found.append(one)
                continue
            for replica, value in (("a", 0.25), ("b", 0.75)):
                labels = {**one["metric"], "replica": replica}
                found.append({"metric": labels, "value": [one["value"][0], repr(value)]})
        chance.shuffle(found)
        return found

    return with_series(change)


def twice(bench: Bench) -> None:
    """Nodes have two series that differ, in another order with each answer."""
    vane, placing, fault = bench.leader().vane, Placing(bench), _doubled(random.Random(1))
    break_with(bench, _by_query({CPU_EXPR: fault, _EXPR: fault}))
    told_s = until_told(bench, vane, NODE_CPU, {"duplicate"})
    bench.last(INTERVAL_S)
    seen: defaultdict[str, set[float]] = defaultdict(set)
    n_guessed = 0
    for _ in range(int(bench.seconds(60, 12))):
        without, reduced = nodes(vane, NODE_CPU), nodes(vane, "reduced")
        n_guessed += sum(without[name]["value"] is not None for name in _TWICE & without.keys())
        for name in _TWICE & reduced.keys():
            if reduced[name]["value"] is not None:
                seen[name].add(reduced[name]["value"])
        bench.last(1.0)
    bench.figure("told as duplicate after, s", told_s, at_most=2 * INTERVAL_S)
    bench.figure("values guessed where nothing says how to reduce", n_guessed, at_most=0)
    bench.figure("nodes with `reduce: max` seen", len(seen), at_least=len(_TWICE) - 1)
    bench.figure("values of one of them, most", max(map(len, seen.values()), default=0), at_most=1)
    wrong = [name for name, values in seen.items() if values != {0.75}]
    bench.figure("of them not the highest", len(wrong), at_most=0)
    mend(bench)
    until_well(bench, vane, NODE_CPU)
    measure_all_placed(bench, placing.names())


# F20

_UNKNOWN: tuple[Mapping[str, str], ...] = (
    {"instance": "10.99.0.1:9100"},
    {"node": "elsewhere"},
    {"Hostname": "elsewhere.example.com"},
    {"instance": "[fd99::1]:9100"},
    {"job": "no-node-at-all"},
)


def _v4(i: int) -> str:
    return f"10.1.0.{i + 1}"


def _v6(i: int) -> str:
    return f"fd00::{i + 1:x}"


def _provider_id(i: int) -> str:
    return f"aws:///eu-central-1a/i-{i:08x}"


_STYLES: tuple[Callable[[str, int], Mapping[str, str]], ...] = (
    lambda name, _: {"node": name},
    lambda name, _: {"node_name": name, "instance": "kepler:28282"},
    lambda name, _: {"nodename": name},
    lambda name, _: {"k8s_node_name": name},
    lambda name, _: {"kubernetes_node": name},
    lambda name, _: {"exported_node": name, "node": "0"},
    lambda name, _: {"Hostname": name, "instance": "dcgm-exporter-7x2p4:9400"},
    lambda name, _: {"hostname": name},
    lambda name, _: {"kubernetes_io_hostname": name},
    lambda name, _: {"instance": name},
    lambda name, _: {"instance": f"{name}:9100"},
    lambda name, _: {"instance": f"https://{name}:10250/metrics"},
    lambda _, i: {"instance": _v4(i)},
    lambda _, i: {"instance": f"{_v4(i)}:9100"},
    lambda _, i: {"instance": f"[{_v6(i)}]:9100"},
    lambda _, i: {"node": _provider_id(i)},
)
"""One for each node: how exporters and relabelling name theirs."""


def _styled(series: list[Json]) -> list[Json]:
    at_s = series[0]["value"][0] if series else 0.0
    styles = [style(name, i) for i, (name, style) in enumerate(zip(NODES, _STYLES, strict=True))]
    return [{"metric": dict(labels), "value": [at_s, repr(i / 64)]} for i, labels in enumerate((*styles, *_UNKNOWN))]


def named_in_all_ways(bench: Bench) -> None:
    """Each node's series names it in another way, and some name hosts that are no nodes."""
    vane, placing = bench.leader().vane, Placing(bench)
    for i, name in enumerate(NODES):
        addresses = [{"type": "InternalIP", "address": _v4(i)}, {"type": "InternalIP", "address": _v6(i)}]
        path = f"/api/v1/nodes/{name}"
        bench.api.patch(path, {"spec": {"providerID": _provider_id(i)}})
        bench.api.patch(f"{path}/status", {"status": {"addresses": addresses}})
    break_with(bench, _by_query({_EXPR: with_series(_styled)}))
    bench.until(lambda: signal(vane, "reduced").get("series") == len(NODES) + len(_UNKNOWN), 20.0, "the first answer")
    bench.last(bench.seconds(30, 5))
    found, said = nodes(vane, "reduced"), metrics(vane)
    right = sum(found[name]["value"] == i / 64 for i, name in enumerate(NODES) if name in found)
    bench.figure("styles that found their node, share", right / len(NODES), at_least=1.0)
    n_unmapped = summed(said, "vane_signal_series", 'signal="reduced"', 'state="unmapped"')
    bench.figure("series counted as unmapped", n_unmapped, at_least=len(_UNKNOWN), at_most=len(_UNKNOWN))
    told = signal(vane, "reduced").get("dropped", {}).get("unmapped", 0)
    bench.figure("and shown so", told, at_least=len(_UNKNOWN), at_most=len(_UNKNOWN))
    mend(bench)
    measure_all_placed(bench, placing.names())


_REDUCED = f"  reduced: {{expr: {_EXPR}, by: node, interval: 1s, max_age: 10s, reduce: max}}\n"
_PREFER = "  - {name: prefer-reduced, signal: reduced, score: {best: 0, worst: 10}, weight: 1}\n"

ROWS = (
    Row("F18", "samples that are no numbers, and huge ones", no_numbers, Setting(signals=_REDUCED, rules=_PREFER)),
    Row("F19", "two series of one node", twice, Setting(signals=_REDUCED, rules=_PREFER)),
    Row(
        "F20",
        "series that name their node in sixteen ways",
        named_in_all_ways,
        # Nodes that are made anew would have no addresses.
        Setting(signals=_REDUCED, rules=_PREFER, node_every_s=3600.0),
    ),
)
