from __future__ import annotations

import re
from pathlib import Path

import pytest

from scheduler.signals.files import read_rule_files
from scheduler.signals.format.promql import reaches, selectors
from scheduler.signals.format.promql_matchers import Matchers, narrowed, selector_text
from scheduler.signals.format.rule_files import parse_rule_files

RULES = Path(__file__).parents[3] / "rules"
PROD: Matchers = (("cluster", "prod"),)
C = 'cluster="prod"'


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        ("x", f"x{{{C}}}"),
        ("x{}", f"x{{{C}}}"),
        ('x{a=~"b|c", d!="e", f!~"g"} offset 5m', f'x{{a=~"b|c", d!="e", f!~"g", {C}}} offset 5m'),
        ('{"foo.bar", "a b"=\'c"\\n\'}', f'{{__name__="foo.bar", "a b"="c\\"\\n", {C}}}'),
        ('{__name__=~"a|b"}', f'{{__name__=~"a|b", {C}}}'),
        ("rate(x[1h30m] offset -1ms)", f"rate(x{{{C}}}[1h30m] offset -1ms)"),
        ("x @ 1234567890.123 offset 1m", f"x{{{C}}} @ 1234567890.123 offset 1m"),
        ("max_over_time(rate(x[1m])[5m:15s] @ end())", f"max_over_time(rate(x{{{C}}}[1m])[5m:15s] @ end())"),
        ("rate(x[5m:])", f"rate(x{{{C}}}[5m:])"),
        ('sum(a) by ("b c", by) / b', f'sum(a{{{C}}}) by ("b c", by) / b{{{C}}}'),
        ("sum by () (x)", f"sum by () (x{{{C}}})"),
        ("avg without (a) (x)", f"avg without (a) (x{{{C}}})"),
        ("quantile(-Inf, x) > bool 1e300", f"quantile(-Inf, x{{{C}}}) > bool 1e300"),
        ("a == bool on () b", f"a{{{C}}} == bool on () b{{{C}}}"),
        ("a * ignoring (c) group_right (d) b", f"a{{{C}}} * ignoring (c) group_right (d) b{{{C}}}"),
        ("a * on (c) group_left () b", f"a{{{C}}} * on (c) group_left () b{{{C}}}"),
        ("a + on (c) fill_left (1) fill_right (-2.5) b", f"a{{{C}}} + on (c) fill_left (1) fill_right (-2.5) b{{{C}}}"),
        ("a and on (c) b or d unless e", f"a{{{C}}} and on (c) b{{{C}}} or d{{{C}}} unless e{{{C}}}"),
        ("-(-x) ^ 2", f"-(-x{{{C}}}) ^ 2"),
        (
            'label_replace(x, "a", "$1\\\\.b\\n", "c", "(.*)")',
            f'label_replace(x{{{C}}}, "a", "$1\\\\.b\\n", "c", "(.*)")',
        ),
        ("count_values('a', x) # of which", f"count_values('a', x{{{C}}}) # of which"),
        ('absent(x{job="a"})', f'absent(x{{job="a", {C}}})'),
        ("sum", f"sum{{{C}}}"),
        ("x @ -1", f"x{{{C}}} @ -1"),
        ("rate(x[1m + 1m])", f"rate(x{{{C}}}[1m + 1m])"),
        ("x{a=`b`} anchored", f'x{{a="b", {C}}} anchored'),
        ("time() - 5", "time() - 5"),
        ("1e3", "1e3"),
    ],
)
def test_every_selector_gets_the_matchers(expr: str, expected: str) -> None:
    assert narrowed(expr, PROD) == expected
    assert narrowed(expr, ()) == expr
    assert narrowed(expected, PROD) == expected, "the same matcher is not added twice"


def test_a_selector_keeps_its_own_matcher_on_the_same_label() -> None:
    # PromQL wants both to hold: who asks for another cluster here gets nothing, not that other cluster.
    assert narrowed('x{cluster="edge"}', PROD) == 'x{cluster="edge", cluster="prod"}'
    assert narrowed('x{cluster=~"prod|edge"}', PROD) == 'x{cluster=~"prod|edge", cluster="prod"}'
    assert narrowed('x{cluster="prod"}', (*PROD, ("region", "eu"))) == 'x{cluster="prod", region="eu"}'


def test_names_and_values_of_any_text_stay_what_they_are() -> None:
    odd: Matchers = (("k8s.cluster", 'a"b\\c\nd}'), ("région", "{x='1'}"), ("by", "é"))
    text = "k8s.cluster"
    assert selector_text(odd) == f'"{text}"="a\\"b\\\\c\\nd}}", "région"="{{x=\'1\'}}", by="é"'
    assert narrowed("sum(rate(x[5m]))", odd) == f"sum(rate(x{{{selector_text(odd)}}}[5m]))"


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        pytest.param(
            "max(x) by (node) keep_metric_names",
            'not PromQL, so {cluster="prod"} cannot be added to its selectors. Write it as PromQL',
            id="MetricsQL",
        ),
        pytest.param(
            "info(x)",
            'info() also reads series that no matcher narrows to {cluster="prod"}. Write a join, as'
            " `a * on (instance, job) group_left (x) target_info`",
            id="info",
        ),
    ],
)
def test_what_nobody_can_narrow_is_refused(expr: str, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        narrowed(expr, PROD)


def test_every_pack_can_be_asked_of_a_server_with_matchers() -> None:
    signals = parse_rule_files(read_rule_files([RULES])).asked.values()
    assert len(signals) > 20
    for signal in signals:
        text = narrowed(signal.expr, PROD)
        assert all(C in selector for selector in selectors(text)), text
        assert list(reaches(text).values()) == list(reaches(signal.expr).values())
