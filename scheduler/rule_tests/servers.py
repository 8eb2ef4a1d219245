"""What answers the queries of a test: the embedded evaluator, on the samples of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from scheduler.errors import Problem
from scheduler.evaluator.answers import encode, failure, instant_answer
from scheduler.evaluator.evaluate import LOOKBACK_S, evaluate
from scheduler.evaluator.expression import parse
from scheduler.evaluator.store import SeriesStore
from scheduler.evaluator.values import PromQLError, PromQLSyntaxError, UnsupportedPromQLError
from scheduler.model.rules import RuleSet
from scheduler.rule_tests.model import InputSeries
from scheduler.signals.asking.client import QueryClient, QueryResult
from scheduler.signals.asking.query_errors import QueryRejected
from scheduler.signals.asking.session import parse_answer
from scheduler.signals.format.promql import QueryFault, parse_query
from scheduler.strict_yaml.report import problem_at

# Nothing is forgotten: no test lasts that long.
_RETENTION_S: Final = 1e9

Clock = Callable[[], float]


class RuleTestServer(Protocol):
    """Where samples are asked for."""

    def unsupported(self, rules: RuleSet) -> list[Problem]:
        """Return a problem for each expression that can't be asked here."""

    def holding(self, series: Sequence[InputSeries], clock: Clock) -> AbstractContextManager[QueryClient]:
        """Return a client that answers from these samples as of the clock's time, in seconds since their start."""


def no_promql(rules: RuleSet) -> list[Problem]:
    """Return a problem for each expression that no Prometheus reads: what only VictoriaMetrics knows."""
    foreign = [signal for signal in rules.signals.values() if signal.expr and _is_foreign(signal.expr)]
    said = "MetricsQL that is not PromQL; no server here can evaluate it. Leave its file out of the test"
    return [problem_at(signal.where, f"signal '{signal.name}': {said}") for signal in foreign]


def _is_foreign(expr: str) -> bool:
    return isinstance(parse_query(expr), QueryFault)


class EmbeddedServer:
    """The evaluator of `vane demo`: nothing to install, a part of PromQL."""

    def unsupported(self, rules: RuleSet) -> list[Problem]:
        problems = no_promql(rules)
        for signal in rules.signals.values():
            try:
                parse(signal.expr or "0")
            except UnsupportedPromQLError as error:
                kind, _, function = error.node.partition(" ")
                what = f"the function {function}" if kind == "Call" and function else error.node
                message = f"signal '{signal.name}': the embedded evaluator does not support {what}"
                problems.append(problem_at(signal.where, f"{message}. Add --real to ask a real Prometheus"))
            except PromQLSyntaxError:
                continue  # told already
        return problems

    @contextmanager
    def holding(self, series: Sequence[InputSeries], clock: Clock) -> Iterator[QueryClient]:
        yield EmbeddedClient(filled(series), clock)


class EmbeddedClient:
    """A QueryClient whose answers pass through the same bytes as a server's."""

    def __init__(self, store: SeriesStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def query(self, expr: str, lookback_s: float | None = None) -> QueryResult:
        at_s = self._clock()
        try:
            result = evaluate(expr, self._store, at_s, LOOKBACK_S if lookback_s is None else lookback_s)
        except PromQLError as error:
            status, said = failure(error)
            raise QueryRejected(status, said["errorType"], said["error"]) from error
        answer = parse_answer(encode(instant_answer(result, round(at_s * 1000), 0)))
        return QueryResult(answer.series, answer.result_type == "scalar", answer.warnings, at_s, at_s)


def filled(series: Iterable[InputSeries]) -> SeriesStore:
    """Return a store with the samples of all series."""
    store = SeriesStore(_RETENTION_S)
    for one in series:
        for at_s, value in one.samples:
            store.append(one.labels, at_s, value)
    return store
