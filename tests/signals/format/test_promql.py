from __future__ import annotations

import pytest

from scheduler.model.rules import ByKind
from scheduler.signals.format.promql import MAX_OPERATORS, ParsedQuery, QueryFault, parse_query, selectors
from scheduler.signals.format.promql_lint import lint_features, lint_query


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
        ("sum by (a (b)", "(b)", "unexpected token '(' in labels"),
        ("sum by (a) (b", "(b", "unclosed left parenthesis"),
        ("foo)", ")", "unexpected right parenthesis"),
        ("(a) + b) * (c)", ") * (c)", "unexpected right parenthesis"),
        ("foo{a=b}", "b}", "expected string"),
        ("1 + nosuch(foo)", "nosuch", "unknown function"),
        ("a + rate(b)", "b", "Write a range after the selector"),
        ("foo[5x]", "5x", "bad number or duration"),
        ("sum(a) by (b) by (c)", "by (c)", "unexpected token"),
        ('a{b="c" d="e"}', 'd="e"', "unexpected token"),
        ("avg by (x) (a) bar", "bar", "unexpected token"),
        ("histogram_quantile(0.9 sum by (le) (rate(x[5m])))", "sum", "unexpected token"),
        ("1 > 2", "> 2", "`bool`"),
        ("foo[5m]", "foo", "got a range of samples"),
        ('"text"', '"', "got a string"),
        ('a{b="c" or d="e"}', "or d", "not known to Prometheus"),
        ("", "", "got nothing"),
        ("# only a comment", "#", "got nothing"),
        ("(" * 5_000 + "a" + ")" * 5_000, "(", f"more than {MAX_OPERATORS} operators"),
        ("-" * 10_000 + "a", "-", f"more than {MAX_OPERATORS} operators"),
        ("a" * 20_000, "a", "longer than"),
        *((f"rate(a[{span}])", span, "292 years") for span in ("1e400", "1e19", "1e15", "9999999y", "9223372037")),
        *((f"a offset {span}", span.strip("-"), "292 years") for span in ("1e400", "-1e15", "300y")),
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
        ("max by (node) (rate(node_memory_MemFree_bytes[5m]))", ByKind.NODE, "a gauge by its name"),
        ("max by (node) (irate(up[5m] offset 1m))", ByKind.NODE, "irate of up"),
        ("max by (node) (http_requests_total)", ByKind.NODE, "http_requests_total is a counter by its name"),
        ("max by (node) (max_over_time(http_requests_total[5m]))", ByKind.NODE, "`rate(…[5m])`"),
        ("sum(x_sum) / sum(rate(x_count[5m]))", ByKind.CLUSTER, "x_sum is a counter"),
        ("sum(x_total and on (node) x_total)", ByKind.CLUSTER, "x_total is a counter"),
        ("max by (node) (rate(use[10s]))", ByKind.NODE, "rate needs two samples, and 10 s seldom hold them"),
        ("max by (node) (deriv(use[15s]))", ByKind.NODE, "`[2m]`"),
        ("max by (node) (rate(use[step()]))", ByKind.NODE, "computed to nothing"),
        ("max by (node) (max_over_time(use[5m - range() - 5m:1m]))", ByKind.NODE, "computed to nothing"),
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
        ("max by (node) (rate(use[max_of(step(), 5m)]))", ByKind.NODE),
        ("max by (node) (rate(http_requests_total[30s]))", ByKind.NODE),
        ("max by (node) (avg_over_time(use_bytes[10s]))", ByKind.NODE),
        ("max by (node) (x_total - x_total offset 5m)", ByKind.NODE),
        ("count by (node) (http_requests_total)", ByKind.NODE),
        ("max by (node) (use and on (node) http_requests_total)", ByKind.NODE),
        ("max by (node) (rate(cpu:seconds:total[5m]))", ByKind.NODE),
        ("max by (node) (deriv(node_memory_MemFree_bytes[5m]))", ByKind.NODE),
        ("max by (node) (time() - timestamp(x_total))", ByKind.NODE),
    ],
)
def test_what_is_usual_passes_silently(expr: str, by: ByKind) -> None:
    assert lint_query(query(expr), by, is_reduced=False) == []


@pytest.mark.parametrize(
    ("expr", "feature", "words"),
    [
        (
            "limitk(2, mad_over_time(use[5m]))",
            "promql-experimental-functions",
            "mad_over_time, limitk are experimental",
        ),
        ("rate(use[2 * 5m])", "promql-duration-expr", "a range or an offset is computed"),
        ("rate(use[5m] smoothed)", "promql-extended-range-selectors", "`anchored` and `smoothed`"),
        ("a + on (node) fill (0) b", "promql-binop-fill-modifiers", "`fill`"),
    ],
)
def test_what_needs_a_feature_is_warned_of_until_it_is_said_to_be_on(expr: str, feature: str, words: str) -> None:
    (warning,) = lint_features(query(expr), frozenset())
    assert warning.startswith(words)
    assert f"--enable-feature={feature}" in warning
    assert lint_features(query(expr), {feature}) == []
    assert lint_features(query("max by (node) (use)"), frozenset()) == []


def test_reduce_answers_for_many_series() -> None:
    assert lint_query(query("use"), ByKind.NODE, is_reduced=True) == []
