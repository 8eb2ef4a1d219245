from __future__ import annotations

import pytest

from scheduler.model.rules import ByKind
from scheduler.signals.format.promql import MAX_OPERATORS, ParsedQuery, QueryFault, parse_query, selectors
from scheduler.signals.format.promql_lint import lint_query


def query(expr: str) -> ParsedQuery:
    parsed = parse_query(expr)
    assert isinstance(parsed, ParsedQuery), parsed
    return parsed


@pytest.mark.parametrize(
    ("expr", "window_s"),
    [
        ("use", 0.0),
        ("rate(use[2m])", 120.0),
        ("rate(use[2m]) / rate(all[1h30m])", 5400.0),
        ("max_over_time(rate(use[5m])[30m:1m])", 1800.0),
        ("use offset 1h", 0.0),
    ],
)
def test_the_window_is_the_widest_range(expr: str, window_s: float) -> None:
    assert query(expr).window_s == window_s


@pytest.mark.parametrize(
    ("expr", "found"),
    [
        ('rate(use{a!~"x|y"}[5m]) + use{a!~"x|y"} + 1', ['use{a!~"x|y"}']),
        ("a offset 1w / b @ 3", ["a", "b"]),
        ('a{b="q\\"u\\\\o\\nte"}', ['a{b="q\\"u\\\\o\\nte"}']),
        ("a{b=`x\"y`, c!='d'}", ['a{b="x\\"y", c!="d"}']),
        ('{"utf.8", "a.b"=~"c"}', ['{__name__="utf.8", "a.b"=~"c"}']),
        ('{__name__=~"node_.+"}', ['{__name__=~"node_.+"}']),
        ("time()", []),
        ("sum(", []),
    ],
)
def test_selectors_are_promql_again(expr: str, found: list[str]) -> None:
    assert selectors(expr) == found
    for selector in found:
        assert selectors(f"timestamp({selector})") == [selector]


@pytest.mark.parametrize(
    ("expr", "at", "words"),
    [
        ("sum by (a (b)", "(a (b)", "unclosed left parenthesis"),
        ("foo)", ")", "unexpected right parenthesis"),
        ("(a) + b) * (c)", ") * (c)", "unexpected right parenthesis"),
        ("foo{a=b}", "b}", "expected string"),
        ("1 + nosuch(foo)", "nosuch", "unknown function"),
        ("a + rate(b)", "rate", "Write a range after the selector"),
        ("foo[5x]", "5x", "bad number or duration"),
        ("sum(a) by (b) by (c)", "by (c)", "unexpected token"),
        ('a{b="c" d="e"}', 'd="e"', "unexpected token"),
        ("avg by (x) (a) bar", "bar", "unexpected token"),
        ("histogram_quantile(0.9 sum by (le) (rate(x[5m])))", "sum", "unexpected token"),
        ("1 > 2", "1", "`bool`"),
        ("foo[5m]", "foo", "got a range of samples"),
        ('"text"', '"', "got a string"),
        ('a{b="c" or d="e"}', "a{", "not known to Prometheus"),
        ("", "", "got nothing"),
        ("# only a comment", "#", "got nothing"),
        ("(" * 5_000 + "a" + ")" * 5_000, "(", f"more than {MAX_OPERATORS} operators"),
        ("-" * 10_000 + "a", "-", f"more than {MAX_OPERATORS} operators"),
        ("a" * 20_000, "a", "longer than"),
        *((f"rate(a[{span}])", "rate", "shorter") for span in ("1e400", "1e19", "1e15", "9999999y", "9223372037")),
        *((f"a offset {span}", "a", "shorter") for span in ("1e400", "-1e15", "300y")),
    ],
)
def test_a_refusal_has_its_place(expr: str, at: str, words: str) -> None:
    fault = parse_query(expr)
    assert isinstance(fault, QueryFault)
    assert expr[fault.offset :].startswith(at)
    assert words in fault.message


@pytest.mark.parametrize(
    ("expr", "by", "words"),
    [
        ("use", ByKind.NODE, "nothing is aggregated"),
        ("rate(use[5m])", ByKind.LABEL, "nothing is aggregated"),
        ("use", ByKind.WORKLOAD, "nothing is aggregated"),
        ("max by (node) (use) > 0.8", ByKind.NODE, "a comparison drops series"),
        ("sum by (service) (use)", ByKind.CLUSTER, "means one series"),
        ("max by (node) (mad_over_time(use[5m]))", ByKind.NODE, "mad_over_time is experimental"),
    ],
)
def test_what_is_seldom_meant_is_warned_of(expr: str, by: ByKind, words: str) -> None:
    (warning,) = lint_query(query(expr), by, is_reduced=False)
    assert words in warning


@pytest.mark.parametrize(
    ("expr", "by"),
    [
        ("max by (node) (use)", ByKind.NODE),
        ("1 - avg by (instance) (rate(use[5m]))", ByKind.NODE),
        ("instance:use:ratio", ByKind.NODE),
        ("topk(5, use)", ByKind.NODE),
        ("max by (node) (use) > bool 0.8", ByKind.NODE),
        ("sum(use)", ByKind.CLUSTER),
        ("use", ByKind.CLUSTER),
        ("use", ByKind.GPU),
    ],
)
def test_what_is_usual_passes_silently(expr: str, by: ByKind) -> None:
    assert lint_query(query(expr), by, is_reduced=False) == []


def test_reduce_answers_for_many_series() -> None:
    assert lint_query(query("use"), ByKind.NODE, is_reduced=True) == []
