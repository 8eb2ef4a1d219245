"""Signals with two keys over the nodes of a random world: cards that nodes have, and ways between zones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from scheduler.model.keyed import KeyedColumn
from scheduler.model.objects import Node
from scheduler.model.rules import (
    ByKind,
    Calls,
    Curve,
    FilterMissing,
    PairKey,
    Rule,
    RuleFilter,
    RuleScore,
    Signal,
    WorkloadKey,
)

ZONES = ("-3", "7", "a", "b")
KEYED_SIGNALS = {
    "cards": Signal("cards", "util", by=ByKind.GPU),
    "way": Signal("way", "rtt", by=ByKind.PAIR, label="zone", pair=PairKey("source", "target")),
    "own": Signal("own", "p99", by=ByKind.WORKLOAD, workload=WorkloadKey("app")),
}
_FALLING = RuleScore(Curve((0.0, 1.0), (100.0, 0.0)))
KEYED_RULES = (
    Rule("cards", "cards", filter=RuleFilter(max=0.8), score=_FALLING, gpu_resources=("nvidia.com/gpu",)),
    Rule("way", "way", filter=RuleFilter(max=0.6, max_clear=0.3), score=_FALLING, calls=Calls({"app": "web"})),
    Rule("own", "own", filter=RuleFilter(max=0.9, missing=FilterMissing.REJECT), score=_FALLING, pod_label="app"),
)


def keyed_columns(nodes: Sequence[Node], n_rows: int, samples: Sequence[float]) -> dict[str, KeyedColumn]:
    """Return the columns of KEYED_SIGNALS with the trips of KEYED_RULES.

    `samples` is one number for each node, NaN for none: it is the load of its first card, and of the workload `web`
    there; its second card has what is left to 1. Rows of Pods on unknown nodes have no key.
    """
    names = sorted(node.metadata.name for node in nodes)
    by_name = {node.metadata.name: sample for node, sample in zip(nodes, samples, strict=True)}
    measured = [(i, by_name[name]) for i, name in enumerate(names) if not math.isnan(by_name[name])]
    rows = np.array([names.index(node.metadata.name) for node in nodes] + [-1] * (n_rows - len(nodes)), dtype=np.int64)
    zones = [(node.metadata.labels or {}).get("zone", "") for node in nodes] + [""] * (n_rows - len(nodes))
    in_zone = np.array([ZONES.index(zone) if zone in ZONES else -1 for zone in zones], dtype=np.int64)
    # From "b" nobody measures, and nobody to "7".
    ways = {
        (target, source): ((3 * i + 5 * j) % 8) / 8.0
        for i, target in enumerate(ZONES)
        for j, source in enumerate(ZONES)
        if target != "7" and source != "b"
    }
    cards = [(i, load) for i, first in measured for load in (first, 1.0 - first)]
    return {
        "cards": _column([("", i, load) for i, load in cards], len(names), rows, rule=KEYED_RULES[0]),
        "way": _column(
            [(target, ZONES.index(source), seconds) for (target, source), seconds in ways.items()],
            len(ZONES),
            in_zone,
            rule=KEYED_RULES[1],
        ),
        "own": _column([("web", i, load) for i, load in measured], len(names), rows, rule=KEYED_RULES[2]),
    }


def _column(samples: Sequence[tuple[str, int, float]], n_inner: int, alignment: np.ndarray, rule: Rule) -> KeyedColumn:
    """Return the samples as a column; the rule has tripped for those above its limit and every fourth above clear."""
    ordered = sorted(samples, key=lambda sample: sample[:2])
    groups: Mapping[str, int] = {name: i for i, name in enumerate(sorted({name for name, _, _ in ordered}))}
    group = np.array([groups[name] for name, _, _ in ordered], dtype=np.int64)
    inner = np.array([i for _, i, _ in ordered], dtype=np.int64)
    values = np.array([value for _, _, value in ordered], dtype=np.float64)
    limit, clear = (rule.filter.max, rule.filter.max_clear) if rule.filter else (None, None)
    assert limit is not None
    bits = (values > limit) | ((values > (limit if clear is None else clear)) & (inner % 4 == 0))
    return KeyedColumn(
        groups=groups,
        starts=np.searchsorted(group, np.arange(len(groups) + 1)),
        inner=inner,
        values=values,
        by_value=np.lexsort((values, inner)).astype(np.int32),
        n_inner=n_inner,
        alignment=alignment,
        targets=np.array([groups.get(ZONES[i], -1) if i >= 0 else -1 for i in alignment.tolist()], dtype=np.int64)
        if rule.calls
        else None,
        trips={rule.name: bits},
    )
