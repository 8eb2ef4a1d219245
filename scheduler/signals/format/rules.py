"""The `rules:` part of a rule file: whom a rule concerns, what it looks at and how much it weighs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from scheduler.model.labels import is_label_key, is_label_value
from scheduler.model.rules import MAX_WEIGHT, ByKind, Match, Rule, WeightSignal
from scheduler.signals.format import yaml_nodes
from scheduler.signals.format.effects import read_curve, read_filter, read_score
from scheduler.signals.format.fields import Fields, Shape, read_fields, read_list, read_mapping
from scheduler.signals.format.report import Scope, got, is_broken, nearest
from scheduler.signals.format.signals import Declared
from scheduler.signals.format.values import Measure, read_any_text, read_plain_number, read_text, read_word
from scheduler.signals.format.yaml_nodes import Node, Scalar, clip

MAX_RULES: Final = 100
"""Over all files."""
DEFAULT_WEIGHT: Final = 1.0

RULE: Final = Shape(
    fields=("name", "match", "signal", "filter", "score", "weight", "mode"),
    required=("name", "signal"),
    later={
        "share": "a share cap (share)",
        "max_share": "a share cap (max_share)",
        "cap": "a share cap (cap)",
        "hold": "a hold time (hold)",
        "inflight": "in-flight accounting (inflight)",
        "workload": "the Pod label of a workload signal (workload)",
        "pair": "the domains of a pair signal (pair)",
    },
)
MATCH: Final = Shape(fields=("namespaces", "labels"))
WEIGHT: Final = Shape(fields=("signal", "points", "missing"), required=("signal", "points"))

_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_NAMESPACE_GLOB: Final = re.compile(r"(?:[-a-z0-9*?]|\[!?[-a-z0-9]+\])+")
_MAX_GLOB: Final = 253


@dataclass(slots=True)
class RuleReader:
    """Reads the rules of all files in turn; names and their number count over all of them.

    `is_complete` is False where a file could not be read: then a signal that is not known may stand in it.
    """

    signals: Mapping[str, Declared]
    is_complete: bool
    rules: list[Rule] = field(default_factory=list)
    _places: dict[str, str] = field(default_factory=dict)
    _n_read: int = 0

    def read(self, node: Node | None, scope: Scope) -> None:
        items = read_list(node, scope.inner("rules"), "Write `- name: …` and what the rule does, or drop the line")
        for number, item in enumerate(items or (), start=1):
            if scope.report.is_full:
                return
            self._n_read += 1
            if self._n_read == MAX_RULES + 1:
                scope.problem(
                    item, f"more than {MAX_RULES} rules in all files. Drop some, or join rules over one signal"
                )
            rule = self._rule(item, Scope(scope.report, _label(item, number)))
            if rule is not None:
                self.rules.append(rule)

    def _rule(self, node: Node, scope: Scope) -> Rule | None:
        n_problems = len(scope.report.problems)
        fields = read_fields(node, scope, RULE)
        if fields is None:
            return None
        name = self._name(fields)
        signal = self._signal(fields.get("signal"), scope.inner("signal"))
        measure = Measure(signal.name, signal.unit) if signal else Measure("", None)
        _check_effects(fields, signal)
        match = _match(fields.get("match"), scope.inner("match"))
        limits = read_filter(fields.get("filter"), scope.inner("filter"), measure)
        score = read_score(fields.get("score"), scope.inner("score"), measure)
        weight = self._weight(fields)
        _mode(fields.get("mode"), scope.inner("mode"))
        if len(scope.report.problems) > n_problems or name is None or signal is None or signal.signal is None:
            return None
        return Rule(name, signal.name, match, limits, score, weight, where=scope.where(node))

    def _name(self, fields: Fields) -> str | None:
        node = fields.get("name")
        name = read_text(node, fields.scope.inner("name"))
        if name is None or node is None:
            return None
        if not _NAME.fullmatch(name):
            write = "Write lower-case letters, digits and `-`, at most 63, a letter or digit at both ends"
            fields.scope.inner("name").problem(node, f"not a rule's name, {got(node)}. {write}")
            return None
        if name in self._places:
            fields.scope.problem(node, f"stands twice, first at {self._places[name]}. Rename one of the two")
            return None
        self._places[name] = fields.scope.where(node)
        return name

    def _signal(self, node: Node | None, scope: Scope) -> Declared | None:
        name = read_text(node, scope)
        if name is None or node is None:
            return None
        if name in self.signals:
            return self.signals[name]
        if self.is_complete:
            known = ", ".join(sorted(self.signals)[:8]) or "none is declared"
            scope.problem(
                node,
                f"unknown signal, {got(node)}{nearest(name, self.signals)}. Declare it; known: {known}",
            )
        return None

    def _weight(self, fields: Fields) -> float | WeightSignal:
        node, scope = fields.get("weight"), fields.scope.inner("weight")
        if "weight" not in fields:
            return DEFAULT_WEIGHT
        if "score" not in fields:
            scope.problem(
                fields.at("weight"), "a weight without a score does nothing. Write a `score:`, or drop the weight"
            )
        if isinstance(node, yaml_nodes.Mapping):
            return self._weight_signal(node, scope)
        value = read_plain_number(node, scope, 0.0, MAX_WEIGHT)
        return DEFAULT_WEIGHT if value is None else value

    def _weight_signal(self, node: yaml_nodes.Mapping, scope: Scope) -> float | WeightSignal:
        fields = read_fields(node, scope, WEIGHT)
        if fields is None:
            return DEFAULT_WEIGHT
        signal = self._signal(fields.get("signal"), scope.inner("signal"))
        if signal is not None and signal.by not in (ByKind.CLUSTER, None):
            what = f"a weight is one number for all nodes, and signal '{signal.name}' is `by: {signal.by}`"
            scope.inner("signal").problem(fields.at("signal"), f"{what}. Write a signal that is `by: cluster`")
        measure = Measure(signal.name, signal.unit) if signal else Measure("", None)
        curve = read_curve(fields.get("points"), scope.inner("points"), measure)
        missing = read_plain_number(fields.get("missing"), scope.inner("missing"), 0.0, MAX_WEIGHT)
        if signal is None or curve is None:
            return DEFAULT_WEIGHT
        return WeightSignal(signal.name, curve, min(curve.ys) if missing is None else missing)


def _label(node: Node, number: int) -> str:
    """Name a rule in messages by what it calls itself, else by its place in the list."""
    for key, value in node.entries if isinstance(node, yaml_nodes.Mapping) else ():
        if key.value == "name" and isinstance(value, Scalar) and value.value:
            return f"rule '{clip(value.value)}'"
    return f"rule {number}"


def _check_effects(fields: Fields, signal: Declared | None) -> None:
    if "filter" not in fields and "score" not in fields:
        fields.scope.problem(
            fields.node, "neither filter nor score: the rule does nothing. Write at least one of the two"
        )
    if signal is not None and signal.by is ByKind.CLUSTER and "score" in fields:
        what = f"signal '{signal.name}' is one number for the cluster, so every node would score alike"
        write = "Score a signal that is by node or label, or use this one as a filter or a weight"
        fields.scope.inner("score").problem(fields.at("score"), f"{what}. {write}")


def _mode(node: Node | None, scope: Scope) -> None:
    if isinstance(node, Scalar) and node.value == "shadow":
        scope.problem(
            node,
            "not built yet: rules that only watch (mode: shadow), got 'shadow'. Drop the line for `enforce`",
        )
        return
    read_word(node, scope, ("enforce",))


def _match(node: Node | None, scope: Scope) -> Match:
    fields = read_fields(node, scope, MATCH)
    if fields is None:
        return Match()
    namespaces = []
    inner = scope.inner("namespaces")
    write = 'Write globs, as `[shop, "shop-*"]`, or drop the line to match all'
    for item in read_list(fields.get("namespaces"), inner, write) or ():
        glob = read_text(item, inner)
        if glob is not None and not (len(glob) <= _MAX_GLOB and _NAMESPACE_GLOB.fullmatch(glob)):
            inner.problem(
                item, f"not a glob over namespaces, {got(item)}. Write lower-case letters, digits, `-`, `*` and `?`"
            )
        elif glob is not None:
            namespaces.append(glob)
    return Match(tuple(namespaces), _labels(fields.get("labels"), scope.inner("labels")))


def _labels(node: Node | None, scope: Scope) -> dict[str, str]:
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
