"""Random rule files, nodes, Pods and answers for `decisions`: rules over every kind of signal, with every option.

Rules are drawn as the text of a file, Pods and nodes as JSON, answers as series: what is drawn names nothing of the
package but its builders, so that it is the same whatever moves there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

EPOCH_S: Final = 1_767_225_600.0
"""UNIX time at monotonic 0."""

GPU: Final = "nvidia.com/gpu"
_REAL: Final = "vane.dev/real-allocatable"
_FIGURES: Final = (
    '{"cpu": "3"}',
    '{"cpu": "2500m", "memory": "8Gi"}',
    '{"cpu": 6, "nvidia.com/gpu": 3}',
    '{"cpu": "1"}',
    "{}",
    '{"cpu": "many"}',
)
NAMES: Final = tuple(f"n{i}" for i in range(8))
ZONES: Final = ("a", "b", "c")
APPS: Final = ("web", "db", "api")
NAMESPACES: Final = ("shop", "shop-eu", "bank")

Labels = dict[str, str]


@dataclass(frozen=True)
class Measured:
    """A signal of the rule file: its kind as counted, its declaration, and the range in which samples are drawn."""

    kind: str
    text: str
    highest: float = 1.0
    suffix: str = ""
    pending: str = ""

    @property
    def is_asked(self) -> bool:
        return "expr:" in self.text


def _asked(name: str, by: str, more: str = "unit: ratio") -> str:
    return f"{{expr: '{by} ({name})', {more}}}"


SIGNALS: Final[Mapping[str, Measured]] = {
    "load": Measured("node", _asked("load", "max by (node)")),
    "use": Measured("node", _asked("use", "max by (node)", "unit: ratio, inflight: {cpu: request}"), pending="request"),
    "mem": Measured(
        "node",
        _asked("mem", "max by (node)", "unit: bytes, range: [0, 18GiB], window: 45s, inflight: {memory: 512Mi}"),
        17e9,
        pending="constant",
    ),
    "seats": Measured("node", _asked("seats", "max by (node)", "inflight: {value: 2}"), 20.0, pending="constant"),
    "taught": Measured(
        "node",
        _asked("taught", "max by (node)", "unit: percent, window: 5s, inflight: {cpu: learned}"),
        100.0,
        "%",
        "learned",
    ),
    "lessons": Measured(
        "node", _asked("lessons", "max by (node)", "window: 5s, inflight: {value: learned}"), 8.0, pending="learned"
    ),
    "smooth": Measured("node", _asked("smooth", "max by (node)", "unit: ratio, smoothing: 30s, max_age: 90s")),
    "parts": Measured("node", _asked("parts", "sum by (node, cpu)", "unit: ratio, reduce: sum, range: [0, 3]"), 2.0),
    "late": Measured(
        "node", _asked("late", "max by (node)", "unit: ratio, interval: 10s, lag: 'max by (node) (late_s)'")
    ),
    "zone_p99": Measured("label", _asked("p99", "max by (zone)", "by: zone, unit: ms"), 100.0, "ms"),
    "zone_use": Measured(
        "label", _asked("zone_use", "max by (zone)", "by: zone, unit: ratio, inflight: {cpu: 300m}"), pending="constant"
    ),
    "burn": Measured("cluster", _asked("burn", "sum", "by: cluster"), 2.0),
    "cards": Measured("gpu", _asked("card", "max by (node, UUID)", "by: gpu, unit: percent"), 100.0, "%"),
    "card_free": Measured("gpu", _asked("card_free", "min by (node, UUID)", "by: gpu, smoothing: 20s"), 80.0),
    "mine": Measured(
        "workload",
        _asked("mine", "max by (node, app)", "by: workload, workload: {label: app}, unit: ms, smoothing: 20s"),
        100.0,
        "ms",
    ),
    "ours": Measured(
        "workload",
        _asked(
            "ours",
            "max by (node, app, ns)",
            "by: workload, workload: {label: app, namespace: ns}, unit: ms, max_age: 90s",
        ),
        100.0,
        "ms",
    ),
    "trip": Measured(
        "pair",
        _asked("trip", "max by (source, target)", "by: pair, pair: {label: zone, from: source, to: target}, unit: ms"),
        100.0,
        "ms",
    ),
    "mates": Measured("count", "{count: {same: [app]}}", 4.0),
    "near": Measured("count", "{count: {same: [app, team], namespaces: all}, by: zone}", 6.0),
    "recent": Measured("count over a window", "{count: {same: [app], window: 2m}}", 5.0),
    "recent_near": Measured(
        "count over a window", "{count: {same: [app], window: 30s, namespaces: all}, by: zone}", 6.0
    ),
    "full": Measured("requested", "{requested: cpu, unit: ratio}"),
    "full_mem": Measured("requested", "{requested: memory}", 9e9),
    "gpus": Measured("requested", f"{{requested: {GPU}, by: zone}}", 8.0),
    "spare": Measured("allocatable", "{allocatable: cpu}", 9.0),
    "room": Measured("allocatable", f"{{allocatable: {GPU}, by: cluster}}", 30.0),
    "crowd": Measured("pods", "{pods: {}, by: zone}", 12.0),
    "many": Measured("pods", "{pods: {}, unit: percent}", 20.0, "%"),
}
LABEL_MATCH: Final = "label match"
_LIMITS: Final = (0.6, 0.9, 0.95, 0.97)
_OFTEN: Final = ("cards", "cards", "mine", "trip", "trip", "load", "taught", "lessons")
_ALWAYS: Final = ("burn", "use", "taught")
"""What weights and tenants go by, and what is learned over several rule files."""

_KEYS: Final = {
    "workload": ("workload: app",),
    "pair": (
        "calls: {labels: {app: db}}",
        "calls: {labels: {app: web}, namespaces: all}",
        "calls: {pod_label: calls-zone}",
    ),
    "gpu": ("", f"gpus: [{GPU}]"),
}
_TENANTS: Final = """\
tenants:
  - name: red
    match: {{namespace_labels: {{team: red}}}}
    overcommit: {red}%
    while: [{{signal: use, max: 80%, clear: 60%}}, {{signal: burn, max: 1.5, hold: 20s}}]
  - {{name: shops, match: {{namespaces: ["shop*"]}}, overcommit: {shops}%, resources: [cpu, {gpu}]}}
  - {{name: rest, overcommit: {rest}%, resources: [cpu]}}
"""


@dataclass
class RuleText:
    """A rule file, and what the report has to know of its rules: by name their signal, limit and options."""

    text: str = ""
    signals: tuple[str, ...] = ()
    signal: dict[str, str] = field(default_factory=dict)
    limit: dict[str, tuple[str, float]] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)

    def kind(self, rule: str) -> str:
        """Return the kind of a rule's signal; what is no rule's name is a tenant's."""
        signal = self.signal.get(rule)
        return "tenant" if signal is None else SIGNALS[signal].kind if signal else LABEL_MATCH


def random_rules(random: Random) -> RuleText:
    """Return a file with three to twelve rules."""
    found = RuleText()
    lines = ["rules:"]
    for number in range(random.randint(3, 12)):
        name = random.choice([*SIGNALS, *_OFTEN, ""])
        rule = f"{name.replace('_', '-') or 'own-zone'}-{number}"
        parts = [f"name: {rule}", *(_rule(random, rule, name, found) if name else _label_match(random))]
        found.signal[rule], found.options[rule] = name, ", ".join(parts)
        lines.append(f"  - {{{', '.join(part for part in parts if part)}}}")
    if random.random() < 0.5:
        red, shops, rest = random.choice((105, 125, 200)), random.choice((80, 150)), random.choice((50, 100, 130))
        lines.append(_TENANTS.format(red=red, shops=shops, rest=rest, gpu=GPU))
    found.signals = tuple(name for name in SIGNALS if name in _ALWAYS or name in found.signal.values())
    declared = [f"  {name}: {SIGNALS[name].text}" for name in found.signals]
    found.text = "\n".join(["apiVersion: vane.dev/v1", "kind: Rules", "signals:", *declared, *lines])
    return found


def _label_match(random: Random) -> list[str]:
    return ["label_match: {pod: wanted-zone, node: zone}", *_care(random)]


def _care(random: Random) -> list[str]:
    """Return what says on which Pods a rule acts."""
    parts = []
    if random.random() < 0.3:
        parts.append(random.choice(("match: {labels: {app: web}}", "match: {namespaces: [shop*]}")))
    watching = ("mode: shadow", "canary: {percent: 50}", "canary: {percent: 30%, namespaces: [shop, bank]}")
    if random.random() < 0.3:
        parts.append(random.choice(watching))
    return parts


def _rule(random: Random, rule: str, name: str, found: RuleText) -> list[str]:
    signal = SIGNALS[name]
    parts = [f"signal: {name}", *_care(random)]
    if signal.kind in _KEYS:
        parts.append(random.choice(_KEYS[signal.kind]))
    scores = signal.kind != "cluster" and name != "room" and random.random() < 0.75
    if not scores or random.random() < 0.3:
        parts.append(f"filter: {{{', '.join(_filter(random, rule, signal, found))}}}")
    if scores:
        parts += _score(random, signal)
    if signal.is_asked and random.random() < 0.2:
        parts.append("max_age: 35s")
    return parts


def _number(signal: Measured, share: float) -> str:
    return f"{signal.highest * share:.6g}{signal.suffix}"


def _filter(random: Random, rule: str, signal: Measured, found: RuleText) -> list[str]:
    which, share, clear = ("max", random.choice(_LIMITS), 0.6)
    if random.random() < 0.25:
        which, share, clear = "min", random.choice((0.02, 0.05, 0.2)), 1.8
    found.limit[rule] = which, float(f"{signal.highest * share:.6g}")
    parts = [f"{which}: {_number(signal, share)}"]
    if signal.is_asked:
        parts += [f"clear: {_number(signal, share * clear)}"] if random.random() < 0.4 else []
        parts += [f"valve: {random.choice((0.25, 0.5, 0.75))}"] if random.random() < 0.3 else []
        parts += [f"hold: {random.choice((20, 60, 300))}s"] if random.random() < 0.25 else []
        parts += ["missing: reject"] if random.random() < 0.25 else []
    return parts


def _score(random: Random, signal: Measured) -> list[str]:
    if random.random() < 0.5:
        best, worst = random.choice(((0.0, 1.0), (1.0, 0.0), (0.2, 0.8)))
        ends = f"best: {_number(signal, best)}, worst: {_number(signal, worst)}"
    else:
        ys = (100, 60, 30, 10, 0) if signal.kind == "gpu" else tuple(random.choice((0, 20, 55, 100)) for _ in range(5))
        points = zip(random.choice(((0.0, 0.5, 1.0), (0.1, 0.3, 0.5, 0.7, 0.9))), ys, strict=False)
        ends = f"points: [{', '.join(f'[{_number(signal, x)}, {y}]' for x, y in points)}]"
    missing = f", missing: {random.choice(('neutral', 'worst', 'best'))}" if random.random() < 0.5 else ""
    weights = (
        "1",
        "2",
        "3.5",
        "12",
        "{signal: burn, points: [[0, 1], [2, 10]]}",
        "{signal: burn, points: [[0, 4], [1, 0]], missing: 2}",
    )
    return [
        f"score: {{{ends}{missing}}}",
        f"weight: {random.choice(weights)}",
        f"max_share: {random.choice(('5%', '50%', '100%'))}" if random.random() < 0.3 else "",
    ]


# -- what Prometheus answers ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """Series of one answer, as labels and text of the value; `late` has labels and by how many seconds they lag."""

    series: Sequence[tuple[Labels, str]]
    late: Sequence[tuple[Labels, float]]
    lag_s: float
    warnings: tuple[str, ...]


def random_answer(random: Random, name: str, nodes: Sequence[str]) -> Drawn:
    """Return series of a signal: some missing, some no number, out of range or of a node that nobody knows."""
    keys = _keys(name, nodes)
    keys = [key for key in keys if random.random() < 0.93]
    highest = SIGNALS[name].highest * (0.6 if name == "parts" else 1.0)
    series = [(key, _value(random, highest)) for key in keys]
    late = [(key, random.choice((36.0, 47.5, 58.0, 200.0))) for key in keys if random.random() < 0.05]
    lag_s = random.choice((0.0, 0.0, 0.0, 1.5, 12.0))
    return Drawn(series, late, lag_s, ("partial",) if random.random() < 0.04 else ())


def _value(random: Random, highest: float) -> str:
    """Return a sample: often just at a limit, now and then none that can be used."""
    if random.random() < 0.03:
        return random.choice(("NaN", "+Inf", "1e30", "-1"))
    if random.random() < 0.3:
        return f"{highest * random.choice(_LIMITS):.6g}"
    return repr(random.uniform(0.0, highest))


def _keys(name: str, nodes: Sequence[str]) -> list[Labels]:
    kind = SIGNALS[name].kind
    nodes = [*nodes, "nobody"]
    if name == "parts":
        return [{"node": node, "cpu": cpu} for node in nodes for cpu in "01"]
    if name == "ours":
        return [{"node": node, "app": app, "ns": ns} for node in nodes for app in APPS[:2] for ns in NAMESPACES[:2]]
    keys: dict[str, list[Labels]] = {
        "node": [{"node": node} for node in nodes],
        "label": [{"zone": zone} for zone in ZONES],
        "cluster": [{}],
        "gpu": [{"node": node, "UUID": f"{node}-{i}"} for node in nodes for i in range(4)],
        "workload": [{"node": node, "app": app} for node in nodes for app in APPS],
        "pair": [{"source": one, "target": other} for one in ZONES for other in ZONES],
    }
    return keys[kind]


# -- nodes and Pods ------------------------------------------------------------------------------------------


def random_node_fields(random: Random, name: str) -> dict[str, Any]:
    """Return keyword arguments for `make_node`: most have room."""
    return {
        "name": name,
        "labels": {"zone": random.choice(ZONES), "disk": random.choice(("ssd", "hdd"))}
        if random.random() < 0.95
        else {},
        "annotations": {_REAL: random.choice(_FIGURES)} if random.random() < 0.5 else None,
        "taints": [{"key": "slow", "effect": "PreferNoSchedule"}] if random.random() < 0.2 else (),
        "pods": random.choice((5, 20)),
        "images": {"app": 300_000_000} if random.random() < 0.3 else None,
        "extended": {"cpu": random.choice(("4", "8", "16")), **({GPU: 4} if random.random() < 0.8 else {})},
    }


def random_pod_fields(random: Random, name: str) -> dict[str, Any]:
    """Return a Pod that asks for little, so that rules decide."""
    app = random.choice((*APPS, "web", "web"))
    labels = {"app": app, "team": random.choice(("red", "blue"))} if random.random() < 0.95 else {}
    if random.random() < 0.15:
        labels["wanted-zone"] = random.choice(ZONES)
    if random.random() < 0.4:
        labels["calls-zone"] = random.choice(ZONES)
    requests: dict[str, Any] = {
        "cpu": random.choice(("0", "100m", "500m", "1500m")),
        "memory": random.choice(("64Mi", "2Gi")),
    }
    if random.random() < 0.5:
        requests[GPU] = random.randint(1, 3)
    spec: dict[str, Any] = {
        "schedulerName": "vane",
        "containers": [{"name": "c", "image": "app", "resources": {"requests": requests}}],
        "priority": random.choice((0, 0, 0, 5, 10, 10)),
    }
    if random.random() < 0.2:
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
        kind = random.choice(("podAffinity", "podAntiAffinity"))
        preferred = [{"weight": 40, "podAffinityTerm": term}]
        spec["affinity"] = {kind: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    if random.random() < 0.2:
        selector = {"matchLabels": {"app": app}}
        when = random.choice(("DoNotSchedule", "ScheduleAnyway"))
        spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when, "labelSelector": selector}
        spec["topologySpreadConstraints"] = [spread]
    if random.random() < 0.01:
        spec["resourceClaims"] = [{"name": "device"}]
    owner_name = "batch" if app == "api" else "front"
    owner = {"apiVersion": "apps/v1", "kind": "Job", "name": owner_name, "uid": owner_name, "controller": True}
    metadata = {
        "name": name,
        "namespace": random.choice((*NAMESPACES, *("shop",) * 7)),
        "uid": f"{random.getrandbits(64):x}",
        "labels": labels,
        "ownerReferences": [owner] if random.random() < 0.95 else [],
    }
    return {"metadata": metadata, "spec": spec, "status": {}}


def bound(pod: Mapping[str, Any], node: str, bound_s: float, running_s: float | None) -> dict[str, Any]:
    """Return the Pod as the API server has it once it is bound and, perhaps, runs; in monotonic seconds."""
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": _text(bound_s)}
    status: dict[str, Any] = {"conditions": [condition]}
    if running_s is not None:
        state = {"running": {"startedAt": _text(running_s)}}
        status |= {"startTime": _text(bound_s), "containerStatuses": [{"name": "c", "restartCount": 0, "state": state}]}
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def nominated(pod: Mapping[str, Any], node: str) -> dict[str, Any]:
    return {**pod, "status": {"nominatedNodeName": node}}


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(EPOCH_S + seconds, UTC).isoformat()
