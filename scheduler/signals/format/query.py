"""What a signal asks: `expr` and `lag` in the `dialect` of the file, the `window` seen, and the `server` asked."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from scheduler.model.rules import ByKind, Dialect
from scheduler.signals.format.joined_by import JoinedBy, join_fault
from scheduler.signals.format.promql import ParsedQuery, parse_query
from scheduler.signals.format.promql_lint import lint_features, lint_query
from scheduler.signals.format.promql_matchers import Matchers, narrowed
from scheduler.strict_yaml.fields import Fields
from scheduler.strict_yaml.nodes import YamlNode, YamlScalar, is_broken
from scheduler.strict_yaml.report import Scope, did_you_mean, got
from scheduler.strict_yaml.values import read_duration, read_text, read_word

_UNREAD: Final = (
    "sent to the server unchecked. What it selects is unknown, so its age counts from its evaluation; "
    "write `window: …` for the range of its rollups"
)

Features = Mapping[str, Set[str]]
"""By the name of a server, the features of Prometheus that it has switched on."""
NO_FEATURES: Final[Features] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Asked:
    """What the signals of a file ask: in which language, and which servers there are by name; None: unknown.

    `features` are those that a server is said to have, by its name; `matchers` are what all selectors get there.
    """

    dialect: Dialect
    servers: Set[str] | None
    features: Features
    matchers: Mapping[str, Matchers]


@dataclass(frozen=True, slots=True)
class Language:
    """In what a signal may ask; `features` are those that its server has switched on.

    `is_narrowed` where its server has matchers, so that nothing is sent unread.
    """

    dialect: Dialect
    features: Set[str] = frozenset()
    is_narrowed: bool = False


def read_dialect(node: YamlNode | None, scope: Scope) -> Dialect:
    """Return the language of a file's expressions; PromQL where none can be read."""
    word = read_word(node, scope, list(Dialect))
    return Dialect(word) if word else Dialect.PROMETHEUS


def read_query(fields: Fields, joined: JoinedBy | None, language: Language, *, is_reduced: bool) -> ParsedQuery | None:
    """Return the expression; in MetricsQL also one that is no PromQL, after a warning."""
    by = joined.by if joined else None
    node, scope = fields.get("expr"), fields.scope.inner("expr")
    query = _read_promql(node, scope, language, _UNREAD)
    if query is None or node is None or query.root is None:
        return query
    if query.is_scalar and by not in (ByKind.CLUSTER, None):
        scope.problem(
            node, f"one number for all nodes, {got(node)}. Write `by: cluster`, or an expression with a series per node"
        )
        return None
    if joined is not None:
        fault = join_fault(query, joined)
        if fault:
            scope.problem(node, fault)
            return None
        for warning in lint_query(query, joined.by, is_reduced=is_reduced):
            scope.warning(node, warning)
    return query


def read_lag(fields: Fields, joined: JoinedBy | None, language: Language) -> str:
    """Return what says how many seconds behind the samples are, by the keys of the signal or for all; empty without."""
    node, scope = fields.get("lag"), fields.scope.inner("lag")
    query = _read_promql(node, scope, language, "sent to the server unchecked")
    if query is None or node is None:
        return ""
    if joined is not None and query.root is not None and not query.is_scalar:
        fault = join_fault(query, joined)
        if fault:
            scope.problem(node, fault)
    return query.expr


def _read_promql(node: YamlNode | None, scope: Scope, language: Language, unread: str) -> ParsedQuery | None:
    """Return an expression; `unread` says what becomes of MetricsQL that is no PromQL."""
    if isinstance(node, YamlScalar) and node.value and not node.style and not node.is_text:
        expr: str | None = node.value  # a bare number is PromQL too
    else:
        expr = read_text(node, scope)
    if expr is None or not isinstance(node, YamlScalar):
        return None
    query = parse_query(expr)
    if isinstance(query, ParsedQuery):
        for warning in lint_features(query, language.features):
            scope.warning(node, warning)
        return query
    if query.is_unread and language.dialect is Dialect.METRICSQL:
        if not language.is_narrowed:  # else it is refused
            scope.warning(node, f"not PromQL ({query.reason}), {unread}")
        return ParsedQuery(expr)
    scope.problem_within(node, query.offset, query.message)
    return None


def check_matchers(fields: Fields, matchers: Matchers) -> None:
    """Report each expression of a signal without a mistake so far, to which its server's matchers cannot be added."""
    for name in ("expr", "lag"):
        node = fields.get(name)
        if not isinstance(node, YamlScalar) or not matchers:
            continue
        try:
            narrowed(node.value, matchers)
        except ValueError as error:
            fields.scope.inner(name).problem(node, f"{error}, or ask a server without matchers")


def read_window(fields: Fields, query: ParsedQuery | None) -> float:
    """Return the seconds that the expression sees: as written, else its widest range, 0 where neither says it."""
    node, scope = fields.get("window"), fields.scope.inner("window")
    window_s = read_duration(node, scope)
    if node is not None and window_s == 0.0:
        scope.problem(node, f"must be above 0, {got(node)}. Write how far back the expression looks, as `2m`")
    if window_s is not None:
        return window_s
    return query.window_s if query is not None else 0.0


def read_server(node: YamlNode | None, scope: Scope, known: Set[str] | None) -> str:
    """Return the name of a Prometheus, empty for the one without a name; checked where the names are known."""
    name = read_text(node, scope)
    if name is None or node is None or is_broken(node):
        return ""
    if known is not None and name not in known:
        names = ", ".join(sorted(known)) or "none has a name"
        write = "Write one of prometheus.servers of the configuration, or drop the line for the one without a name"
        scope.problem(node, f"unknown server, {got(node)}{did_you_mean(name, known)}. {write}; known: {names}")
    return name
