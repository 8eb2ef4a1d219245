"""Random runs of a cluster with tenants: none of them ever gets beyond what it may use.

    python -m tests.contracts.tenancy --number 10000 --seed 1

Each run draws nodes that publish what is real (well, badly or not at all), tenants with shares and live bounds, and
lets Pods come and go, other schedulers place theirs, Pods push others aside, signals go over, under, silent and in
doubt, namespaces and rules change. The signal store and the whole chain decide; beside them the state of each bound is
kept by hand and the room on each node is added up Pod by Pod. Where a Pod goes, the requests there may not be beyond
what its tenant may use; and the plugin has to refuse just the nodes where they would be, but for those of which more
is requested than they advertise: these are NodeResourcesFit's.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from scheduler.decision.decide import decide
from scheduler.framework.profile import Profile
from scheduler.model.identity import NodeIdentity
from scheduler.model.objects import Node
from scheduler.model.pods import PodInfo
from scheduler.model.rules import ByKind, FilterMissing, Rule, RuleFilter, RuleSet, Signal, Tenant, Unit
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.model.workloads import Namespace
from scheduler.plugins import default_chain
from scheduler.plugins.tenant_overcommit import TenantOvercommit
from scheduler.signals.answers import SignalAnswer, signature
from scheduler.signals.columns.store import SignalStore
from tests.builders import cluster_of, make_node, make_pod, object_of
from tests.contracts.asking import run_filter
from tests.plugins.tenants_by_loop import ANNOTATION, is_beyond, is_full, tenant_by_loop
from tests.worlds import is_so, some_of

OURS = TenantOvercommit.__name__
GPU = "example.com/gpu"
NAMESPACES = ("shop", "shop-eu", "bank", "labs")
SIGNALS = {
    "use": Signal("use", "use", unit=Unit.RATIO),
    "zone": Signal("zone", "zone", by=ByKind.LABEL, label="zone"),
    "burn": Signal("burn", "burn", by=ByKind.CLUSTER),
}
FIGURES = (
    *(f'{{"cpu": "{cpu}", "memory": "{memory}"}}' for cpu in ("2", "3", "20") for memory in ("0", "3Gi", "5000001")),
    *('{"cpu": "2"}', '{"cpu": "2500m"}', '{"cpu": "3", "memory": "3Gi"}', f'{{"{GPU}": 2, "cpu": 2.9999}}') * 3,
    "{}",
    '{"cpu": "-1"}',
    '{"cpu": "3", "memroy": "1Gi"}',
    "[]",
)
EXPECTED = frozenset(
    {
        "placed on a node that publishes",
        "placed beyond what is real",
        "refused by the tenant's share",
        "refused while bounds do not hold",
        "pushed aside",
        "placed after pushing aside",
    }
)
"""What has to have happened in a fair number of runs, or they say little."""


class TenantError(AssertionError):
    """A tenant got beyond what it may use, or was refused what it may."""


class Gauge:
    """The state of one signal by hand: its samples by key, when they were true, and whether they are in doubt."""

    def __init__(self) -> None:
        self.samples: dict[str, float] = {}
        self.at_s = -math.inf
        self.is_suspect = False
        self.is_partial = False

    def age_s(self, now_s: float) -> float:
        return now_s - self.at_s

    def take(self, samples: dict[str, float], now_s: float, is_suspect: bool, max_age_s: float) -> bool:
        """Take an answer; return whether its samples count: a doubtful one does not displace a good one."""
        is_in_force = self.age_s(now_s) <= max_age_s
        if is_suspect and is_in_force and not self.is_partial:
            self.is_suspect = True
            return False
        self.samples, self.at_s = samples, now_s
        self.is_suspect = self.is_partial = is_suspect
        return True


class Run:
    """One cluster and what happens in it."""

    def __init__(self, seed: int, seen: Counter[str], plugin: TenantOvercommit) -> None:
        self._random = random = Random(f"tenants {seed}")
        self._plugin = plugin
        chain = [replace(one, plugin=plugin) if one.plugin.name == OURS else one for one in default_chain()]
        self._profile = Profile.build("vane", chain)
        self._seen = seen
        self._now_s = 1_000.0
        self._n_pods = 0
        self._store = SignalStore(lambda: self._now_s)
        self._gauges = {name: Gauge() for name in SIGNALS}
        self._tripped: dict[str, dict[str, bool]] = {}
        self._rules = RuleSet()
        self._pending: list[PodInfo] = []
        self._pushed = set[str]()
        self._state = cluster_of([self._random_node(f"n{i}") for i in range(random.randint(1, 3))])
        self._n_identities = 0
        self._load()
        for name in NAMESPACES:
            self._label(name)

    def carry_out(self) -> None:
        steps: Sequence[tuple[Callable[[], None], int]] = (
            (self._arrive, 20),
            (self._leave, 3),
            (self._place_foreign, 1),
            (self._change_node, 1),
            (self._remove_node, 1),
            (self._measure, 6),
            (self._wait, 1),
            (lambda: self._label(self._random.choice(NAMESPACES)), 1),
            (self._load, 1),
        )
        chosen = [step for step, weight in steps for _ in range(weight)]
        for _ in range(self._random.randint(20, 60)):
            self._random.choice(chosen)()
            self._now_s += self._random.choice((0.0, 1.0, 10.0))

    # -- what happens ----------------------------------------------------------------------------------------

    def _arrive(self) -> None:
        """Let a new Pod, or one that waits, be decided about."""
        random = self._random
        pod = random.choice(self._pending) if self._pending and random.random() < 0.4 else self._random_pod()
        snapshot = Snapshot(self._state, self._store.freeze(NodeView(self._state.nodes), self._now_s), self._now_s)
        beyond = self._beyond(pod)
        self._compare(pod, snapshot, beyond)
        decision = decide(pod, snapshot, self._profile)
        self._pending = [one for one in self._pending if one.uid != pod.uid]
        if decision.is_scheduled:
            self._place(pod, decision.node_name, beyond)
            return
        if decision.victims and decision.nomination:
            self._seen["pushed aside"] += 1
            row = self._state.nodes.row_of(decision.nomination)
            assert row is not None
            for victim in decision.victims:
                self._state.displace(victim, row)
            if decision.nomination in self._beyond(pod):
                raise TenantError(f"{pod.key}: {decision.nomination} is no way out, whoever has left")
            self._pushed.add(pod.uid)
        self._pending.append(pod)

    def _place(self, pod: PodInfo, node_name: str, beyond: set[str]) -> None:
        row = self._state.nodes.row_of(node_name)
        assert row is not None
        if node_name in beyond:
            raise TenantError(f"{pod.key} went to {node_name}, beyond what {self._tenant(pod)} may use")
        self._state.place(pod, row)
        node = self._state.nodes.objects[row]
        assert node is not None
        if ANNOTATION in (node.metadata.annotations or {}):
            self._seen["placed on a node that publishes"] += 1
            nobody_s = is_beyond(None, make_pod("next", cpu="1m", memory="1"), node, self._placed(node_name), False)
            self._seen["placed beyond what is real"] += nobody_s
        self._seen["placed after pushing aside"] += pod.uid in self._pushed

    def _leave(self) -> None:
        there = [(pod, row) for row in self._state.pods for pod in self._state.pods_on(row)]
        if there:
            self._state.displace(*self._random.choice(there))

    def _place_foreign(self) -> None:
        """Another scheduler knows nothing of tenants."""
        pod = self._random_pod()
        self._state.place(pod, self._random.choice(self._rows()))

    def _change_node(self) -> None:
        self._state.set_node(self._random_node(f"n{self._random.randint(0, 4)}"))

    def _remove_node(self) -> None:
        """Take a node away, but never the last; its Pods stay where it was."""
        name = f"n{self._random.randint(0, 4)}"
        if len(self._rows()) > 1 and is_so(self._random):
            self._state.remove_node(name)

    def _wait(self) -> None:
        self._now_s += self._random.choice((20.0, 59.0, 61.0))

    def _label(self, name: str) -> None:
        """Give a Namespace other labels, or let it go."""
        random = self._random
        if random.random() < 0.15:
            self._state.remove_object(Namespace, "", name)
            return
        labels = {"team": random.choice("abc")} if random.random() < 0.8 else {}
        self._state.set_object(object_of("Namespace", {"metadata": {"name": name, "labels": labels}}))

    def _load(self) -> None:
        """Put other tenants in force; a bound that is as it was keeps what it refuses."""
        before = {bound.name: bound for tenant in self._rules.tenants for bound in tenant.bounds}
        tenants = tuple(self._random_tenant(f"t{i}") for i in range(self._random.randint(0, 3)))
        if self._random.random() < 0.3:
            tenants = (*self._rules.tenants[:1], *tenants[1:])
        self._rules = RuleSet(SIGNALS, (), self._rules.generation + 1, tenants)
        self._store.set_rules(self._rules)
        known, self._tripped = self._tripped, {}
        for bound in self._rules.judged:
            same = bound.name in before and before[bound.name] == bound
            self._tripped[bound.name] = dict(known[bound.name]) if same else {}
            if not same:
                self._trip(bound)

    def _measure(self) -> None:
        """Let one signal have other samples, of all keys or some, good or doubtful."""
        random, signal = self._random, SIGNALS[self._random.choice([*SIGNALS])]
        nodes = [node for node in self._state.nodes.objects if node is not None]
        keys = {"use": [one.metadata.name for one in nodes], "zone": ["a", "b"], "burn": [""]}[signal.name]
        samples = {key: random.choice((0.1, 0.5, 0.75, 0.8, 0.81, 0.99)) for key in keys if random.random() < 0.85}
        is_suspect = random.random() < 0.15
        self._n_identities += 1
        identity = NodeIdentity.of(self._n_identities, nodes)
        self._store.add_identity(identity)
        values: dict[str, Any] = {"value": samples.get("", math.nan)}
        if signal.name == "use":
            column = np.array([samples.get(name, math.nan) for name in identity.names])
            values = {"values": column.tobytes(), "identity_generation": identity.generation}
        elif signal.name == "zone":
            values = {"by_label": samples}
        if signal.name == "zone" and not samples:
            return  # an answer without any value is none
        answer = SignalAnswer(
            signal.name, signature(signal), 1, signal.max_age_s, self._now_s, is_suspect=is_suspect, **values
        )
        gauge = self._gauges[signal.name]
        is_old = gauge.age_s(self._now_s) > signal.max_age_s
        self._store.publish(answer)
        if gauge.take(samples, self._now_s, is_suspect, signal.max_age_s):
            for bound in self._rules.judged:
                if bound.signal == signal.name:
                    if is_old:
                        self._tripped[bound.name] = {}
                    self._trip(bound)

    # -- by hand ---------------------------------------------------------------------------------------------

    def _trip(self, bound: Rule) -> None:
        """Refuse what is above `max`, and what was refused and is still above `max_clear`."""
        limits, known = bound.filter, self._tripped[bound.name]
        assert limits is not None
        assert limits.max is not None
        assert limits.max_clear is not None
        highest, clear = limits.max, limits.max_clear
        self._tripped[bound.name] = {
            key: value > highest or (known.get(key, False) and value > clear)
            for key, value in self._gauges[bound.signal].samples.items()
        }

    def _holds(self, bound: Rule, node: Node) -> bool:
        signal, gauge = SIGNALS[bound.signal], self._gauges[bound.signal]
        if gauge.is_suspect or gauge.age_s(self._now_s) > signal.max_age_s:
            return False
        labels = node.metadata.labels or {}
        key = {"use": node.metadata.name, "zone": labels.get("zone", "-"), "burn": ""}[signal.name]
        return key in gauge.samples and not self._tripped[bound.name][key]

    def _tenant(self, pod: PodInfo) -> Tenant | None:
        known = self._state.catalog.get(Namespace, pod.namespace)
        return tenant_by_loop(pod.namespace, known, self._rules.tenants)

    def _beyond(self, pod: PodInfo) -> set[str]:
        """Return the names of the nodes that may not take the Pod, for its tenant's sake."""
        tenant = self._tenant(pod)
        if not self._rules.tenants:
            return set()
        found = set()
        for node in self._state.nodes.objects:
            if node is not None:
                holds = all(self._holds(bound, node) for bound in (tenant.bounds if tenant else ()))
                if is_beyond(tenant, pod, node, self._placed(node.metadata.name), holds):
                    found.add(node.metadata.name)
        return found

    def _compare(self, pod: PodInfo, snapshot: Snapshot, beyond: set[str]) -> None:
        refused, nodes = set(), snapshot.nodes
        for rejection in run_filter(self._plugin, pod, snapshot):
            refused |= {nodes.names[row] for row in np.flatnonzero(rejection.mask & nodes.alive).tolist()}
            is_bound = rejection.reason.endswith("did not hold")
            self._seen["refused while bounds do not hold" if is_bound else "refused by the tenant's share"] += 1
        full = {
            node.metadata.name
            for node in self._state.nodes.objects
            if node is not None and is_full(pod, node, self._placed(node.metadata.name))
        }
        if not refused <= beyond <= refused | full:
            raise TenantError(f"{pod.key} of {self._tenant(pod)}: refused at {refused}, is to be at {beyond}")

    def _placed(self, node_name: str) -> list[PodInfo]:
        row = self._state.nodes.row_of(node_name)
        return [] if row is None else list(self._state.pods_on(row))

    def _rows(self) -> list[int]:
        return [row for row, node in enumerate(self._state.nodes.objects) if node is not None]

    # -- at random -------------------------------------------------------------------------------------------

    def _random_node(self, name: str) -> Node:
        random = self._random
        return make_node(
            name,
            labels={"zone": random.choice("ab")} if is_so(random) else None,
            annotations={ANNOTATION: random.choice(FIGURES)} if random.random() < 0.8 else None,
            extended={"cpu": random.choice(("3", "4")), "memory": random.choice(("4Gi", "6Gi")), GPU: 4},
        )

    def _random_pod(self) -> PodInfo:
        random = self._random
        self._n_pods += 1
        amounts: Mapping[str, Sequence[str | int]] = {
            "cpu": ("0", "250m", "499m", "500m", "1"),
            "memory": ("64Mi", "256Mi", "5000000"),
            GPU: (0, 0, 1),
        }
        requests = {name: random.choice(several) for name, several in amounts.items() if random.random() < 0.7}
        namespace, priority = random.choice(NAMESPACES), random.choice((0, 0, 5, 10))
        return make_pod(f"p{self._n_pods}", namespace=namespace, priority=priority, extended=requests)

    def _random_tenant(self, name: str) -> Tenant:
        random = self._random
        bounds = []
        per_mille = random.choice((400, 1000, 1050, 1337, 1500, 1500, 2000))
        if per_mille > 1000:
            for signal in random.sample([*SIGNALS], random.choice((0, 1, 1, 1, 2))):
                limits = RuleFilter(max=0.8, max_clear=random.choice((0.8, 0.6)), missing=FilterMissing.REJECT)
                bounds.append(Rule(f"tenant {name}, {signal}", signal, filter=limits))
        tenant = Tenant(name, per_mille=per_mille, bounds=tuple(bounds))
        tenant = replace(tenant, resources=tuple(random.sample(("cpu", "memory", GPU), random.randint(1, 3))))
        if is_so(random):
            tenant = replace(tenant, namespaces=tuple(some_of(random, ["shop*", "bank", "l?bs"], 2)))
        if is_so(random):
            tenant = replace(tenant, namespace_labels={"team": tuple(random.sample("abc", random.randint(1, 2)))})
        return tenant


def run(seeds: Sequence[int], plugin: TenantOvercommit | None = None) -> Counter[str]:
    """Carry out a run for each seed; return how often what happened. TenantError names the first that fails."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        try:
            Run(seed, seen, plugin or TenantOvercommit()).carry_out()
        except BaseException as error:
            error.add_note(f"python -m tests.contracts.tenancy --number 1 --seed {seed}")
            raise
    return seen


def main(argv: Sequence[str] | None = None, write: Callable[[str], object] = sys.stdout.write) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.contracts.tenancy", description="Tenants within bounds.")
    parser.add_argument("--number", type=int, default=10_000, help="runs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first, the others follow (default: 1)")
    arguments = parser.parse_args(argv)
    started_s = time.monotonic()
    seen = run(range(arguments.seed, arguments.seed + arguments.number))
    for name in sorted(EXPECTED):
        write(f"{name:40} {seen[name]:>10}\n")
    write(f"{arguments.number} runs in {time.monotonic() - started_s:.1f} s: nobody beyond its bound\n")
    return 0 if EXPECTED <= {name for name, n in seen.items() if n} or arguments.number == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
