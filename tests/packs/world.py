"""A cluster whose Prometheus holds recorded samples: rule files in, a verdict and a score per node out.

Everything between is the running scheduler's own: the loader, the asker with its resolver, the store, the plugins.
"""

from __future__ import annotations

import math
import urllib.parse
import urllib.request
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler.model.identity import NodeIdentity
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule, RuleSet
from scheduler.model.signals import SignalTable
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.model.views import NodeView
from scheduler.plugins.signals import SignalFilter, SignalScore
from scheduler.rules.score import rule_weight
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.asker import AskContext, SignalAsker
from scheduler.signals.asking.client import QueryResult
from scheduler.signals.asking.resolver import NodeResolver
from scheduler.signals.asking.session import parse_answer
from scheduler.signals.columns.store import SignalStore
from scheduler.signals.loader import RuleLoader
from tests.builders import cluster_of, make_pod, node_of
from tests.packs.record import NODES
from tests.packs.recording import END_S
from tests.plugins.run import raw_scores, refusals
from tests.signals.asking.scripted import Clock
from tests.signals.columns.store_world import crossed
from tests.support.prometheus import PrometheusServer

RULES = Path(__file__).parents[2] / "rules"
PACKS = sorted(RULES.glob("*.yaml"))
ALL = tuple(name for name, _, _ in NODES)


def load(*paths: Path) -> RuleSet:
    return RuleLoader(paths, lambda _: None, lambda _: None).load()


def nodes(names: Collection[str] = ALL) -> list[Node]:
    """Return the nodes of the recordings with these names, each with its zone and its address."""
    return [
        node_of(
            {
                "metadata": {
                    "name": name,
                    "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone},
                },
                "status": {
                    "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                    "addresses": [{"type": "InternalIP", "address": address}],
                },
            }
        )
        for name, zone, address in NODES
        if name in names
    ]


class RecordedClient:
    """A QueryClient that asks a real Prometheus as of the recording's time."""

    def __init__(self, server: PrometheusServer, clock: Clock, time_s: float = END_S) -> None:
        self._server, self._clock, self._time_s = server, clock, time_s

    def query(self, expr: str, lookback_s: float | None = None) -> QueryResult:
        form = {"query": expr, "time": repr(self._time_s)}
        if lookback_s is not None:
            form["lookback_delta"] = f"{round(1000 * lookback_s)}ms"
        url = f"{self._server.url}/api/v1/query"
        with urllib.request.urlopen(url, urllib.parse.urlencode(form).encode(), timeout=10) as reply:
            answer = parse_answer(reply.read(), reply.headers["Date"])
        return QueryResult(
            answer.series, answer.result_type == "scalar", answer.warnings, self._clock.now_s, self._time_s
        )


@dataclass(frozen=True)
class Verdict:
    """What one rule says of one node; `score` is None where the rule has no score."""

    is_refused: bool
    score: float | None


class RecordedCluster:
    """Nodes of the recordings under the rules of some files, as of a time of the recording."""

    def __init__(
        self, server: PrometheusServer, rules: RuleSet, time_s: float = END_S, names: Collection[str] = ALL
    ) -> None:
        self.rules = rules
        self.state: ClusterState = cluster_of(nodes(names))
        identity = NodeIdentity.of(1, nodes(names))
        clock = Clock()
        store = SignalStore(clock)
        store.add_identity(identity)
        store.set_rules(rules)
        client, resolver = RecordedClient(server, clock, time_s), NodeResolver(identity)
        self.answers: dict[str, SignalAnswer] = {}
        for name, signal in rules.asked.items():
            answer = SignalAsker(signal, clock, lambda: 0.5).ask(AskContext(client, lambda: resolver, rules.generation))
            self.answers[name] = crossed(answer)
            store.publish(self.answers[name])
        self.table: SignalTable = store.freeze(NodeView(self.state.nodes), clock.now_s)
        self.snapshot = Snapshot(self.state, self.table, clock.now_s)

    def values(self, signal: str) -> dict[str, float]:
        """Return node -> value of a signal, those that have one."""
        column = self.table.columns[signal].values.tolist()
        return {name: value for name, value in zip(self._names, column, strict=True) if not math.isnan(value)}

    def verdicts(self, rule: str, pod: PodInfo | None = None) -> list[Verdict]:
        """Return what a rule says of the nodes, in their order; without a Pod for one that asks for nothing."""
        pod = pod or make_pod()
        refused = refusals(SignalFilter(), pod, self.snapshot)
        unscored = [None] * len(self._names)
        scores: Sequence[float | None] = raw_scores(SignalScore(), pod, self.snapshot).get(rule, unscored)
        reasons = {f'node(s) rejected by rule "{rule}"', f'node(s) without a sample for rule "{rule}"'}
        return [
            Verdict(any(said in reasons for _, said in refused.get(name, ())), score)
            for name, score in zip(self._names, scores, strict=True)
        ]

    @property
    def _names(self) -> Sequence[str]:
        return self.snapshot.nodes.names

    def weight(self, name: str) -> float:
        rule: Rule = next(rule for rule in self.rules.rules if rule.name == name)
        return rule_weight(rule.weight, self.table)
