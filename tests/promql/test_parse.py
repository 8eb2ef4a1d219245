"""What a tree holds that a verdict does not show, where mistakes are, and the bounds."""

from __future__ import annotations

import contextlib
import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.promql.cursor import MAX_DEPTH, MAX_OPERATORS
from scheduler.promql.errors import PromQLError, TooLargeError
from scheduler.promql.nodes import Node, Range, Selector, Subquery, nodes_of
from scheduler.promql.parse import MAX_LENGTH, parse

PIECES = (
    "x",
    "sum",
    "(",
    ")",
    "{",
    "}",
    "[5m",
    "]",
    '"',
    "`",
    "'",
    "\\",
    " by ",
    "=~",
    "a*",
    "offset ",
    "@",
    "-",
    "1",
    ",",
)


def read(text: str) -> Node | PromQLError:
    try:
        return parse(text).root
    except PromQLError as error:
        return error


def refused(text: str) -> PromQLError:
    with pytest.raises(PromQLError) as caught:
        parse(text)
    return caught.value


def test_nodes_know_where_they_stand() -> None:
    text = 'sum by (a) (rate(x{b="c"}[5m] offset 1m)) / -y @ 5'
    places = {type(node).__name__: text[node.start : node.end] for node in nodes_of(parse(text).root)}
    assert places["Aggregation"] == 'sum by (a) (rate(x{b="c"}[5m] offset 1m))'
    assert places["Call"] == 'rate(x{b="c"}[5m] offset 1m)'
    assert places["Range"] == 'x{b="c"}[5m] offset 1m'
    assert places["Unary"] == "-y @ 5"
    selectors = [text[node.start : node.end] for node in nodes_of(parse(text).root) if isinstance(node, Selector)]
    assert selectors == ['x{b="c"}', "y"]


@pytest.mark.parametrize(
    ("span", "seconds"),
    [
        ("2 * 5m", 600.0),
        ("5m + step()", 300.0),
        ("max_of(5m, 1h)", 3600.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("10m - 2m - 1m", 420.0),
        ("7 % 4", 3.0),
        ("-(-5m)", 300.0),
        ("1d / 0.5", 172_800.0),
        ("10 ^ 400", math.inf),
    ],
)
def test_a_computed_range_is_that_of_an_instant_query(span: str, seconds: float) -> None:
    root = parse(f"x[{span}]").root
    assert isinstance(root, Range)
    assert root.range_s == seconds


def test_a_subquery_has_its_step_and_time() -> None:
    root = parse("x[1h:5m] @ end() offset -10m").root
    assert isinstance(root, Subquery)
    assert (root.range_s, root.step_s, root.moved.at, root.moved.offset_s) == (3600.0, 300.0, "end", -600.0)
    assert parse("x[1h:]").root.step_s is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("sum(x", "(x", "unclosed left parenthesis"),
        ("x[5m", "[5m", "unclosed left bracket"),
        ('x{a="b"', "", "unclosed brace"),
        ('x{a="b}', '"b}', "unterminated string"),
        ('x{a="\\d"}', '"\\d"', "unknown escape"),
        ("x +", "+", "unexpected end after '+'"),
        ("x) + 1", ") + 1", "unexpected right parenthesis"),
        ("sum by (a b) (x)", "b) (x)", "unexpected token 'b' in labels"),
        ('x{a=~"b{1001}"}', '"b{1001}"', "invalid repeat count `{1001}`"),
        ("rate(x[5m]) + rate(y)", "y)", "expected type range vector in the call of rate, got instant vector"),
        ("sum(x[5m])", "x[5m]", "expected type instant vector in sum, got range vector"),
        ("round(x, y)", "y)", "expected type scalar in the call of round"),
        ("x[5m:0s]", "0s]", "must be greater than 0"),
        ("foo[5m] offset 1m offset 2m", "offset 2m", "may not be set twice"),
        ("(x) offset 5m", "offset 5m", "must follow a selector"),
        ("(x)[5m]", "[5m]", "only allowed behind a selector"),
        ("1 and x", "1 and", "not allowed with a number"),
        ("x + bool y", "+ bool", "`bool` is only allowed behind a comparison"),
        ('{a=""}', "{a", "does not match the empty text"),
        ('x{__name__="y"}', "x{", "set twice"),
        ("clamp(x, 1)", "clamp", "expected 3 arguments"),
        ("label_join(x)", "label_join", "expected at least 3 arguments"),
        ("round(x, 1, 2)", "round", "expected at most 2 arguments"),
        ("sum(x,)", ",)", "trailing comma"),
        ("topk(x)", "topk", "wrong number of arguments"),
        ("nosuch(x)", "nosuch", "unknown function"),
        ("x[300y]", "300y", "no duration"),
        ("é", "é", "unexpected character"),
    ],
)
def test_a_mistake_has_its_place_and_says_what_to_write(text: str, at: str, words: str) -> None:
    error = refused(text)
    assert text[error.offset :].startswith(at)
    assert words in error.problem
    assert error.advice


@pytest.mark.parametrize(
    "text",
    [
        "(" * (MAX_DEPTH + 1) + "x" + ")" * (MAX_DEPTH + 1),
        "-" * (MAX_DEPTH + 1) + "x",
        "abs(" * (MAX_DEPTH + 1) + "x" + ")" * (MAX_DEPTH + 1),
        "x[" + "(" * (MAX_DEPTH + 1) + "5m" + ")" * (MAX_DEPTH + 1) + "]",
        "2^" * (MAX_DEPTH + 1) + "2",
        "x + " * (MAX_OPERATORS + 1) + "x",
        "x" * (MAX_LENGTH + 1),
    ],
)
def test_what_is_too_large_is_not_said_to_be_wrong(text: str) -> None:
    assert isinstance(refused(text), TooLargeError)


@pytest.mark.parametrize(
    "text",
    [
        "(" * (MAX_DEPTH - 1) + "x" + ")" * (MAX_DEPTH - 1),
        "abs(" * (MAX_DEPTH - 1) + "x" + ")" * (MAX_DEPTH - 1),
        "x + " * MAX_OPERATORS + "x",
    ],
)
def test_the_largest_is_read(text: str) -> None:
    assert nodes_of(parse(text).root)


@given(st.lists(st.one_of(st.text(max_size=3), st.sampled_from(PIECES))).map("".join))
@settings(deadline=None)
def test_any_text_is_read_or_refused_within_it(text: str) -> None:
    found = read(text)
    if isinstance(found, PromQLError):
        assert 0 <= found.offset <= len(text)
        assert found.problem
        assert found.advice
    else:
        assert all(0 <= node.start < node.end <= len(text) for node in nodes_of(found))


@pytest.mark.parametrize("text", ['"\ud800"', "`\udfff`", "x{a='\ud800\\n'}", "\ud800", "'\\\ud800'"])
def test_half_a_character_is_refused(text: str) -> None:
    assert refused(text).offset <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        '"' + "\\" * (MAX_LENGTH - 2),
        "#" * (MAX_LENGTH - 1),
        "x{" + 'a="b",' * (MAX_LENGTH // 7) + "}",
        'x{a=~"' + "(a|" * (MAX_LENGTH // 4) + '"}',
        'x{a=~"' + "(a*)*" * (MAX_LENGTH // 6) + '"}',
        'x{a=~"' + "[[:" * (MAX_LENGTH // 4) + '"}',
        "sum by (" + "a," * (MAX_LENGTH // 3),
        "1" * MAX_LENGTH,
        "1_" * (MAX_LENGTH // 2),
        "1m" * (MAX_LENGTH // 2),
        "(" * MAX_OPERATORS + "x" * (MAX_LENGTH - MAX_OPERATORS),
    ],
)
def test_a_long_text_takes_no_longer_than_its_length(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(PromQLError):
        parse(text)
    assert time.process_time() - started < 2.0
