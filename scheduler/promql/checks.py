"""What the grammar lets pass and the types do not."""

from __future__ import annotations

from typing import Final

from scheduler.promql.errors import PromQLError
from scheduler.promql.functions import AGGREGATIONS
from scheduler.promql.nodes import (
    METRIC_NAME,
    Aggregation,
    Binary,
    Call,
    Matcher,
    Node,
    Selector,
    Subquery,
    Type,
    Unary,
    innermost_first,
)
from scheduler.promql.regex import matches_empty

COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">="})
SETS: Final = frozenset({"and", "or", "unless"})
_VALUES: Final = (Type.SCALAR, Type.VECTOR)
_NAMES: Final = {Type.VECTOR: "instant vector", Type.MATRIX: "range vector"}


def check(root: Node) -> None:
    """Look at every node.

    Raises
    ------
    PromQLError
        At the first one that is of the wrong type.
    """
    narrowing: set[int] = set()
    """Selectors that only choose labels of another: they need not name anything."""
    nodes = list(innermost_first(root))
    for node in nodes:
        if isinstance(node, Call) and node.function.name == "info" and len(node.args) > 1:
            narrowing.add(id(node.args[1]))
    for node in nodes:
        match node:
            case Selector():
                _check_selector(node, is_narrowing=id(node) in narrowing)
            case Binary():
                _check_binary(node)
            case Call():
                _check_call(node)
            case Aggregation():
                _check_aggregation(node)
            case Unary() if node.expr.type not in _VALUES:
                _refuse_type(node, "a sign", node.expr.type, "a number or an instant vector")
            case Subquery() if node.expr.type is not Type.VECTOR:
                _refuse_type(node, "a subquery", node.expr.type, _NAMES[Type.VECTOR])


def _check_selector(node: Selector, *, is_narrowing: bool) -> None:
    if node.name:
        if any(matcher.label == METRIC_NAME for matcher in node.matchers):
            raise PromQLError("the name of the metric is set twice", "Write it once", node.start)
    elif not is_narrowing and all(map(_takes_empty, node.matchers)):
        problem = "a selector must have a matcher that does not match the empty text"
        raise PromQLError(problem, 'Write the name of a metric, or a matcher as `job="…"`', node.start)


def _takes_empty(matcher: Matcher) -> bool:
    if matcher.operator in ("=", "!="):
        return (matcher.value == "") == (matcher.operator == "=")
    return matches_empty(matcher.value) == (matcher.operator == "=~")


def _check_binary(node: Binary) -> None:
    kinds = (node.lhs.type, node.rhs.type)
    if node.is_bool and node.op not in COMPARISONS:
        raise PromQLError("`bool` is only allowed behind a comparison", "Remove it", node.op_start)
    if node.op in COMPARISONS and not node.is_bool and kinds == (Type.SCALAR, Type.SCALAR):
        problem = "comparisons between scalars must use BOOL"
        raise PromQLError(problem, "Write `bool` after the comparison", node.op_start)
    both = set(node.matching.labels) & set(node.matching.included) if node.matching.is_on else set()
    if both:
        problem = f"label {min(both)!r} is in `on` and in `group_{node.matching.many}`"
        raise PromQLError(problem, "Write it in one of them", node.op_start)
    for side in (node.lhs, node.rhs):
        if side.type not in _VALUES:
            _refuse_type(side, f"`{node.op}`", side.type, "numbers and instant vectors")
    if kinds == (Type.VECTOR, Type.VECTOR):
        _check_sets(node)
    elif node.op in SETS:
        raise PromQLError(f"`{node.op}` is not allowed with a number", "Write `vector(…)` around it", node.start)
    elif node.matching.labels or node.matching.has_fill:
        problem = "`on`, `ignoring` and `fill` are only allowed between instant vectors"
        raise PromQLError(problem, "Remove them, or write `vector(…)` around the number", node.start)


def _check_sets(node: Binary) -> None:
    if node.op in SETS and (node.matching.many or node.matching.has_fill):
        what = f"group_{node.matching.many}" if node.matching.many else "fill"
        raise PromQLError(f"`{what}` is not allowed with `{node.op}`", "Remove it", node.start)


def _check_call(node: Call) -> None:
    function, n_args = node.function, len(node.args)
    n_least = len(function.arguments) - (1 if function.variadic else 0)
    n_most = n_least + function.variadic
    if n_args < n_least or (function.variadic >= 0 and n_args > n_most):
        wanted = (
            f"{n_least}" if n_least == n_most else f"at least {n_least}" if n_args < n_least else f"at most {n_most}"
        )
        problem = f"expected {wanted} arguments in the call of {function.name}, got {n_args}"
        raise PromQLError(problem, "Write them, or another function", node.start)
    for i, arg in enumerate(node.args):
        wanted_type = function.arguments[min(i, len(function.arguments) - 1)]
        if arg.type is not wanted_type:
            _refuse_type(arg, f"the call of {function.name}", arg.type, _named(wanted_type))
    if function.name == "info" and n_args > 1:
        chosen = node.args[1]
        if not isinstance(chosen, Selector) or chosen.name:
            write = 'Write a selector of labels alone, as `{k8s_cluster="…"}`'
            raise PromQLError("info expects matchers of labels only", write, chosen.start)


def _check_aggregation(node: Aggregation) -> None:
    if node.expr.type is not Type.VECTOR:
        _refuse_type(node.expr, node.op, node.expr.type, _NAMES[Type.VECTOR])
    wanted = AGGREGATIONS[node.op]
    if node.param is not None and wanted is not None and node.param.type is not wanted:
        _refuse_type(node.param, f"the parameter of {node.op}", node.param.type, _named(wanted))


def _named(kind: Type) -> str:
    return _NAMES.get(kind, str(kind))


def _refuse_type(node: Node, where: str, found: Type, wanted: str) -> None:
    problem = f"expected type {wanted} in {where}, got {_named(found)}"
    raise PromQLError(problem, _advice(found, wanted), node.start)


def _advice(found: Type, wanted: str) -> str:
    if wanted == _NAMES[Type.MATRIX]:
        return "Write a range after the selector, as `[5m]`"
    if found is Type.MATRIX:
        return "Put a function around the range, as `rate(…)`, or remove the range"
    if found is Type.VECTOR:
        return "Write `scalar(…)` around it" if wanted == Type.SCALAR else "Write a string in quotes"
    if found is Type.STRING:
        return "Write an expression that gives numbers"
    return "Write a string in quotes" if wanted == Type.STRING else "Write `vector(…)` around it"
