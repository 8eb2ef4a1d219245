"""What one series of a signal stands for: `by:`, and the series labels that it needs."""

from __future__ import annotations

import re
from typing import Final

from scheduler.model.labels import is_label_key
from scheduler.model.rules import ByKind, PairKey, WorkloadKey
from scheduler.signals.format.joined_by import JoinedBy
from scheduler.strict_yaml.fields import Fields, Shape, read_fields
from scheduler.strict_yaml.nodes import YamlMapping, YamlNode
from scheduler.strict_yaml.report import Scope, did_you_mean, got
from scheduler.strict_yaml.values import read_text

WORKLOAD: Final = Shape(fields=("label", "namespace"), required=("label",))
PAIR: Final = Shape(fields=("label", "from", "to"), required=("label", "from", "to"))

BY_WORDS: Final = tuple(kind.value for kind in ByKind if kind is not ByKind.LABEL)
SERIES_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# As OpenTelemetry has them in a Prometheus that takes UTF-8 names.
ANY_SERIES_LABEL: Final = re.compile(r"[^\W\d][\w.:/-]{0,252}")
_METRIC: Final = "__name__"
_ON_NODES: Final = (ByKind.NODE, ByKind.GPU, ByKind.WORKLOAD)
_WRITE_WORKLOAD: Final = "Write `workload: destination_workload`, or `workload: {label: …, namespace: …}`"
_WRITE_PAIR: Final = "Write `pair: {label: topology.kubernetes.io/zone, from: source_zone, to: destination_zone}`"


def read_by(fields: Fields) -> JoinedBy | None:
    """Return what one series stands for, None where that cannot be read."""
    kind, label = _kind(fields)
    n_problems = len(fields.scope.report.problems)
    workload = _workload(fields, kind)
    domains, pair = _pair(fields, kind)
    node_label = _node_label(fields, kind)
    if kind is None or len(fields.scope.report.problems) > n_problems:
        return None
    return JoinedBy(kind, label or domains, workload, pair, node_label)


def _kind(fields: Fields) -> tuple[ByKind | None, str]:
    node = fields.get("by")
    if "by" not in fields:
        return ByKind.NODE, ""
    scope = fields.scope.inner("by")
    text = read_text(node, scope)
    if text is None or node is None:
        return None, ""
    if text in BY_WORDS:
        return ByKind(text), ""
    if not is_label_key(text):
        known = f"Write one of: {', '.join(BY_WORDS)}; or a node label, as `topology.kubernetes.io/zone`"
        scope.problem(node, f"not a node label, {got(node)}. {known}")
        return None, ""
    if "/" not in text and (close := did_you_mean(text, BY_WORDS)):
        scope.warning(node, f"read as the node label '{text}'{close}. A label with a prefix is never mistaken")
    return ByKind.LABEL, text


def _workload(fields: Fields, kind: ByKind | None) -> WorkloadKey | None:
    scope = fields.scope.inner("workload")
    if _is_out_of_place(fields, "workload", kind, ByKind.WORKLOAD, _WRITE_WORKLOAD):
        return None
    node = fields.get("workload")
    if not isinstance(node, YamlMapping):
        label = _series_label(node, scope)
        return None if label is None else WorkloadKey(label)
    inner = read_fields(node, scope, WORKLOAD)
    if inner is None:
        return None
    label = _series_label(inner.get("label"), scope.inner("label"))
    namespace = _series_label(inner.get("namespace"), scope.inner("namespace"))
    return None if label is None else WorkloadKey(label, namespace or "")


def _pair(fields: Fields, kind: ByKind | None) -> tuple[str, PairKey | None]:
    """Return the node label whose values are the domains, and the series labels of the two ends."""
    scope = fields.scope.inner("pair")
    if _is_out_of_place(fields, "pair", kind, ByKind.PAIR, _WRITE_PAIR):
        return "", None
    inner = read_fields(fields.get("pair"), scope, PAIR)
    if inner is None:
        return "", None
    node = inner.get("label")
    label = read_text(node, scope.inner("label"))
    if node is not None and label is not None and not is_label_key(label):
        scope.inner("label").problem(
            node, f"not a node label, {got(node)}. Write one, as `topology.kubernetes.io/zone`"
        )
    source = _series_label(inner.get("from"), scope.inner("from"))
    target = _series_label(inner.get("to"), scope.inner("to"))
    if source is not None and source == target:
        what = f"from and to must be two labels, got {source!r} for both"
        scope.problem(inner.at("to"), f"{what}. Write the label of each end")
    return label or "", None if source is None or target is None else PairKey(source, target)


def _node_label(fields: Fields, kind: ByKind | None) -> str:
    """Return the one series label that names the node, empty where the known ones are tried."""
    node, scope = fields.get("node_label"), fields.scope.inner("node_label")
    text = read_text(node, scope)
    if "node_label" in fields and kind not in (*_ON_NODES, None):
        is_by = "a node label" if kind is ByKind.LABEL else str(kind)
        what = f"names nodes, and the series of a signal `by: {is_by}` name none"
        scope.problem(fields.at("node_label"), f"{what}. Write `by: node`, `gpu` or `workload`, or drop the line")
    elif text is not None and node is not None and (text == _METRIC or not ANY_SERIES_LABEL.fullmatch(text)):
        scope.problem(node, f"not a label of a series, {got(node)}. Write its name as the series have it, as `host`")
        return ""
    return text or ""


def _is_out_of_place(fields: Fields, name: str, kind: ByKind | None, wanted: ByKind, write: str) -> bool:
    """Say where a field is missing, or stands beside another `by`; return whether there is nothing to read."""
    if kind is wanted and name not in fields:
        fields.scope.problem(fields.at("by"), f"`by: {wanted.value}` needs the series labels that say which. {write}")
    elif name in fields and kind not in (wanted, None):
        what = f"belongs to `by: {wanted.value}`, and the signal is `by: {'a label' if kind is ByKind.LABEL else kind}`"
        fields.scope.inner(name).problem(fields.at(name), f"{what}. Write `by: {wanted.value}`, or drop the line")
        return True
    return name not in fields


def _series_label(node: YamlNode | None, scope: Scope) -> str | None:
    text = read_text(node, scope)
    if text is not None and node is not None and not SERIES_LABEL.fullmatch(text):
        scope.problem(node, f"not a label of a series, {got(node)}. Write letters, digits and `_`, as `source_zone`")
        return None
    return text
