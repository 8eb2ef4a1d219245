"""Rules without a signal: a label of the Pod whose value the node's label must have (`label_match:`)."""

from __future__ import annotations

from typing import Final

from scheduler.model.labels import is_label_key
from scheduler.model.rules import LabelMatch
from scheduler.signals.format.fields import Fields, Shape, read_fields
from scheduler.signals.format.report import Scope, got, is_broken
from scheduler.signals.format.values import read_text
from scheduler.strict_yaml import yaml_nodes
from scheduler.strict_yaml.yaml_nodes import Node

LABEL_MATCH: Final = Shape(fields=("pod", "node"), required=("pod", "node"))
_OF_SIGNALS: Final = ("signal", "filter", "score", "weight")


def read_label_match(fields: Fields) -> LabelMatch | None:
    """Return a rule's label match, `label_match: key` standing for the same key on both sides."""
    node, scope = fields.get("label_match"), fields.scope.inner("label_match")
    if node is None:
        return None
    for name in _OF_SIGNALS:
        if name in fields:
            what = f"`{name}` and label_match exclude each other: labels are compared, nothing is measured, got both"
            fields.scope.inner(name).problem(fields.at(name), f"{what}. Write two rules")
    if is_broken(node):
        return None
    if not isinstance(node, yaml_nodes.Mapping):
        key = _read_key(node, scope)
        return None if key is None else LabelMatch(key, key)
    inner = read_fields(node, scope, LABEL_MATCH)
    if inner is None:
        return None
    of_pod, of_node = (_read_key(inner.get(name), scope.inner(name)) for name in ("pod", "node"))
    return None if of_pod is None or of_node is None else LabelMatch(of_pod, of_node)


def _read_key(node: Node | None, scope: Scope) -> str | None:
    key = read_text(node, scope)
    if key is None or node is None or is_label_key(key):
        return key
    write = "Write a name as Kubernetes allows it, as `example.com/tenant`"
    scope.problem(node, f"not a label's key, {got(node)}. {write}")
    return None
