"""PromQL as a rule file may use it: what an expression gives, how far it looks back and what it reads.

Parsing only; nothing here asks a Prometheus.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import promql_parser as ast

MAX_LENGTH: Final = 16_384
# The parser recurses; an expression beyond some 900 levels ends the process, so levels are bounded before.
MAX_OPERATORS: Final = 400

_MAX_PROBED_TOKENS: Final = 300
# What 64 bits of nanoseconds hold.
_LONGEST: Final = timedelta(seconds=9_223_372_036)
_STRING: Final = r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`'
_TOKEN: Final = re.compile(
    rf"(?P<string>{_STRING})|(?P<comment>\#[^\n]*)|(?P<word>[A-Za-z_:][\w:]*)|(?P<number>[\d.][\w.]*)"
    r"|(?P<operator>==|!=|<=|>=|=~|!~|[-+*/%^<>(])|(?P<other>\S)"
)
_WORD_OPERATORS: Final = frozenset({"and", "or", "unless", "atan2", "by", "without"})
_OF_TWO_SAMPLES: Final = frozenset(
    {"rate", "irate", "increase", "delta", "idelta", "deriv", "predict_linear", "changes", "resets"}
)
_METRIC_NAME: Final = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_LABEL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MATCH_OPERATOR: Final = {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}
_CLOSER: Final = {"(": ")", "{": "}", "[": "]"}
# What may follow a correct beginning; a token after which none of these parses is where the mistake is.
_COMPLETIONS: Final = (
    *("", "x", " x", "(x)", " (x)", " (x) (x)", " (x) (1, x)", "(x[5m])", "(1)", "(1, x)", ", x", ', "a")'),
    *("5m", " 5m", "[5m]", "5m:]", ":]", "]", ")", ") x", ") (x)", '="a"}', '"a"}', 'a="b"}', "}", "bool 1", "bool x"),
)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """An expression that parses and gives one number per series, or one number.

    `window_s` is its widest range selector or subquery, 0 without one; `selectors` are what it reads, as PromQL
    without offset, each once; `root` is the tree. One of another language, which nobody here can read, has no tree
    and none of these.
    """

    expr: str
    is_scalar: bool = False
    window_s: float = 0.0
    selectors: tuple[str, ...] = ()
    root: Any = None


@dataclass(frozen=True, slots=True)
class QueryFault:
    """Why an expression is refused; `offset` is the place in it.

    `reason` is the problem alone; `is_unread` where another dialect may well know what PromQL does not.
    """

    message: str
    offset: int = 0
    reason: str = ""
    is_unread: bool = False


def parse_query(expr: str) -> ParsedQuery | QueryFault:
    """Parse and type-check `expr`; whatever it holds, no exception."""
    root = parse_tree(expr)
    return root if isinstance(root, QueryFault) else _typed(expr, root)


def parse_tree(expr: str) -> Any:
    """Return the syntax tree of `expr`, of whatever type, or a QueryFault; whatever it holds, no exception."""
    if len(expr) > MAX_LENGTH:
        return QueryFault(
            f"longer than {MAX_LENGTH} characters, got {len(expr)}. Record a part of it with a recording rule"
        )
    tokens = [match for match in _TOKEN.finditer(expr) if match.lastgroup != "comment"]
    n_operators = sum(token.lastgroup == "operator" or token.group() in _WORD_OPERATORS for token in tokens)
    if n_operators > MAX_OPERATORS:
        what = f"more than {MAX_OPERATORS} operators and parentheses, got {n_operators}"
        return QueryFault(f"{what}. Record a part of it with a recording rule")
    if not tokens:
        return QueryFault("no PromQL, got nothing. Write an expression, or drop the signal")
    try:
        root = _parsed(expr)
    except ValueError as error:
        problem = str(error)
        shown = "unexpected token here" if problem == "invalid promql query" else problem
        message = f"PromQL: {shown}. {_syntax_advice(problem)}"
        return QueryFault(message, _locate(problem, expr, tokens), shown, is_unread=True)
    if any(_is_endless(node) for node in nodes_of(root)):
        return QueryFault("PromQL: a range or offset of more than 292 years. Write a shorter one")
    return root


def selectors(expr: str) -> list[str]:
    """Return the vector selectors that `expr` reads, as PromQL without offset; none where it does not parse."""
    query = parse_query(expr)
    return list(query.selectors) if isinstance(query, ParsedQuery) else []


def reaches(expr: str) -> dict[str, float]:
    """Return seconds by selector, as PromQL without offset: how old a sample may be that a range of `expr` still sees.

    0 where only the newest sample is read; nothing at all where `expr` does not parse. Within a subquery its range
    counts on top; with several subqueries all of them, which is more than any selector is read.
    """
    query = parse_query(expr)
    if not isinstance(query, ParsedQuery) or query.root is None:
        return {}
    nodes = nodes_of(query.root)
    outer_s = sum(_seconds(node.range) for node in nodes if isinstance(node, ast.SubqueryExpr))
    found: dict[str, float] = {}
    for node in nodes:
        if isinstance(node, ast.VectorSelector):
            found.setdefault(render_selector(node), outer_s)
        elif isinstance(node, ast.MatrixSelector):
            selector = render_selector(node.vector_selector)
            found[selector] = max(found.get(selector, 0.0), outer_s + _seconds(node.range))
    return found


def rate_ranges(expr: str) -> list[float]:
    """Return the ranges in seconds over which `expr` compares samples, and so needs two or more; none if unparsable."""
    query = parse_query(expr)
    if not isinstance(query, ParsedQuery) or query.root is None:
        return []
    calls = [node for node in nodes_of(query.root) if isinstance(node, ast.Call) and node.func.name in _OF_TWO_SAMPLES]
    ranges = [argument for call in calls for argument in call.args if isinstance(argument, ast.MatrixSelector)]
    return [_seconds(one.range) for one in ranges]


def result_type(node: Any) -> Any:
    """Return the `ast.ValueType` of a node; the library's enum has no types of its own."""
    if isinstance(node, ast.NumberLiteral):
        return ast.ValueType.Scalar
    if isinstance(node, ast.StringLiteral):
        return ast.ValueType.String
    if isinstance(node, (ast.MatrixSelector, ast.SubqueryExpr)):
        return ast.ValueType.Matrix
    if isinstance(node, ast.Call):
        return node.func.return_type
    if isinstance(node, (ast.ParenExpr, ast.UnaryExpr)):
        return result_type(node.expr)
    if isinstance(node, ast.BinaryExpr):
        sides = (result_type(node.lhs), result_type(node.rhs))
        return ast.ValueType.Scalar if sides == (ast.ValueType.Scalar,) * 2 else ast.ValueType.Vector
    return ast.ValueType.Vector


def nodes_of(root: Any) -> list[Any]:
    """Return every node of the tree, the selector inside a range selector included."""
    found: list[Any] = []

    def visit(node: Any) -> None:
        found.append(node)
        if isinstance(node, ast.MatrixSelector):
            found.append(node.vector_selector)

    ast.walk(root, visit)
    return found


def _parsed(text: str) -> Any:
    """Parse; what else than a ValueError the parser raises at numbers too large becomes one."""
    try:
        return ast.parse(text)
    except BaseException as error:
        # Its panics are no `Exception` to Python, and their class has no name to import.
        if isinstance(error, OverflowError) or type(error).__name__ == "PanicException":
            raise ValueError(str(error)) from None
        raise


def _is_endless(node: Any) -> bool:
    """Whether a duration of the node is beyond what Prometheus, or a timedelta, can hold."""
    try:
        spans = [getattr(node, name, None) for name in ("range", "offset", "step")]
    except OverflowError:
        return True
    return any(abs(span) > _LONGEST for span in spans if span is not None)


def _typed(expr: str, root: Any) -> ParsedQuery | QueryFault:
    kind = result_type(root)
    if kind == ast.ValueType.Matrix:
        write = "Put a function around it, as `rate(…)` or `max_over_time(…)`"
        return QueryFault(f"the result must be one number per series, got a range of samples. {write}")
    if kind == ast.ValueType.String:
        return QueryFault(
            "the result must be one number per series, got a string. Write an expression that gives numbers"
        )
    nodes = nodes_of(root)
    ranges = [node.range for node in nodes if isinstance(node, (ast.MatrixSelector, ast.SubqueryExpr))]
    vectors = [node for node in nodes if isinstance(node, ast.VectorSelector)]
    if any(vector.matchers.or_matchers for vector in vectors):
        # The parser knows this extension of other dialects; a Prometheus answers 400.
        return QueryFault(
            "PromQL: `or` inside braces is not known to Prometheus. Write `a{…} or a{…}`, or a regular expression",
            reason="`or` inside braces",
            is_unread=True,
        )
    return ParsedQuery(
        expr=expr,
        is_scalar=kind == ast.ValueType.Scalar,
        window_s=max((span.total_seconds() for span in ranges if span is not None), default=0.0),
        selectors=tuple(dict.fromkeys(render_selector(vector) for vector in vectors)),
        root=root,
    )


def render_selector(vector: ast.VectorSelector) -> str:
    """Write a selector so that it parses again; the parser's own text forgets to escape values."""
    matchers = [
        f"{quote_label(matcher.name)}{_MATCH_OPERATOR[str(matcher.op).rpartition('.')[2]]}{_quote(matcher.value)}"
        for matcher in vector.matchers.matchers
    ]
    name = vector.name or ""
    if name and not _METRIC_NAME.fullmatch(name):
        matchers.insert(0, f"__name__={_quote(name)}")
        name = ""
    return name + (f"{{{', '.join(matchers)}}}" if matchers else "")


def quote_label(name: str) -> str:
    """Write the name of a label as PromQL takes it: quoted where it is more than letters, digits and `_`."""
    return name if _LABEL_NAME.fullmatch(name) else _quote(name)


def _quote(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _syntax_advice(problem: str) -> str:
    if "unknown function" in problem:
        return "Write a function that Prometheus knows, or `dialect: metricsql` in a file for VictoriaMetrics"
    if "expected type matrix" in problem:
        return "Write a range after the selector, as `[5m]`"
    if "expected type vector" in problem and "matrix" in problem:
        return "Put a function around the range, as `rate(…)`, or remove the range"
    if "unclosed" in problem or "unexpected end" in problem:
        return "Close what is open"
    if "uration" in problem and ("too big" in problem or "out of range" in problem):
        return "Write a shorter range or offset"
    if "BOOL" in problem:
        return "Write `bool` after the comparison"
    return "Fix the expression; Prometheus would refuse it too"


def _locate(problem: str, expr: str, tokens: list[re.Match[str]]) -> int:
    """Return the offset of a mistake that the parser only names."""
    if problem == "invalid promql query":
        return _probe(expr, tokens)
    if "unclosed" in problem or "unexpected end" in problem:
        return _unmatched(tokens, opener=True)
    if "unexpected right" in problem:
        return _unmatched(tokens, opener=False)
    if "trailing comma" in problem and (comma := re.search(r",\s*\)", expr)):
        return comma.start()
    named = re.search(r"'([^']+)'", problem) or re.search(r"(?:syntax:|regex for) (\S+)", problem)
    if named is None:
        return 0
    for token in tokens:
        inside = token.group().strip("\"'`")
        if named.group(1) in (token.group(), inside):
            return token.start()
    return max(expr.find(named.group(1)), 0)


def _unmatched(tokens: list[re.Match[str]], *, opener: bool) -> int:
    """Return the offset of the last bracket left open, or of the first that closes nothing."""
    opened: list[re.Match[str]] = []
    for token in tokens:
        text = token.group()
        if text in _CLOSER:
            opened.append(token)
        elif text in _CLOSER.values():
            if not opener and (not opened or _CLOSER[opened[-1].group()] != text):
                return token.start()
            if opened:
                opened.pop()
    return opened[-1].start() if opened and opener else 0


def _probe(expr: str, tokens: list[re.Match[str]]) -> int:
    """Return the first token after which no completion parses; the start where even the first has none."""
    if len(tokens) > _MAX_PROBED_TOKENS:
        return 0
    opened: list[str] = []
    for token in tokens:
        text = token.group()
        if text in _CLOSER:
            opened.append(_CLOSER[text])
        elif opened and text == opened[-1]:
            opened.pop()
        beginning = expr[: token.end()]
        if not any(_is_syntax(beginning + middle) for middle in _completions(opened)):
            return token.start()
    return tokens[-1].start()


def _completions(opened: list[str]) -> Iterator[str]:
    """Yield endings; each may close the innermost bracket itself or leave that to the tail."""
    whole, rest = "".join(reversed(opened)), "".join(reversed(opened[:-1]))
    for completion in _COMPLETIONS:
        yield completion + whole
        yield completion + rest


def _is_syntax(text: str) -> bool:
    """Whether `text` is a sentence of the grammar; a wrong type or name is none of its business."""
    try:
        _parsed(text)
    except ValueError as error:
        problem = str(error)
        return not re.match(r"invalid promql|unclosed|unexpected|bad number|unterminated", problem)
    return True


def _seconds(span: timedelta | None) -> float:
    return 0.0 if span is None else span.total_seconds()
