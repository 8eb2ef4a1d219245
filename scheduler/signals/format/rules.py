"""The `rules:` part of a rule file: to which Pods a rule applies, what it looks at and how much it weighs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from scheduler.model.rules import MAX_WEIGHT, ByKind, Rule, WeightSignal
from scheduler.signals.format.built_in import check_limits
from scheduler.signals.format.filter_and_score import read_curve, read_filter, read_score
from scheduler.signals.format.match import read_label_match, read_match
from scheduler.signals.format.rollout import ROLLOUT, read_rollout
from scheduler.signals.format.rule_keys import KEY_FIELDS, read_rule_keys
from scheduler.signals.format.signals import Declared
from scheduler.signals.format.units import Measure
from scheduler.strict_yaml.fields import Fields, Shape, read_fields, read_list
from scheduler.strict_yaml.nodes import YamlMapping, YamlNode, YamlScalar
from scheduler.strict_yaml.report import Scope, clip, did_you_mean, got
from scheduler.strict_yaml.values import read_plain_number, read_text

MAX_RULES: Final = 100
"""Over all files."""
DEFAULT_WEIGHT: Final = 1.0

RULE: Final = Shape(
    fields=("name", "match", "signal", "filter", "score", "weight", "label_match", *KEY_FIELDS, *ROLLOUT),
    required=("name",),
    refused={
        "hold": "a hold time belongs to the filter. Write `filter: {max: 80%, hold: 60s}`",
        "soft_after": "belongs to the filter. Write `filter: {max: 80%, soft_after: 10m}`",
        "inflight": "what Pods add belongs to the signal. Write `inflight: {cpu: request}` in the signal",
        "pair": "the two ends of a pair belong to the signal. Write what is called: `calls: {labels: {app: cart}}`",
    },
)
WEIGHT: Final = Shape(fields=("signal", "points", "missing"), required=("signal", "points"))

NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


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

    def read(self, node: YamlNode | None, scope: Scope) -> None:
        items = read_list(node, scope.inner("rules"), "Write `- name: …` and what the rule does, or drop the line")
        for number, item in enumerate(items or (), start=1):
            if scope.report.is_full:
                return
            self._n_read += 1
            if self._n_read == MAX_RULES + 1:
                scope.problem(
                    item, f"more than {MAX_RULES} rules in all files. Drop some, or combine rules over one signal"
                )
            rule = self._rule(item, Scope(scope.report, _label(item, number)))
            if rule is not None:
                self.rules.append(rule)

    def _rule(self, node: YamlNode, scope: Scope) -> Rule | None:
        n_problems = len(scope.report.problems)
        fields = read_fields(node, scope, RULE)
        if fields is None:
            return None
        name = self._name(fields)
        label_match = read_label_match(fields)
        signal = self.signal_of(fields.get("signal"), scope.inner("signal"))
        measure = Measure(signal.name, signal.unit) if signal else Measure("", None)
        _check_effects(fields, signal)
        match = read_match(fields.get("match"), scope.inner("match"))
        limits = read_filter(fields.get("filter"), scope.inner("filter"), measure)
        score = read_score(fields.get("score"), scope.inner("score"), measure)
        weight = self._weight(fields)
        keys = read_rule_keys(fields, signal, score)
        measured = signal.signal if signal else None
        rollout = read_rollout(fields, measured)
        if measured is not None:
            check_limits(fields, measured)
        if len(scope.report.problems) > n_problems or name is None or (measured is None and label_match is None):
            return None
        read = measured.name if measured else ""
        return Rule(
            name,
            read,
            match,
            limits,
            score,
            weight,
            label_match,
            keys.pod_label,
            keys.calls,
            keys.gpu_resources,
            where=scope.where(node),
            **rollout,
        )

    def _name(self, fields: Fields) -> str | None:
        node = fields.get("name")
        name = read_text(node, fields.scope.inner("name"))
        if name is None or node is None:
            return None
        if not NAME.fullmatch(name):
            write = "Write lower-case letters, digits and `-`, at most 63, a letter or digit at both ends"
            fields.scope.inner("name").problem(node, f"not a rule's name, {got(node)}. {write}")
            return None
        if name in self._places:
            fields.scope.problem(node, f"is defined twice, first at {self._places[name]}. Rename one of the two")
            return None
        self._places[name] = fields.scope.where(node)
        return name

    def signal_of(self, node: YamlNode | None, scope: Scope) -> Declared | None:
        """Return the signal that `node` names."""
        name = read_text(node, scope)
        if name is None or node is None:
            return None
        if name in self.signals:
            return self.signals[name]
        if self.is_complete:
            known = ", ".join(sorted(self.signals)[:8]) or "none is declared"
            scope.problem(
                node,
                f"unknown signal, {got(node)}{did_you_mean(name, self.signals)}. Declare it; known: {known}",
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
        if isinstance(node, YamlMapping):
            return self._weight_signal(node, scope)
        value = read_plain_number(node, scope, 0.0, MAX_WEIGHT)
        return DEFAULT_WEIGHT if value is None else value

    def _weight_signal(self, node: YamlMapping, scope: Scope) -> float | WeightSignal:
        fields = read_fields(node, scope, WEIGHT)
        if fields is None:
            return DEFAULT_WEIGHT
        signal = self.signal_of(fields.get("signal"), scope.inner("signal"))
        if signal is not None and signal.by not in (ByKind.CLUSTER, None):
            what = f"a weight is one number for all nodes, and signal '{signal.name}' is `by: {signal.by}`"
            scope.inner("signal").problem(fields.at("signal"), f"{what}. Write a signal that is `by: cluster`")
        if signal is not None and signal.signal is not None and signal.signal.built_in is not None:
            what = f"a weight needs a signal of a Prometheus, and signal '{signal.name}' is built in"
            scope.inner("signal").problem(fields.at("signal"), f"{what}. Write a signal with an `expr`")
        measure = Measure(signal.name, signal.unit) if signal else Measure("", None)
        curve = read_curve(fields.get("points"), scope.inner("points"), measure)
        missing = read_plain_number(fields.get("missing"), scope.inner("missing"), 0.0, MAX_WEIGHT)
        if signal is None or curve is None:
            return DEFAULT_WEIGHT
        return WeightSignal(signal.name, curve, min(curve.ys) if missing is None else missing)


def _label(node: YamlNode, number: int) -> str:
    """Name a rule in messages by what it calls itself, else by its place in the list."""
    for key, value in node.entries if isinstance(node, YamlMapping) else ():
        if key.value == "name" and isinstance(value, YamlScalar) and value.value:
            return f"rule '{clip(value.value)}'"
    return f"rule {number}"


def _check_effects(fields: Fields, signal: Declared | None) -> None:
    if "label_match" in fields:
        return
    if "signal" not in fields:
        fields.scope.problem(fields.node, "`signal` is missing. Write `signal: …`")
    if "filter" not in fields and "score" not in fields:
        fields.scope.problem(
            fields.node, "neither filter nor score: the rule does nothing. Write at least one of the two"
        )
    if signal is not None and signal.by is ByKind.CLUSTER and "score" in fields:
        what = f"signal '{signal.name}' is one number for the cluster, so every node would get the same score"
        write = "Score a signal that is by node or by label, or use this one for a filter or a weight"
        fields.scope.inner("score").problem(fields.at("score"), f"{what}. {write}")
