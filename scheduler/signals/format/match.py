"""Which Pods something concerns: namespaces and labels."""

from __future__ import annotations

import re
from typing import Final

from scheduler.model.labels import is_label_key, is_label_value
from scheduler.model.rules import Match
from scheduler.signals.format.fields import Shape, read_fields, read_list, read_mapping
from scheduler.signals.format.report import Scope, got, is_broken
from scheduler.signals.format.values import read_any_text, read_text
from scheduler.strict_yaml.yaml_nodes import Node, clip

MATCH: Final = Shape(fields=("namespaces", "labels"))

_NAMESPACE_GLOB: Final = re.compile(r"(?:[-a-z0-9*?]|\[!?[-a-z0-9]+\])+")
_MAX_GLOB: Final = 253


def read_match(node: Node | None, scope: Scope) -> Match:
    fields = read_fields(node, scope, MATCH)
    if fields is None:
        return Match()
    namespaces = read_globs(fields.get("namespaces"), scope.inner("namespaces"))
    return Match(namespaces, read_labels(fields.get("labels"), scope.inner("labels")))


def read_globs(node: Node | None, scope: Scope) -> tuple[str, ...]:
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


def read_labels(node: Node | None, scope: Scope) -> dict[str, str]:
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
