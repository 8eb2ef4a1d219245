"""Packs asked of a Prometheus that scrapes, by the running scheduler's own client, asker, resolver and store."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import RuleSet
from scheduler.model.views import NodeView
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.client import ClientSettings, PrometheusClient
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.format.promql import selectors
from tests.builders import cluster_of, node_of
from tests.exporters.programs import NODES
from tests.signals.columns.store_world import crossed
from tests.support.prometheus import PrometheusServer

_GROUPED = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
_MATCHED = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"')


@dataclass(frozen=True)
class Asked:
    """One signal of a pack: what was answered, and what the scheduler then goes by, by node."""

    answer: SignalAnswer
    values: Mapping[str, float]


def ask(server: PrometheusServer, rules: RuleSet) -> dict[str, Asked]:
    """Ask for every signal of the rules once, as for a cluster of NODES."""
    nodes = [
        node_of(
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {
                    "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                    "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
                },
            }
        )
        for name, address in NODES.items()
    ]
    identity = NodeIdentity.of(1, nodes)
    store = SignalStore(time.monotonic)
    store.add_identity(identity)
    store.set_rules(rules)
    client, resolver = PrometheusClient(ClientSettings(server.url)), NodeResolver(identity)
    context = AskContext(client, lambda: resolver, rules.generation)
    try:
        answers = {
            name: crossed(SignalAsker(signal, time.monotonic, lambda: 0.5).ask(context))
            for name, signal in rules.asked.items()
        }
    finally:
        client.close()
    for answer in answers.values():
        store.publish(answer)
    view = NodeView(cluster_of(nodes).nodes)
    table = store.freeze(view, time.monotonic())
    return {
        name: Asked(answer, _numbers(view.names, table.columns[name].values.tolist()))
        for name, answer in answers.items()
    }


def _numbers(names: object, column: list[float]) -> dict[str, float]:
    assert isinstance(names, list | tuple)
    return {name: value for name, value in zip(names, column, strict=True) if value == value}


def absent(server: PrometheusServer, expr: str) -> set[str]:
    """Return the selectors of an expression without series, and the labels it names that no series of it has."""
    missing, labels = set(), set()
    for selector in selectors(expr):
        series = [sample["metric"] for sample in server.query(f"last_over_time({selector}[5m])")]
        missing |= set() if series else {selector}
        labels |= {label for metric in series for label in metric}
    named = {label.strip() for group in _GROUPED.findall(expr) for label in group.split(",") if label.strip()}
    return missing | ((named | set(_MATCHED.findall(expr))) - labels)
