"""Test files: bytes in, checked tests out, or every mistake with its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeVar

from scheduler.errors import Problem
from scheduler.model.objects import Node
from scheduler.model.rules import RuleSet
from scheduler.model.workloads import Namespace
from scheduler.rule_tests.model import (
    InputSeries,
    NodeExpectation,
    PlacedPod,
    RuleExpectation,
    RuleTest,
    RuleTestFile,
    RuleTestMoment,
)
from scheduler.rule_tests.notation import NotationError, parse_series, parse_values
from scheduler.rule_tests.objects import no_pod, read_namespaces, read_node, read_placed_pod, read_pod
from scheduler.signals.format.rule_files import API_VERSION
from scheduler.strict_yaml.fields import Fields, Shape, read_document, read_fields, read_list, read_mapping
from scheduler.strict_yaml.nodes import YamlNode, YamlScalar
from scheduler.strict_yaml.report import Report, Scope, clip, did_you_mean, got, problem_at
from scheduler.strict_yaml.values import read_any_text, read_duration, read_number, read_text, read_truth

KIND: Final = "RuleTests"
DEFAULT_INTERVAL_S: Final = 15.0
MIN_INTERVAL_S: Final = 0.001
LATEST_S: Final = 7 * 86_400.0

FILE: Final = Shape(
    fields=("apiVersion", "kind", "rule_files", "nodes", "namespaces", "pods", "tests"),
    required=("apiVersion", "kind", "rule_files", "tests"),
)
TEST: Final = Shape(
    fields=("name", "nodes", "pods", "interval", "input_series", "at", "pod", "expect", "moments"), required=("name",)
)
MOMENT: Final = Shape(fields=("at", "pod", "expect"), required=("at", "expect"))
SERIES: Final = Shape(fields=("series", "values"), required=("series", "values"))
RULE: Final = Shape(fields=("rule", "nodes", "concerns", "acts", "weight"), required=("rule",))
NODE: Final = Shape(fields=("refused", "missing", "score", "value"))

_NODE_ADVICE: Final = "Write `refused`, `allowed`, `missing`, a score, or `{refused: true, score: 15}`"

T = TypeVar("T")


def read_test_file(path: str, data: bytes) -> tuple[RuleTestFile | None, list[Problem]]:
    """Return the tests of a file and every problem in it; None where nothing can be run."""
    report = Report(path)
    fields = read_document(data, report, FILE, API_VERSION, KIND)
    if fields is None:
        return None, report.problems
    scope = fields.scope
    rule_files = _texts(fields, "rule_files", "Write paths relative to this file, as `[../rules/gpu.yaml]`")
    shared = _Shared(
        tuple(_each(fields, scope, "nodes", read_node)),
        tuple(_each(fields, scope, "pods", read_placed_pod)),
        read_namespaces(fields.get("namespaces"), scope.inner("namespaces")),
    )
    tests: list[RuleTest] = []
    for number, item in enumerate(read_list(fields.get("tests"), scope.inner("tests"), "Write `- name: …`") or (), 1):
        test = _TestReader(Scope(report, f"test {number}"), shared).read(item)
        if test is not None and any(other.name == test.name for other in tests):
            scope.problem(item, f"two tests with the same name, got {test.name!r}. Rename one")
        if test is not None:
            tests.append(test)
    return RuleTestFile(path, rule_files, tuple(tests)), report.problems


def check_rules(tests: Sequence[RuleTest], rules: RuleSet) -> list[Problem]:
    """Return a problem for each rule that is expected to do something and is in no rule file."""
    known = {rule.name for rule in rules.rules}
    return [
        problem_at(
            expected.where,
            f"test '{test.name}': no such rule, got {expected.rule!r}{did_you_mean(expected.rule, known)}."
            f" Write one of: {', '.join(sorted(known))}",
        )
        for test in tests
        for moment in test.moments
        for expected in moment.expected
        if expected.rule not in known
    ]


class _Shared:
    """What all tests of a file start from."""

    def __init__(self, nodes: tuple[Node, ...], pods: tuple[PlacedPod, ...], namespaces: tuple[Namespace, ...]) -> None:
        self.nodes = nodes
        self.pods = pods
        self.namespaces = namespaces


class _TestReader:
    """Reads one test; what it says of nodes replaces those of the file, its Pods come on top."""

    def __init__(self, scope: Scope, shared: _Shared) -> None:
        self._scope = scope
        self._shared = shared
        self._nodes: tuple[Node, ...] = ()
        self._node_names: frozenset[str] = frozenset()

    def read(self, item: YamlNode) -> RuleTest | None:
        fields = read_fields(item, self._scope, TEST)
        if fields is None:
            return None
        name = read_text(fields.get("name"), self._scope.inner("name"))
        scope = self._scope = Scope(self._scope.report, f"test '{clip(name)}'") if name else self._scope
        own = tuple(_each(fields, scope, "nodes", read_node))
        self._nodes = own if "nodes" in fields else self._shared.nodes
        self._node_names = frozenset(node.metadata.name for node in self._nodes)
        if len(self._node_names) < len(self._nodes):
            scope.problem(fields.at("nodes"), "two nodes with the same name. Rename one")
        if not self._nodes:
            scope.problem(fields.node, "no nodes. Write `nodes: [node-1, node-2]` here or for the whole file")
        pods = (*self._shared.pods, *_each(fields, scope, "pods", read_placed_pod))
        self._check_pods(fields, pods)
        interval_s = self._interval_s(fields)
        series = self._series(fields, interval_s)
        moments = self._moments(fields)
        namespaces = self._shared.namespaces
        return RuleTest(scope.where(item), name or "", self._nodes, pods, series, moments, namespaces)

    def _check_pods(self, fields: Fields, pods: Sequence[PlacedPod]) -> None:
        node = fields.at("pods")
        for placed in pods:
            on = placed.pod.pod.spec.node_name
            if on and on not in self._node_names:
                write = f"Write one of: {', '.join(sorted(self._node_names))}"
                self._scope.problem(node, f"Pod {placed.pod.key} is on no node of this test, got {on!r}. {write}")
        uids = [placed.pod.uid for placed in pods]
        for uid in sorted({uid for uid in uids if uids.count(uid) > 1}):
            self._scope.problem(node, f"two Pods of one name and namespace, got {uid!r}. Rename one, or give them uids")

    def _interval_s(self, fields: Fields) -> float:
        node, scope = fields.get("interval"), self._scope.inner("interval")
        interval_s = read_duration(node, scope)
        if node is not None and interval_s is not None and interval_s < MIN_INTERVAL_S:
            scope.problem(node, f"must be above 0, {got(node)}. Write `interval: 15s`")
        return interval_s or DEFAULT_INTERVAL_S

    def _series(self, fields: Fields, interval_s: float) -> tuple[InputSeries, ...]:
        scope = self._scope.inner("input_series")
        found: dict[frozenset[tuple[str, str]], InputSeries] = {}
        advice = "Write `- {series: 'up{node=\"a\"}', values: '1x20'}`, or drop the line"
        for item in read_list(fields.get("input_series"), scope, advice) or ():
            inner = read_fields(item, scope, SERIES)
            if inner is None:
                continue
            labels = _noted(inner.get("series"), scope.inner("series"), parse_series)
            values = _noted(inner.get("values"), scope.inner("values"), parse_values)
            if labels is None or values is None:
                continue
            key = frozenset(labels.items())
            if key in found:
                scope.problem(inner.at("series"), "is given twice. Write all its values in one place")
            samples = tuple((i * interval_s, value) for i, value in enumerate(values) if value is not None)
            found[key] = InputSeries(labels, samples)
        return tuple(found.values())

    def _moments(self, fields: Fields) -> tuple[RuleTestMoment, ...]:
        scope = self._scope
        single = [name for name in ("at", "pod", "expect") if name in fields]
        if "moments" in fields:
            if single:
                what = f"moments and {single[0]} exclude each other, got both"
                scope.problem(fields.at(single[0]), f"{what}. Write it within one of the moments")
            advice = "Write `- {at: 5m, expect: […]}`"
            items = read_list(fields.get("moments"), scope.inner("moments"), advice) or ()
            known = [read_fields(item, scope.inner("moments"), MOMENT) for item in items]
            moments = [self._moment(one) for one in known if one is not None]
        else:
            for name in ("at", "expect"):
                if name not in fields:
                    scope.problem(fields.node, f"`{name}` is missing. Write `{name}: …`, or `moments: …` for several")
            moments = [self._moment(fields)]
        for before, after in pairwise(moments):
            if after.at_s < before.at_s:
                what = f"moments must rise in time, got {after.at_s:g}s after {before.at_s:g}s. Sort them"
                scope.report.problems.append(problem_at(after.where, f"{scope.label}: {what}"))
        return tuple(moments)

    def _moment(self, fields: Fields) -> RuleTestMoment:
        at, scope = fields.get("at"), self._scope.inner("at")
        at_s = read_duration(at, scope)
        if at is not None and at_s is not None and at_s > LATEST_S:
            scope.problem(at, f"must be within 7d, {got(at)}. Write an earlier time")
        pod = read_pod(fields.get("pod"), self._scope.inner("pod"))
        scope = self._scope.inner("expect")
        items = read_list(fields.get("expect"), scope, "Write `- {rule: hot, nodes: {node-1: refused}}`") or ()
        found = [one for item in items if (one := self._rule(item, scope)) is not None]
        return RuleTestMoment(scope.where(fields.at("at")), at_s or 0.0, pod or no_pod(), tuple(found))

    def _rule(self, item: YamlNode, scope: Scope) -> RuleExpectation | None:
        fields = read_fields(item, scope, RULE)
        name = None if fields is None else read_text(fields.get("rule"), scope.inner("rule"))
        if fields is None or name is None:
            return None
        if not any(key in fields for key in RULE.fields[1:]):
            scope.problem(item, f"nothing is expected of rule {name!r}. Write `nodes: {{node-1: refused}}`")
        where = scope.where(fields.get("rule") or item)
        scope = scope.inner(f"rule '{clip(name)}'")
        nodes: list[NodeExpectation] = []
        mapping = read_mapping(fields.get("nodes"), scope.inner("nodes"), "Write `{node-1: refused}`")
        for key, value in mapping.entries if mapping else ():
            if key.value not in self._node_names:
                known = ", ".join(sorted(self._node_names))
                scope.problem(
                    key, f"no such node, {got(key)}{did_you_mean(key.value, self._node_names)}. Write one of: {known}"
                )
            expected = _node(key, value, scope.inner(clip(key.value)))
            if expected is not None:
                nodes.append(expected)
        concerns = read_truth(fields.get("concerns"), scope.inner("concerns"))
        acts = read_truth(fields.get("acts"), scope.inner("acts"))
        weight = read_number(fields.get("weight"), scope.inner("weight"))
        return RuleExpectation(where, name, tuple(nodes), concerns, acts, weight)


def _node(key: YamlScalar, value: YamlNode, scope: Scope) -> NodeExpectation | None:
    where = scope.where(key)
    if isinstance(value, YamlScalar):
        if value.value in ("refused", "allowed"):
            return NodeExpectation(where, key.value, is_refused=value.value == "refused")
        if value.value == "missing":
            return NodeExpectation(where, key.value, is_missing=True)
        if value.is_text:
            scope.problem(value, f"not known, {got(value)}. {_NODE_ADVICE}")
            return None
        score = read_number(value, scope)
        if score is None:
            return None
        # With a sample: what nobody measured is neutral, and would pass for a score by chance.
        return NodeExpectation(where, key.value, is_refused=False, is_missing=False, score=score)
    fields = read_fields(value, scope, NODE)
    if fields is None:
        return None
    return NodeExpectation(
        where,
        key.value,
        read_truth(fields.get("refused"), scope.inner("refused")),
        read_truth(fields.get("missing"), scope.inner("missing")),
        read_number(fields.get("score"), scope.inner("score")),
        read_number(fields.get("value"), scope.inner("value")),
    )


def _each(fields: Fields, scope: Scope, name: str, read: Callable[[YamlNode, Scope], T | None]) -> list[T]:
    items = read_list(fields.get(name), scope.inner(name), "Write `- …`, or drop the line") or ()
    return [one for item in items if (one := read(item, scope.inner(name))) is not None]


def _texts(fields: Fields, name: str, advice: str) -> tuple[str, ...]:
    scope = fields.scope.inner(name)
    found = [read_text(item, scope) for item in read_list(fields.get(name), scope, advice) or ()]
    return tuple(text for text in found if text is not None)


def _noted(node: YamlNode | None, scope: Scope, parse: Callable[[str], T]) -> T | None:
    """Parse a text whose mistakes know their place; a bare number is one as well."""
    is_number = isinstance(node, YamlScalar) and node.value and not node.style
    text = node.value if is_number and isinstance(node, YamlScalar) else read_any_text(node, scope)
    if text is None or not isinstance(node, YamlScalar):
        return None
    try:
        return parse(text)
    except NotationError as error:
        scope.problem_within(node, error.offset, str(error))
        return None
