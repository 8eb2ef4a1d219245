"""What whoever may create Pods can do to others: Pods that are hard to take, and Pods for another scheduler."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.faults.bench.bench import Bench, Setting
from tests.faults.bench.placing import Placing, delete, measure_all_placed, probe, quantile, small_pod
from tests.faults.bench.servers import NODES
from tests.faults.bench.told import Decisions
from tests.faults.checker.evidence import UNPLACEABLE
from tests.faults.checker.requests import USER
from tests.faults.row import Row
from tests.support.kubeapi import STRATEGIC_MERGE_PATCH, ApiError
from tests.support.manifests import Json, node

_PODS = "/api/v1/namespaces/default/pods"
_BOUND_S = 0.4
"""kube-scheduler binds others within this, whatever the objects."""
_DECIDED_MS = 250.0
_APART_S = 0.2
_TAKEN = NODES[:8]
"""Nodes on which a tenant puts Pods."""
_BEYOND = "9007199254740991"

Shape = Mapping[str, Any]


def _container(name: str, **fields: Any) -> Json:
    return {"name": name, "image": "pause:3.10", **fields}


def _amounts(amounts: Mapping[str, str]) -> Json:
    return {"resources": {"requests": dict(amounts), "limits": dict(amounts)}}


def _terms(count: int, key: str) -> list[Json]:
    return [
        {
            "weight": 1 + i % 100,
            "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": {"of": f"set-{i}"}}},
        }
        for i in range(count)
    ]


def _in(i: int) -> Json:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"z{i}"]}]}


_SPECS: Mapping[str, Shape] = {
    "beyond-int64": {"containers": [_container(f"c{i}", **_amounts({"example.com/x": _BEYOND})) for i in range(4)]},
    "many-resources": {
        "containers": [_container("c", **_amounts({f"example.com/r{i:05d}": "1" for i in range(3_000)}))]
    },
    "soft-terms": {
        "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": _terms(800, "zone")}}
    },
    "soft-anti-terms": {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": _terms(800, "kubernetes.io/hostname")
            }
        }
    },
    "node-terms": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_in(i) for i in range(5_000)]}
            }
        }
    },
    "tolerations": {
        "tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(8_000)],
        "nodeSelector": {"zone": "none"},
    },
    "ports": {
        "containers": [_container("c", ports=[{"containerPort": i, "hostPort": i} for i in range(1, 8_000)])],
        "nodeSelector": {"zone": "none"},
    },
    "volumes": {"volumes": [{"name": f"v{i}", "emptyDir": {}} for i in range(8_000)], "nodeSelector": {"zone": "none"}},
    "sidecars": {
        "initContainers": [
            _container(f"s{i}", restartPolicy="Always", **_amounts({f"example.com/s{i}": "1"})) for i in range(2_000)
        ]
    },
    "spread": {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": f"key-{i}",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"of": f"set-{i}"}},
            }
            for i in range(500)
        ]
    },
    "odd-amounts": {"containers": [_container("c", resources={"requests": {"cpu": "1e-3", "memory": "7Ei"}})]},
    "greater-than": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": [str(2**63 - 1)]}]}
                    ]
                }
            }
        }
    },
    "empty-selectors": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": {}}
                ]
            }
        },
        "nodeSelector": {"zone": "none"},
    },
}
"""Pods for Vane that fit nowhere: as large and as odd as the API server takes them."""


def _poison(turn: int) -> Iterator[Json]:
    for name, spec in _SPECS.items():
        labels = {UNPLACEABLE: "yes"}
        yield small_pod(f"poison-{name}-{turn}", labels=labels, cpu="64", spec=spec)
    vast = {f"label-{i}": "v" * 60 for i in range(5_000)}
    yield small_pod(f"poison-labels-{turn}", labels={UNPLACEABLE: "yes", **vast}, cpu="64")
    odd = "\x1b[31m\u202e\ufeff\U0001f4a3 \r\n" * 2_000
    yield small_pod(f"poison-annotations-{turn}", labels={UNPLACEABLE: "yes"}, annotations={"odd": odd}, cpu="64")


def _taken_by_a_tenant(turn: int, node_name: str) -> Json:
    """Return a Pod that its tenant puts on a node, with amounts that no node has."""
    spec = {**_SPECS["beyond-int64"]}
    return small_pod(f"poison-taken-{turn}-{node_name}", scheduler_name="tenant", node_name=node_name, spec=spec)


class _Spoiler:
    """Creates what is hard to take, and counts what of it the API server took."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.n_taken = 0

    def steps(self, turn: int) -> Iterator[Callable[[], None]]:
        """Yield what creates one object each."""
        for one in _poison(turn):
            yield functools.partial(self._create, _PODS, one)
        for name in _TAKEN:
            yield functools.partial(self._create_on, _taken_by_a_tenant(turn, name))
        amounts = {f"example.com/n{i:05d}": _BEYOND for i in range(2_000)}
        labels = {f"label-{i}": "v" * 60 for i in range(3_000)}
        bad = node(f"poison-node-{turn}", extended=amounts, labels=labels, unschedulable=True)
        yield functools.partial(self._create, "/api/v1/nodes", bad)

    def _create(self, path: str, body: Json) -> None:
        self.n_taken += self._is_taken(lambda: self._bench.api.post(path, body))

    def _create_on(self, body: Json) -> None:
        """Create a Pod on a node that has run since before the year 1."""
        self._create(_PODS, body)
        path = f"{_PODS}/{body['metadata']['name']}/status"
        year_0 = {"status": {"phase": "Running", "startTime": "0001-01-01T00:00:00+05:00"}}
        self._is_taken(lambda: self._bench.api.patch(path, year_0, STRATEGIC_MERGE_PATCH))

    def _is_taken(self, ask: Callable[[], object]) -> bool:
        try:
            ask()
        except ApiError as error:
            if error.status >= 500:
                raise
            return False
        return True


def poison(bench: Bench) -> None:
    """Pods and nodes that are hard to take, one after the other, and a small Pod after each."""
    nothing = [lambda: None] * int(bench.seconds(60, 20))
    before_s = probe(bench, "before", nothing, _APART_S)
    decisions, spoiler = Decisions(bench.leader().vane), _Spoiler(bench)
    waits_s: list[float] = []
    until_s = time.monotonic() + bench.seconds(90, 5)
    for turn in itertools.count():
        waits_s += probe(bench, f"beside-{turn}", spoiler.steps(turn), _APART_S)
        bench.api.delete(_PODS, labelSelector=UNPLACEABLE, gracePeriodSeconds=0)
        delete(bench, (_taken_by_a_tenant(turn, name)["metadata"]["name"] for name in _TAKEN))
        if time.monotonic() >= until_s:
            break
    slowest = max(decisions.more(), key=lambda one: one["decided_in_s"])
    bench.figure("objects of the kind", spoiler.n_taken, at_least=20)
    bench.figure("others bound after, without them, p90, s", quantile(before_s, 0.9))
    bench.figure("others bound after, p90, s", quantile(waits_s, 0.9), at_most=_BOUND_S)
    bench.figure("others bound after, longest, s", max(waits_s))
    bench.figure(f"slowest decision ({slowest['pod']}), ms", 1000 * slowest["decided_in_s"], at_most=_DECIDED_MS)
    bench.figure("processes that ended", len(bench.replicas.ended), at_most=0)


# F28

_SERVED_BY_NOBODY = ("nobody", "vane-old", "Vane")


def others_pods(bench: Bench) -> None:
    """Pods whose scheduler does not run."""
    placing = Placing(bench)
    names = {f"left-{i}": _SERVED_BY_NOBODY[i % len(_SERVED_BY_NOBODY)] for i in range(int(bench.seconds(300, 60)))}
    bench.api.create_pods(small_pod(name, scheduler_name=scheduler) for name, scheduler in names.items())
    bench.last(bench.seconds(60, 15))
    own = [pod for pod in bench.pods() if pod["metadata"]["name"] in names]
    asked = [one for one in bench.asked() if one.user == USER and not one.is_read]
    bench.figure("Pods for schedulers that do not run", len(own), at_least=len(names))
    bench.figure("of them with a node", sum(bool(pod["spec"].get("nodeName")) for pod in own), at_most=0)
    bench.figure("of them with a condition", sum(bool(pod["status"].get("conditions")) for pod in own), at_most=0)
    about = sum(one.name.partition(".")[0] in names for one in asked)
    bench.figure(f"of {len(asked)} writes about them", about, at_most=0)
    measure_all_placed(bench, placing.names())
    delete(bench, names)


ROWS = (
    Row("F24", "Pods and nodes that are hard to take", poison, Setting(pods_per_s=4.0)),
    Row("F28", "Pods whose schedulerName nobody serves are left alone", others_pods),
)
