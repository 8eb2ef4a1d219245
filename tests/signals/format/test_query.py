from __future__ import annotations

import pytest

from scheduler.errors import RuleFilesError
from scheduler.model.rules import Dialect, RuleSet
from scheduler.signals.format.rule_files import LintResult, lint_rule_files, parse_rule_files

HEAD = "apiVersion: vane.dev/v1\nkind: Rules\n"
UNREAD = "WITH (x = rate(cpu)) topk_last(3, x) by (instance) keep_metric_names"


def file_of(signal: str, dialect: str = "") -> dict[str, bytes]:
    head = f"{HEAD}dialect: {dialect}\n" if dialect else HEAD
    return {"a.yaml": f"{head}signals:\n  cpu: {{{signal}}}\n".encode()}


def rules_of(signal: str, dialect: str = "", servers: frozenset[str] | None = None) -> RuleSet:
    return parse_rule_files(file_of(signal, dialect), 1, servers)


def refusal(signal: str, dialect: str = "", servers: frozenset[str] | None = None) -> str:
    with pytest.raises(RuleFilesError) as caught:
        rules_of(signal, dialect, servers)
    return str(caught.value)


def test_a_written_window_replaces_that_of_the_expression() -> None:
    assert rules_of("expr: 'max by (node) (rate(x[5m]))'").signals["cpu"].window_s == 300.0
    assert rules_of("expr: 'max by (node) (rate(x[5m]))', window: 90s").signals["cpu"].window_s == 90.0
    assert rules_of("expr: 'max by (node) (recorded:x)', window: 1h30m").signals["cpu"].window_s == 5400.0


@pytest.mark.parametrize("lag", ["time() - max by (node) (push_time_seconds)", "30", "scalar(replica_lag_seconds)"])
def test_a_lag_is_by_the_keys_of_the_signal_or_one_for_all(lag: str) -> None:
    assert rules_of(f"expr: max by (node) (x), lag: {lag}").signals["cpu"].lag == lag


def test_a_lag_without_the_keys_of_the_signal_is_refused() -> None:
    assert "lag: leaves no label that names the node" in refusal("expr: max by (node) (x), lag: time() - max(pushed)")
    assert refusal("expr: max by (node) (x), lag: rate(x)")
    lag = "time() - max_over_time(pushed) keep_metric_names"
    assert rules_of(f"expr: max by (node) (x), lag: '{lag}'", "metricsql").signals["cpu"].lag == lag


def test_a_server_is_a_name_of_the_configuration_where_that_is_known() -> None:
    known = frozenset({"long-term", "logs"})
    assert rules_of("expr: max by (node) (x)").signals["cpu"].server == ""
    assert rules_of("expr: max by (node) (x), server: long-term", servers=known).signals["cpu"].server == "long-term"
    assert rules_of("expr: max by (node) (x), server: other").signals["cpu"].server == "other", "nobody knows better"
    assert refusal("expr: max by (node) (x), server: longterm", servers=known).splitlines()[1] == (
        "a.yaml:4:42: signal 'cpu', server: unknown server, got 'longterm' (did you mean \"long-term\"?). Write one of"
        " prometheus.servers of the configuration, or drop the line for the one without a name; known: logs, long-term"
    )
    assert refusal("expr: max by (node) (x), server: a", servers=frozenset()).endswith("known: none has a name")
    assert "must be a text, got 7" in refusal("expr: max by (node) (x), server: 7", servers=known)


def read(signal: str, dialect: str) -> LintResult:
    return lint_rule_files(file_of(signal, dialect))


@pytest.mark.parametrize(
    "expr", [UNREAD, "max by (node) (rate(x))", 'max by (node) ({a="b" or a="c"})', "sum(x) if (y"]
)
def test_what_is_no_promql_is_a_warning_in_metricsql_only(expr: str) -> None:
    assert len(read(f"expr: '{expr}'", "prometheus").problems) == 1
    found = read(f"expr: '{expr}', window: 5m", "metricsql")
    assert found.problems == ()
    assert len(found.warnings) == 1
    assert "sent to the server unchecked" in found.warnings[0].message
    signal = found.rules.signals["cpu"]
    assert (signal.expr, signal.dialect, signal.window_s) == (expr, Dialect.METRICSQL, 300.0)


def test_what_is_promql_is_treated_as_usual_in_metricsql() -> None:
    found = read("expr: 'max by (node) (rate(x[5m]))'", "metricsql")
    assert (found.problems, found.warnings) == ((), ())
    assert found.rules.signals["cpu"].window_s == 300.0
    assert "one number per series, got a range" in refusal("expr: 'x[5m]'", "metricsql")
    assert "one number for all nodes" in refusal("expr: '1 + 1'", "metricsql")
    assert "leaves no label that names the node" in refusal("expr: sum(x)", "metricsql")


def test_the_dialect_holds_for_its_own_file() -> None:
    files = {
        **file_of(f"expr: '{UNREAD}'", "metricsql"),
        "b.yaml": f"{HEAD}signals:\n  mem: {{expr: '{UNREAD}'}}\n".encode(),
    }
    problems = lint_rule_files(files).problems
    assert [(problem.file, problem.line) for problem in problems] == [("b.yaml", 4)]


MATCHERS = {"": (("cluster", "prod"),)}


def test_metricsql_that_cannot_be_parsed_is_refused_where_its_server_has_matchers() -> None:
    found = lint_rule_files(file_of(f"expr: '{UNREAD}', lag: 30", "metricsql"), matchers=MATCHERS)
    assert [str(one) for one in found.problems] == [
        "a.yaml:5:15: signal 'cpu', expr: not PromQL, so {cluster=\"prod\"} cannot be added to its selectors. Write it"
        " as PromQL, or ask a server without matchers"
    ]
    assert found.warnings == (), "it is not sent"
    lag = lint_rule_files(file_of(f"expr: max by (node) (x), lag: '{UNREAD}'", "metricsql"), matchers=MATCHERS)
    assert [str(one).split(". ")[0] for one in lag.problems] == [
        "a.yaml:5:39: signal 'cpu', lag: not PromQL, so {cluster=\"prod\"} cannot be added to its selectors"
    ]
    mistake = lint_rule_files(file_of("expr: 'sum('"), matchers=MATCHERS)
    assert len(mistake.problems) == 1, "told once"
    elsewhere = file_of(f"expr: '{UNREAD}', server: far", "metricsql")
    assert not lint_rule_files(elsewhere, matchers=MATCHERS).problems
    assert not lint_rule_files(file_of("expr: max by (node) (x)", "metricsql"), matchers=MATCHERS).problems
