"""Signals without an expression: what they count or read of the cluster, and what is meant for the others only."""

from __future__ import annotations

from typing import Final

from scheduler.model.labels import is_label_key
from scheduler.model.requests import PODS
from scheduler.model.rules import BuiltIn, BuiltInKind, ByKind, Signal, Unit
from scheduler.strict_yaml.fields import Fields, Shape, read_fields, read_list
from scheduler.strict_yaml.nodes import YamlMapping, YamlNode, YamlScalar, is_broken
from scheduler.strict_yaml.report import Scope, did_you_mean, got
from scheduler.strict_yaml.values import read_duration, read_text, read_word

MAX_WINDOW_S: Final = 86_400.0
"""For so long Pods that have gone are remembered."""

_KINDS: Final = tuple(BuiltInKind)
_ASKED_ONLY: Final = (
    "interval", "max_age", "range", "reduce", "inflight", "window", "server", "dialect", "lag", "smoothing",
)  # fmt: skip
_EXACT: Final = "a built-in signal is exact at each moment"
SIGNAL: Final = Shape(
    fields=(*_KINDS, "by", "unit"),
    refused={
        "expr": "an expression and a built-in signal exclude each other, got both. Keep one of the two",
        **{name: f"{_EXACT}, so that `{name}` means nothing. Drop the field" for name in _ASKED_ONLY},
        "window": "only a count has a window, inside it. Write `count: {same: [app], window: 1h}`, or drop the field",
    },
)
COUNT: Final = Shape(fields=("same", "window", "namespaces"), required=("same",))
_PLAIN_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_BYTES: Final = ("memory", "ephemeral-storage")
_HUGEPAGES: Final = "hugepages-"
_SHARES: Final = (Unit.RATIO, Unit.PERCENT)
_FILTER_ONLY_ASKED: Final = {
    "clear": "its value changes with the Pods and not with samples, so that there is nothing to wait for",
    "hold": "its value changes with the Pods and not with samples, so that there is nothing to wait for",
    "valve": "each Pod reads another value, and none of them is in doubt",
}


def is_built_in(body: YamlNode) -> bool:
    """Whether a signal says one of the built-in kinds, and maybe an expression too."""
    return isinstance(body, YamlMapping) and any(key.value in _KINDS for key, _ in body.entries)


def read_built_in(key: YamlScalar, body: YamlNode, scope: Scope) -> tuple[Signal | None, Unit | None, ByKind | None]:
    """Return the signal, None where it has problems; its unit and what it is by as far as they can be read."""
    n_problems = len(scope.report.problems)
    fields = read_fields(body, scope, SIGNAL)
    if fields is None:
        return None, None, None
    kinds = [kind for kind in BuiltInKind if kind in fields]
    if len(kinds) > 1:
        what = f"{kinds[0]} and {kinds[1]} exclude each other, got both"
        scope.problem(fields.at(kinds[1]), f"{what}. Write two signals")
    built_in = _read_kind(kinds[0], fields)
    by, label = _read_by(fields.get("by"), scope.inner("by"))
    unit = _read_unit(fields, kinds[0], built_in.resource if built_in else "")
    if len(scope.report.problems) > n_problems or built_in is None or by is None or unit is None:
        return None, unit, by
    signal = Signal(key.value, "", by=by, label=label, unit=unit, built_in=built_in, where=scope.where(key))
    return signal, unit, by


def check_limits(fields: Fields, signal: Signal) -> None:
    """Refuse what a filter over a built-in signal cannot have."""
    node = fields.get("filter") if signal.built_in is not None else None
    for key, _ in node.entries if isinstance(node, YamlMapping) else ():
        if key.value in _FILTER_ONLY_ASKED:
            what = f"signal '{signal.name}' is built in: {_FILTER_ONLY_ASKED[key.value]}"
            fields.scope.inner("filter").problem(key, f"{what}, got '{key.value}'. Drop the field")


def _read_kind(kind: BuiltInKind, fields: Fields) -> BuiltIn | None:
    node, scope = fields.get(kind), fields.scope.inner(kind)
    match kind:
        case BuiltInKind.COUNT:
            return _read_count(node, scope)
        case BuiltInKind.PODS:
            return _read_pods(node, scope)
        case BuiltInKind.REQUESTED | BuiltInKind.ALLOCATABLE:
            return _read_resource(kind, node, scope)


def _read_count(node: YamlNode | None, scope: Scope) -> BuiltIn | None:
    fields = read_fields(node, scope, COUNT)
    if fields is None:
        return None
    inner = scope.inner("same")
    items = read_list(fields.get("same"), inner, "Write Pod labels, as `same: [app]`")
    same = [_read_key(item, inner) for item in items or ()]
    keys = tuple(key for key in same if key is not None)
    for number, item in enumerate(items or ()):
        if same[number] is not None and same[number] in same[:number]:
            inner.problem(item, f"is listed twice, {got(item)}. Drop one of the two")
    window_s = _read_window(fields.get("window"), scope.inner("window"))
    namespaces = read_word(fields.get("namespaces"), scope.inner("namespaces"), ("same", "all"))
    if items is None or len(keys) != len(items):
        return None
    return BuiltIn(BuiltInKind.COUNT, same=tuple(sorted(keys)), window_s=window_s, all_namespaces=namespaces == "all")


def _read_key(item: YamlNode, scope: Scope) -> str | None:
    key = read_text(item, scope)
    if key is None or is_label_key(key):
        return key
    scope.problem(item, f"not a label's key, {got(item)}. Write a name as Kubernetes allows it, as `app`")
    return None


def _read_window(node: YamlNode | None, scope: Scope) -> float:
    window_s = read_duration(node, scope)
    if node is not None and window_s is not None and not 1.0 <= window_s <= MAX_WINDOW_S:
        what = f"must be from 1s to 1d, because Vane forgets Pods that have gone after 1d, {got(node)}"
        scope.problem(node, f"{what}. Write `window: 1h`, or drop the line for the Pods that are there")
    return window_s or 0.0


def _read_pods(node: YamlNode | None, scope: Scope) -> BuiltIn | None:
    if node is None or is_broken(node):
        return None
    if not isinstance(node, YamlMapping) or node.entries:
        write = "Write `pods: {}`, or `count: {same: [app]}` for some of them"
        scope.problem(node, f"must be an empty mapping, {got(node)}. {write}")
        return None
    return BuiltIn(BuiltInKind.PODS)


def _read_resource(kind: BuiltInKind, node: YamlNode | None, scope: Scope) -> BuiltIn | None:
    name = read_text(node, scope)
    if name is None or node is None:
        return None
    if name == PODS and kind is BuiltInKind.REQUESTED:
        scope.problem(node, "Pods do not request pods, got 'pods'. Write `pods: {}` for their number")
        return None
    prefix, slash, _ = name.partition("/")
    is_known = name in (*_PLAIN_RESOURCES, PODS) or name.startswith(_HUGEPAGES)
    if not is_known and not (slash and prefix and is_label_key(name)):
        close = did_you_mean(name, _PLAIN_RESOURCES)
        write = f"Write {', '.join(_PLAIN_RESOURCES)} or a full name, as `nvidia.com/gpu`"
        scope.problem(node, f"not a resource of nodes, {got(node)}{close}. {write}")
        return None
    return BuiltIn(kind, resource=name)


def _read_by(node: YamlNode | None, scope: Scope) -> tuple[ByKind | None, str]:
    if node is None:
        return ByKind.NODE, ""
    text = read_text(node, scope)
    if text in (ByKind.NODE, ByKind.CLUSTER):
        return ByKind(text), ""
    if text in (ByKind.GPU, ByKind.WORKLOAD, ByKind.PAIR):
        what = f"a built-in signal is by node, by node label or by cluster, {got(node)}"
        scope.problem(node, f"{what}. Write `node`, `cluster` or a node label, as `topology.kubernetes.io/zone`")
        return None, ""
    if text is not None and not is_label_key(text):
        write = "Write `node`, `cluster` or a label, as `topology.kubernetes.io/zone`"
        scope.problem(node, f"not a node label, {got(node)}. {write}")
        return None, ""
    if text is None:
        return None, ""
    if "/" not in text and (close := did_you_mean(text, ("node", "cluster"))):
        scope.warning(node, f"read as the node label '{text}'{close}. A label with a prefix is never mistaken")
    return ByKind.LABEL, text


def _read_unit(fields: Fields, kind: BuiltInKind, resource: str) -> Unit | None:
    """Return the unit: bytes of memory if none is written, else none."""
    is_bytes = resource in _BYTES or resource.startswith(_HUGEPAGES)
    known = _units(kind, is_bytes=is_bytes)
    node, scope = fields.get("unit"), fields.scope.inner("unit")
    if node is None:
        return Unit.BYTES if is_bytes else Unit.NONE
    word = read_word(node, scope, list(Unit))
    if word is None:
        return None
    if Unit(word) not in known:
        what = f"not a unit of {' '.join((kind, resource)).strip()}, {got(node)}"
        scope.problem(node, f"{what}. Write one of: {', '.join(known)}, or drop the line")
        return None
    return Unit(word)


def _units(kind: BuiltInKind, *, is_bytes: bool) -> tuple[Unit, ...]:
    own = (Unit.NONE, Unit.BYTES) if is_bytes else (Unit.NONE,)
    return own if kind in (BuiltInKind.COUNT, BuiltInKind.ALLOCATABLE) else (*own, *_SHARES)
