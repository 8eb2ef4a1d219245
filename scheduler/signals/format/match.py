"""Which Pods something concerns (`match:`), and a label that Pod and node must share (`label_match:`)."""

from __future__ import annotations

import re
from typing import Final

from scheduler.model.labels import is_label_key, is_label_value
from scheduler.model.rules import LabelMatch, Match
from scheduler.model.selectors import SelectorTerm
from scheduler.strict_yaml.fields import Fields, Shape, read_fields, read_list, read_mapping
from scheduler.strict_yaml.nodes import YamlMapping, YamlNode, YamlSequence, is_broken
from scheduler.strict_yaml.report import Scope, clip, got
from scheduler.strict_yaml.values import read_any_text, read_text, read_word

MATCH: Final = Shape(
    fields=("namespaces", "labels", "requests", "matchExpressions", "namespace_labels", "namespaceSelector")
)
SELECTOR: Final = Shape(fields=("matchLabels", "matchExpressions"))
EXPRESSION: Final = Shape(fields=("key", "operator", "values"), required=("key", "operator"))
LABEL_MATCH: Final = Shape(fields=("pod", "node"), required=("pod", "node"))
_OF_SIGNALS: Final = ("signal", "filter", "score", "weight")

WITH_VALUES: Final = ("In", "NotIn")
INSTEAD: Final = {"Exists": "In", "DoesNotExist": "NotIn"}
"""Operators without values, and those that take some."""
_WRITE_VALUES: Final = "Write values, as `[shop, bank]`"
NAMESPACE_GLOB: Final = re.compile(r"(?:[-a-z0-9*?]|\[!?[-a-z0-9]+\])+")
MAX_GLOB: Final = 253
RESOURCE_GLOB: Final = re.compile(r"(?:[-a-z0-9.*?]{1,253}/)?[-A-Za-z0-9_.*?]{1,63}")


def read_match(node: YamlNode | None, scope: Scope) -> Match:
    fields = read_fields(node, scope, MATCH)
    if fields is None:
        return Match()
    namespaces = read_globs(fields.get("namespaces"), scope.inner("namespaces"))
    labels = read_labels(fields.get("labels"), scope.inner("labels"))
    expressions = _read_expressions(fields.get("matchExpressions"), scope.inner("matchExpressions"))
    choices = read_choices(fields.get("namespace_labels"), scope.inner("namespace_labels"))
    of_namespace = tuple(SelectorTerm(key, "In", values) for key, values in choices.items())
    selector = _read_selector(fields.get("namespaceSelector"), scope.inner("namespaceSelector"))
    requests = _read_resources(fields.get("requests"), scope.inner("requests"))
    return Match(namespaces, labels, expressions, of_namespace + selector, requests)


def _read_resources(node: YamlNode | None, scope: Scope) -> tuple[str, ...]:
    write = "Write names of resources, as `[nvidia.com/gpu, amd.com/*]`"
    found: list[str] = []
    for item in read_list(node, scope, write) or ():
        text = read_text(item, scope)
        if text is not None and not RESOURCE_GLOB.fullmatch(text):
            scope.problem(item, f"not a resource's name, {got(item)}. {write}")
        elif text is not None:
            found.append(text)
    return tuple(found)


def _read_selector(node: YamlNode | None, scope: Scope) -> tuple[SelectorTerm, ...]:
    """Return what a label selector of Kubernetes asks for."""
    fields = read_fields(node, scope, SELECTOR)
    if fields is None:
        return ()
    labels = read_labels(fields.get("matchLabels"), scope.inner("matchLabels"))
    equal = tuple(SelectorTerm(key, "In", (value,)) for key, value in labels.items())
    return equal + _read_expressions(fields.get("matchExpressions"), scope.inner("matchExpressions"))


def _read_expressions(node: YamlNode | None, scope: Scope) -> tuple[SelectorTerm, ...]:
    write = "Write `[{key: tier, operator: In, values: [web, api]}]`, or drop the line"
    found = [_read_expression(item, scope) for item in read_list(node, scope, write) or ()]
    return tuple(one for one in found if one is not None)


def _read_expression(node: YamlNode, scope: Scope) -> SelectorTerm | None:
    fields = read_fields(node, scope, EXPRESSION)
    if fields is None:
        return None
    key = _read_key(fields.get("key"), scope.inner("key"))
    operator = read_word(fields.get("operator"), scope.inner("operator"), (*WITH_VALUES, *INSTEAD))
    inner = scope.inner("values")
    if operator in WITH_VALUES and "values" not in fields:
        scope.problem(fields.at("operator"), f"operator {operator} needs values. Write `values: [web, api]`")
    # An object of Kubernetes may have an empty list here.
    items = read_list(fields.get("values"), inner, _WRITE_VALUES, may_be_empty=operator in INSTEAD) or ()
    if operator in INSTEAD and items:
        what = f"operator {operator} takes no values, got {len(items)}"
        inner.problem(fields.at("values"), f"{what}. Drop the line, or write operator {INSTEAD[operator]}")
        return None
    values = tuple(value for item in items if (value := _read_value(item, inner)) is not None)
    return None if key is None or operator is None else SelectorTerm(key, operator, values)


def read_choices(node: YamlNode | None, scope: Scope) -> dict[str, tuple[str, ...]]:
    """Return labels and the values of which they must have one, each written alone or as a list."""
    choices: dict[str, tuple[str, ...]] = {}
    mapping = read_mapping(node, scope, "Write `{team: shop}` or `{team: [shop, bank]}`, or drop the line")
    for key, value in mapping.entries if mapping else ():
        if read_text(key, scope) is None or is_broken(value):
            continue
        if not is_label_key(key.value):
            write = "Write a name as Kubernetes allows it, as `kubernetes.io/metadata.name`"
            scope.problem(key, f"not a label's key, {got(key)}. {write}")
        inner, is_list = scope.inner(clip(key.value)), isinstance(value, YamlSequence)
        items = read_list(value, inner, _WRITE_VALUES) or () if is_list else (value,)
        choices[key.value] = tuple(text for item in items if (text := _read_value(item, inner)) is not None)
    return choices


def _read_value(node: YamlNode, scope: Scope) -> str | None:
    text = read_any_text(node, scope)
    if text is None or is_label_value(text):
        return text
    scope.problem(node, f"not a label's value, {got(node)}. Write at most 63 letters, digits, `-`, `_` and `.`")
    return None


def read_globs(node: YamlNode | None, scope: Scope) -> tuple[str, ...]:
    """Return globs over namespaces."""
    globs = []
    write = 'Write globs, as `[shop, "shop-*"]`, or drop the line to match all'
    for item in read_list(node, scope, write) or ():
        glob = read_text(item, scope)
        if glob is not None and not (len(glob) <= MAX_GLOB and NAMESPACE_GLOB.fullmatch(glob)):
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
        text = _read_value(value, scope.inner(clip(key.value)))
        if text is not None:
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
