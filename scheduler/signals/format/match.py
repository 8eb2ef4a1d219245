"""Which Pods something concerns (`match:`), and a label that Pod and node must share (`label_match:`)."""

from __future__ import annotations

import re
from typing import Final

from scheduler.model.labels import is_label_key, is_label_value
from scheduler.model.rules import LabelMatch, Match
from scheduler.strict_yaml.fields import Fields, Shape, read_fields, read_list, read_mapping
from scheduler.strict_yaml.nodes import YamlMapping, YamlNode, is_broken
from scheduler.strict_yaml.report import Scope, clip, got
from scheduler.strict_yaml.values import read_any_text, read_text

MATCH: Final = Shape(fields=("namespaces", "labels"))
LABEL_MATCH: Final = Shape(fields=("pod", "node"), required=("pod", "node"))
_OF_SIGNALS: Final = ("signal", "filter", "score", "weight")

_NAMESPACE_GLOB: Final = re.compile(r"(?:[-a-z0-9*?]|\[!?[-a-z0-9]+\])+")
_MAX_GLOB: Final = 253


def read_match(node: YamlNode | None, scope: Scope) -> Match:
    fields = read_fields(node, scope, MATCH)
    if fields is None:
        return Match()
    namespaces = read_globs(fields.get("namespaces"), scope.inner("namespaces"))
    return Match(namespaces, read_labels(fields.get("labels"), scope.inner("labels")))


def read_globs(node: YamlNode | None, scope: Scope) -> tuple[str, ...]:
    """Return globs over namespaces."""
    globs = []
    write = 'Write globs, as `[shop, "shop-*"]`, or drop the line to match all'
    for item in read_list(node, scope, write) or ():
        glob = read_text(item, scope)
        if glob is not None and not (len(glob) <= _MAX_GLOB and _NAMESPACE_GLOB.fullmatch(glob)):
            scope.problem(
                item, f"not a glob over namespaces, {got(item)}. Write lower-case letters, digits, `-`, `*` and `?`"
            )
        elif glob is not None:
            globs.append(glob)
    return tuple(globs)


def read_labels(node: YamlNode | None, scope: Scope) -> dict[str, str]:
    """Return labels and the values that they must have."""
    labels: dict[str, str] = {}
    mapping = read_mapping(node, scope, "Write `{tier: web}`, or drop the line to match all")
    for key, value in mapping.entries if mapping else ():
        if read_text(key, scope) is None or is_broken(value):
            continue
        if not is_label_key(key.value):
            scope.problem(
                key, f"not a label's key, {got(key)}. Write a name as Kubernetes allows it, as `app.kubernetes.io/name`"
            )
        text = read_any_text(value, scope.inner(clip(key.value)))
        if text is not None and not is_label_value(text):
            scope.problem(
                value, f"not a label's value, {got(value)}. Write at most 63 letters, digits, `-`, `_` and `.`"
            )
        elif text is not None:
            labels[key.value] = text
    return labels


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
    if not isinstance(node, YamlMapping):
        key = _read_key(node, scope)
        return None if key is None else LabelMatch(key, key)
    inner = read_fields(node, scope, LABEL_MATCH)
    if inner is None:
        return None
    of_pod, of_node = (_read_key(inner.get(name), scope.inner(name)) for name in ("pod", "node"))
    return None if of_pod is None or of_node is None else LabelMatch(of_pod, of_node)


def _read_key(node: YamlNode | None, scope: Scope) -> str | None:
    key = read_text(node, scope)
    if key is None or node is None or is_label_key(key):
        return key
    write = "Write a name as Kubernetes allows it, as `example.com/tenant`"
    scope.problem(node, f"not a label's key, {got(node)}. {write}")
    return None
