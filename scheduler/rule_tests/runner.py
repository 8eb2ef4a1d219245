"""Runs tests: each moment's expectations compared with what the rules say, and the sample behind each difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from scheduler.model.rules import Rule, RuleSet, Signal, Unit
from scheduler.model.signals import SignalColumn
from scheduler.rule_tests.model import NodeExpectation, RuleExpectation, RuleTest, RuleTestMoment
from scheduler.rule_tests.servers import RuleTestServer
from scheduler.rule_tests.world import ClusterUnderTest, RuleVerdict, StandingClock
from scheduler.signals.answers import SignalAnswer

TOLERANCE: Final = 1e-3
"""Of scores and weights: the unit in which decisions add them up."""
_VALUE_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class FailedExpectation:
    """One expectation that does not hold; `sample` is what the rule read, as lines."""

    where: str
    test: str
    at_s: float
    rule: str
    node: str
    expected: str
    found: str
    sample: tuple[str, ...]

    def lines(self) -> list[str]:
        place = f"test '{self.test}', at {self.at_s:g}s, rule '{self.rule}'" + (
            f", node '{self.node}'" if self.node else ""
        )
        head = f"{self.where}: {place}: expected {self.expected}, found {self.found}"
        return [head, *(f"    {line}" for line in self.sample)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one test went."""

    test: str
    n_expectations: int
    failures: tuple[FailedExpectation, ...]


def run_test(rules: RuleSet, test: RuleTest, server: RuleTestServer) -> Outcome:
    """Run one test.

    Raises
    ------
    VaneError
        The server is not there any more.
    """
    clock = StandingClock()
    with server.holding(test.series, clock) as client:
        cluster = ClusterUnderTest(rules, test, client, clock)
        comparison = _Comparison(rules, test, cluster)
        for moment in test.moments:
            cluster.move_to(moment.at_s)
            comparison.look(moment)
    return Outcome(test.name, comparison.n_expectations, tuple(comparison.failures))


class _Comparison:
    def __init__(self, rules: RuleSet, test: RuleTest, cluster: ClusterUnderTest) -> None:
        self._rules: Mapping[str, Rule] = {rule.name: rule for rule in rules.rules}
        self._signals = rules.signals
        self._test = test
        self._cluster = cluster
        self.n_expectations = 0
        self.failures: list[FailedExpectation] = []

    def look(self, moment: RuleTestMoment) -> None:
        verdicts = self._cluster.verdicts(moment.pod)
        for expected in moment.expected:
            verdict = verdicts[expected.rule]
            for where, node, wanted, found in self._differences(expected, verdict):
                sample = self._sample(self._rules[expected.rule], verdict, node)
                self.failures.append(
                    FailedExpectation(where, self._test.name, moment.at_s, expected.rule, node, wanted, found, sample)
                )

    def _differences(self, expected: RuleExpectation, verdict: RuleVerdict) -> Iterator[tuple[str, str, str, str]]:
        """Yield place, node (empty: the rule as a whole), what was expected and what was found."""
        if expected.concerns is not None:
            self.n_expectations += 1
            if expected.concerns is not verdict.concerns:
                yield expected.where, "", _concerns(expected.concerns), _concerns(verdict.concerns)
        if expected.acts is not None:
            self.n_expectations += 1
            if expected.acts is not verdict.acts:
                yield expected.where, "", _acts(expected.acts), _acts(verdict.acts)
        if expected.weight is not None:
            self.n_expectations += 1
            if not _is_close(expected.weight, verdict.weight, TOLERANCE):
                yield expected.where, "", f"weight {expected.weight:g}", _number("weight", verdict.weight)
        rows = {name: row for row, name in enumerate(self._cluster.node_names)}
        for node in expected.nodes:
            for wanted, found in self._node_differences(node, verdict, rows[node.node]):
                yield node.where, node.node, wanted, found

    def _node_differences(self, node: NodeExpectation, verdict: RuleVerdict, row: int) -> Iterator[tuple[str, str]]:
        is_refused = bool(verdict.refused[row])
        value = value_at(verdict.column, row)
        score = None if verdict.scores is None else float(verdict.scores[row])
        if node.is_refused is not None:
            self.n_expectations += 1
            if node.is_refused is not is_refused:
                yield _refused(node.is_refused), _refused(is_refused)
        if node.is_missing is not None:
            self.n_expectations += 1
            if node.is_missing is not (value is None):
                yield _missing(node.is_missing), _number("value", value)
        if node.score is not None:
            self.n_expectations += 1
            if not _is_close(node.score, score, TOLERANCE):
                yield f"score {node.score:g}", _number("score", score)
        if node.value is not None:
            self.n_expectations += 1
            if not _is_close(node.value, value, _VALUE_TOLERANCE * max(abs(node.value), 1.0)):
                yield f"value {node.value:g}", _number("value", value)

    def _sample(self, rule: Rule, verdict: RuleVerdict, node: str) -> tuple[str, ...]:
        """Return what the rule read: the value, its age, and the question that brought it."""
        if not verdict.concerns:
            return ("the rule's match leaves this Pod out",)
        signal = self._signals.get(rule.signal)
        if signal is None:
            return ()
        lines = [f"signal '{signal.name}': {' '.join(signal.expr.split()) or 'read from the cluster itself'}"]
        if verdict.is_valve_open:
            lines.append("its valve is open: the rule only scores")
        row = self._cluster.node_names.index(node) if node else None
        return (
            *lines,
            *sample_lines(signal, verdict.column, row),
            *_answer_lines(self._cluster.answers.get(signal.name)),
        )


def value_at(column: SignalColumn | None, row: int) -> float | None:
    """Return the usable sample of a row, None where there is none."""
    if column is None or not column.has_sample[row]:
        return None
    return float(column.values[row])


def sample_lines(signal: Signal, column: SignalColumn | None, row: int | None) -> list[str]:
    """Return the value and the age of a row's sample in words; without a row only the age."""
    if column is None or math.isinf(column.age_s):
        return ["no answer yet"]
    if row is None:
        return [f"{column.freshness}, {column.age_s:g}s old"]
    age = f"{column.freshness_at(row)}, {column.age_at(row):g}s old"
    value = float(column.values[row])
    if math.isnan(value):
        return [f"no sample for this node; {age}"]
    unit = "" if signal.unit is Unit.NONE else f" {signal.unit}"
    added = 0.0 if column.pending is None else float(column.pending[row])
    pending = f" and {added:.10g} pending" if added else ""
    return [f"value {value:.10g}{unit}{pending}, {age}"]


def _answer_lines(answer: SignalAnswer | None) -> list[str]:
    """Return what the last query brought besides values that can be used."""
    if answer is None:
        return []
    if answer.error:
        return [f"the last query failed: {answer.error}"]
    drops = answer.drops
    counts = {name: getattr(drops, name) for name in drops.__struct_fields__}
    dropped = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    lines = [
        f"the last answer: {answer.n_series} series, {answer.n_mapped} used"
        + (f"; dropped: {dropped}" if dropped else "")
    ]
    return lines + [f"warning: {warning}" for warning in answer.warnings]


def _is_close(wanted: float, found: float | None, tolerance: float) -> bool:
    return found is not None and abs(wanted - found) <= tolerance


def _number(name: str, found: float | None) -> str:
    return f"no {name}" if found is None else f"{name} {found:.10g}"


def _refused(is_refused: bool) -> str:
    return "refused" if is_refused else "allowed"


def _missing(is_missing: bool) -> str:
    return "missing" if is_missing else "a sample"


def _concerns(concerns: bool) -> str:
    return "concerns the Pod" if concerns else "does not concern the Pod"


def _acts(acts: bool) -> str:
    return "acts on the Pod" if acts else "does not act on the Pod"
