"""Writes a tree of ours as the program on Prometheus' parser writes its own: see its `shape.go`."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

from scheduler.promql.nodes import (
    Aggregation,
    Binary,
    Call,
    Moved,
    Node,
    Number,
    Paren,
    Range,
    Selector,
    String,
    Subquery,
    Type,
    Unary,
)


def shape(node: Node) -> str:
    match node:
        case Selector() | Range() | Subquery():
            return _series(node)
        case Number(value=value):
            return "NaN" if math.isnan(value) else str(struct.unpack("<Q", struct.pack("<d", value))[0])
        case String(value=value):
            return f"'{_hex(value)}'"
        case Paren(expr=expr):
            return f"({shape(expr)})"
        case Unary(op=op, expr=expr):
            return op + shape(expr)
        case Call(function=function, args=args):
            return f"{function.name}({', '.join(map(shape, args))})"
        case Aggregation():
            how = "without" if node.is_without else "by"
            inner = [node.expr] if node.param is None else [node.param, node.expr]
            return f"{node.op} {how}{_names(node.grouping)}({', '.join(map(shape, inner))})"
        case Binary():
            return f"<{shape(node.lhs)} {node.op}{_matching(node)} {shape(node.rhs)}>"


def _series(node: Selector | Range | Subquery) -> str:
    match node:
        case Selector():
            matchers = ",".join(f"{_hex(one.label)}{one.operator}{_hex(one.value)}" for one in node.matchers)
            return f"{node.name}{{{matchers}}}{node.mode}{_moved(node.moved)}"
        case Range(selector=selector):
            return f"{shape(selector)}[{_span(node.range_s, is_computed=node.is_computed)}]"
        case Subquery():
            range_ = _span(node.range_s, is_computed=node.is_computed)
            step = _span(node.step_s or 0.0, is_computed=node.is_step_computed)
            return f"{{{shape(node.expr)}}}[{range_}:{step}]{_moved(node.moved)}"


def _hex(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").hex()


def _names(labels: Iterable[str]) -> str:
    return f"({','.join(map(_hex, labels))})"


def _span(seconds: float, *, is_computed: bool) -> str:
    # Half away from zero, as Go rounds.
    return "computed" if is_computed else str(int(math.copysign(math.floor(abs(seconds * 1e9) + 0.5), seconds)))


def _moved(moved: Moved) -> str:
    written = ""
    if moved.offset_s or moved.is_computed:
        written += f" offset {_span(moved.offset_s, is_computed=moved.is_computed)}"
    if isinstance(moved.at, float):
        written += f" @ {int(math.copysign(math.floor(abs(moved.at * 1000) + 0.5), moved.at))}"
    elif moved.at is not None:
        written += f" @ {moved.at}"
    return written


def _matching(node: Binary) -> str:
    written = " bool" if node.is_bool else ""
    if (node.lhs.type, node.rhs.type) != (Type.VECTOR, Type.VECTOR):
        return written
    matching = node.matching
    if matching.is_on or matching.labels:
        written += f" {'on' if matching.is_on else 'ignoring'}{_names(matching.labels)}"
    if matching.many:
        written += f" {matching.many}{_names(matching.included)}"
    return f"{written} fill" if matching.has_fill else written
