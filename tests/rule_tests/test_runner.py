"""`vane rules test` as a user runs it: what passes, what fails and how that is said."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from scheduler.errors import ConfigError
from scheduler.rule_tests.command import run_test_files
from scheduler.rule_tests.real_server import RealServer, find_prometheus
from scheduler.rule_tests.servers import EmbeddedServer, RuleTestServer

RULES = """apiVersion: vane.dev/v1
kind: Rules
signals:
  use: {expr: 'max by (node) (use)', unit: ratio, interval: 15s, max_age: 60s, range: [0, 1]}
  burn: {expr: max(burn), by: cluster}
rules:
  - name: hot
    match: {namespaces: [shop]}
    signal: use
    filter: {max: 80%, clear: 70%}
    score: {best: 0, worst: 1}
    weight: {signal: burn, points: [[0, 1], [2, 10]]}
  - {name: measured, signal: use, filter: {max: 1, missing: reject}}
"""
TEST = """apiVersion: vane.dev/v1
kind: RuleTests
rule_files: [rules.yaml]
nodes: [a, b, c]
tests:
  - name: first
    interval: 15s
    input_series:
      - {series: 'use{node="a"}', values: '0.5x4 0.9x3 0.75x7 0.6x3 stale'}
      - {series: 'use{node="b"}', values: '0.25x30'}
      - {series: 'use{node="elsewhere"}', values: '0.25x30'}
      - {series: burn, values: 1x30}
    moments:
"""


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "rules.yaml").write_text(RULES)

    def run(self, moments: str, server: RuleTestServer | None = None, text: str = TEST) -> tuple[int, list[str]]:
        file, out = self.path / "test.yaml", io.StringIO()
        file.write_text(text + moments)
        code = run_test_files([file], server or EmbeddedServer(), out)
        return code, out.getvalue().replace(f"{self.path}/", "").splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


SHOP = "pod: {namespace: shop}"
HYSTERESIS = f"""\
      - {{at: 1m, {SHOP}, expect: [{{rule: hot, weight: 5.5, nodes: {{a: 50, b: 75}}}}]}}
      - {{at: 1m, {SHOP}, expect: [{{rule: hot, nodes: {{c: {{missing: true, score: 62.5}}}}}}]}}
      - {{at: 90s, {SHOP}, expect: [{{rule: hot, nodes: {{a: {{refused: true, score: 10}}}}}}]}}
      - {{at: 3m, {SHOP}, expect: [{{rule: hot, nodes: {{a: {{refused: true, score: 25}}}}}}]}}
      - {{at: 3m, expect: [{{rule: hot, concerns: false, nodes: {{a: allowed}}}}]}}
      - {{at: 260s, {SHOP}, expect: [{{rule: hot, nodes: {{a: {{value: 0.6, score: 40}}}}}}]}}
      # Half of the nodes are gone: doubtful, so the last good answer holds for its time.
      - {{at: 330s, {SHOP}, expect: [{{rule: hot, nodes: {{a: {{value: 0.6, refused: false}}}}}}]}}
      - at: 390s
        {SHOP}
        expect:
          - {{rule: hot, nodes: {{a: {{missing: true, refused: false, score: 75}}}}}}
          - {{rule: measured, nodes: {{a: {{missing: true, refused: true}}, b: allowed}}}}
"""


def test_hysteresis_the_end_of_a_series_and_who_is_concerned(folder: Folder) -> None:
    code, lines = folder.run(HYSTERESIS)
    assert (code, lines) == (0, ["test.yaml: SUCCESS", "1 test, 25 expectations, 0 failed"]), lines


def test_the_same_on_a_real_prometheus(folder: Folder, programs: Path) -> None:
    code, lines = folder.run(HYSTERESIS, RealServer(find_prometheus(programs, {})))
    assert (code, lines) == (0, ["test.yaml: SUCCESS", "1 test, 25 expectations, 0 failed"]), lines


FADING = TEST.replace("'0.25x30'", "'0.25x4'").replace("0.5x4 0.9x3 0.75x7 0.6x3 stale", "0.75x4")
"""All samples end at 60 s; asked every 15 s, they are fresh up to 30 s after that, and absent after 60 s."""


@pytest.mark.parametrize("is_real", [False, True], ids=["embedded", "real"])
def test_fading_by_the_age_of_the_samples(folder: Folder, programs: Path, is_real: bool) -> None:
    server = RealServer(find_prometheus(programs, {})) if is_real else EmbeddedServer()
    code, lines = folder.run(
        f"""\
      - {{at: 1m, {SHOP}, expect: [{{rule: hot, nodes: {{a: 25, b: 75}}}}]}}
      - {{at: 90s, {SHOP}, expect: [{{rule: hot, nodes: {{a: 25, b: 75}}}}]}}
      - {{at: 105s, {SHOP}, expect: [{{rule: hot, nodes: {{a: 37.5, b: 62.5}}}}]}}
      - {{at: 119s, {SHOP}, expect: [{{rule: hot, nodes: {{a: 49.1667, b: 50.8333}}}}]}}
      - {{at: 3m, {SHOP}, expect: [{{rule: hot, nodes: {{a: {{missing: true, score: 50}}}}}}]}}
""",
        server,
        FADING,
    )
    assert code == 0, lines


def test_a_failure_says_what_was_expected_what_was_found_and_why(folder: Folder) -> None:
    code, lines = folder.run(f"      - {{at: 90s, {SHOP}, expect: [{{rule: hot, nodes: {{a: 90, c: refused}}}}]}}\n")
    place = "test 'first', at 90s, rule 'hot'"
    assert code == 1
    assert lines == [
        "test.yaml: FAILED",
        "",
        f"  test.yaml:14:72: {place}, node 'a': expected allowed, found refused",
        "      signal 'use': max by (node) (use)",
        "      value 0.9 ratio, fresh, 0s old",
        "      the last answer: 3 series, 2 used; dropped: unmapped 1",
        "",
        f"  test.yaml:14:72: {place}, node 'a': expected score 90, found score 10",
        "      signal 'use': max by (node) (use)",
        "      value 0.9 ratio, fresh, 0s old",
        "      the last answer: 3 series, 2 used; dropped: unmapped 1",
        "",
        f"  test.yaml:14:79: {place}, node 'c': expected refused, found allowed",
        "      signal 'use': max by (node) (use)",
        "      no sample for this node; fresh, 0s old",
        "      the last answer: 3 series, 2 used; dropped: unmapped 1",
        "1 test, 4 expectations, 3 failed",
    ]


def test_a_wrong_weight_and_a_pod_that_is_not_concerned(folder: Folder) -> None:
    code, lines = folder.run("      - {at: 1m, expect: [{rule: hot, weight: 3, concerns: true, nodes: {a: 50}}]}\n")
    assert code == 1
    said = [line.partition("rule 'hot'")[2] for line in lines if "expected" in line and ":" in line][:3]
    assert said == [
        ": expected concerns the Pod, found does not concern the Pod",
        ": expected weight 3, found no weight",
        ", node 'a': expected score 50, found no score",
    ]
    assert "      the rule's match leaves this Pod out" in lines


def test_a_query_that_fails_says_so(folder: Folder) -> None:
    rules = RULES.replace("max by (node) (use)", "max by (node) (use) * on () group_left () use")
    (folder.path / "rules.yaml").write_text(rules)
    code, lines = folder.run(f"      - {{at: 1m, {SHOP}, expect: [{{rule: hot, nodes: {{a: 50}}}}]}}\n")
    assert code == 1
    assert "      no answer yet" in lines
    assert any("the last query failed: HTTP 422, execution: " in line for line in lines), lines


def test_a_rule_on_trial_is_judged_by_what_it_would_do(folder: Folder) -> None:
    rules = RULES.replace("    match: {namespaces: [shop]}", "    canary: {namespaces: [shop]}")
    (folder.path / "rules.yaml").write_text(rules)
    expect = "expect: [{rule: hot, acts: %s, weight: 5.5, nodes: {a: {refused: true, score: 10}}}]"
    code, lines = folder.run(
        f"""\
      - {{at: 90s, {SHOP}, {expect % "true"}}}
      - {{at: 90s, {expect % "false"}}}
      - {{at: 90s, {expect % "true"}}}
"""
    )
    assert code == 1
    assert next(line for line in lines if "expected" in line).endswith(
        "rule 'hot': expected acts on the Pod, found does not act on the Pod"
    )
    assert lines[-1] == "1 test, 12 expectations, 1 failed"


def test_promql_that_only_a_real_prometheus_knows(folder: Folder, programs: Path) -> None:
    rules = RULES.replace("max by (node) (use)", "max by (node) (0 * deriv(use[1m]) + 0.5)")
    (folder.path / "rules.yaml").write_text(rules)
    moments = f"      - {{at: 1m, {SHOP}, expect: [{{rule: hot, nodes: {{a: 50}}}}]}}\n"
    code, lines = folder.run(moments)
    assert code == 1
    assert lines == [
        "test.yaml: FAILED",
        "  rules.yaml:4:3: signal 'use': the embedded evaluator does not support the function deriv."
        " Add --real to ask a real Prometheus",
    ]
    code, lines = folder.run(moments, RealServer(find_prometheus(programs, {})))
    assert code == 0, lines


def test_an_unknown_rule_and_rules_with_mistakes(folder: Folder) -> None:
    moments = "      - {at: 1m, expect: [{rule: hott, nodes: {a: 50}}]}\n"
    code, lines = folder.run(moments)
    assert code == 1
    assert "no such rule, got 'hott' (did you mean \"hot\"?). Write one of: hot, measured" in lines[1]
    (folder.path / "rules.yaml").write_text(RULES.replace("score:", "scoer:"))
    code, lines = folder.run(moments)
    assert code == 1
    assert any("rules.yaml:11:5: rule 'hot': unknown field, got 'scoer'" in line for line in lines), lines


def test_files_that_are_not_there(folder: Folder, tmp_path: Path) -> None:
    code, lines = folder.run(
        "      - {at: 1m, expect: [{rule: hot, nodes: {a: 50}}]}\n", text=TEST.replace("rules.yaml", "gone.yaml")
    )
    assert code == 1
    assert "gone.yaml: no such file or folder" in lines[1]
    out = io.StringIO()
    assert run_test_files([tmp_path / "none.yaml"], EmbeddedServer(), out) == 1
    assert "none.yaml: cannot be read, got 'No such file or directory'" in out.getvalue()


@pytest.mark.parametrize("is_real", [False, True], ids=["embedded", "real"])
def test_metricsql_is_refused_by_name(folder: Folder, programs: Path, is_real: bool) -> None:
    rules = RULES.replace("kind: Rules", "kind: Rules\ndialect: metricsql").replace(
        "max by (node) (use)", "max(use) by (node) keep_metric_names"
    )
    (folder.path / "rules.yaml").write_text(rules)
    server = RealServer(find_prometheus(programs, {})) if is_real else EmbeddedServer()
    code, lines = folder.run("      - {at: 1m, expect: [{rule: hot, nodes: {a: 50}}]}\n", server)
    assert code == 1
    assert lines[1].startswith("  rules.yaml:5:3: signal 'use': MetricsQL that is not PromQL"), lines


def test_an_open_valve_and_what_is_in_flight_are_told(folder: Folder) -> None:
    rules = RULES.replace("clear: 70%}", "valve: 10%}").replace(
        "range: [0, 1]}", "range: [0, 1], inflight: {cpu: request}}"
    )
    (folder.path / "rules.yaml").write_text(rules)
    text = TEST.replace(
        "tests:", "pods: [{name: new, node: a, requests: {cpu: 1}, placed: 80s, started: never}]\ntests:"
    )
    expect = "expect: [{rule: hot, nodes: {a: {refused: true}, b: 75}}]"
    code, lines = folder.run(f"      - {{at: 90s, {SHOP}, {expect}}}\n", text=text)
    assert code == 1
    assert lines[3:6] == [
        "      signal 'use': max by (node) (use)",
        "      its valve is open: the rule only scores",
        "      value 0.9 ratio and 0.25 pending, fresh, 0s old",
    ]
    assert lines[-1] == "1 test, 4 expectations, 1 failed"


def test_a_verdict_is_held(folder: Folder) -> None:
    (folder.path / "rules.yaml").write_text(RULES.replace("clear: 70%}", "hold: 5m}"))
    code, lines = folder.run(
        f"""\
      - {{at: 1m, {SHOP}, expect: [{{rule: hot, nodes: {{a: 50}}}}]}}
      - {{at: 90s, {SHOP}, expect: [{{rule: hot, nodes: {{a: refused}}}}]}}
      - {{at: 270s, {SHOP}, expect: [{{rule: hot, nodes: {{a: {{refused: true, value: 0.6}}}}}}]}}
"""
    )
    assert code == 0, lines


def test_no_prometheus_to_be_found(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--real: no program `prometheus` in PATH"):
        find_prometheus(None, {"PATH": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"--prometheus-dir .*: no program `prometheus` in it"):
        find_prometheus(tmp_path, {})


def test_a_prometheus_that_does_not_get_ready_shows_its_log(folder: Folder, tmp_path: Path) -> None:
    program = tmp_path / "prometheus"
    program.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(ConfigError, match="did not become ready, it has ended; the end of its log:\nout of order"):
        folder.run("      - {at: 1m, expect: [{rule: hot, nodes: {a: 50}}]}\n", RealServer(program))


def test_programs_and_folders_are_gone_after_a_run(folder: Folder, programs: Path, tmp_path: Path) -> None:
    before = _children()
    code, _ = folder.run(HYSTERESIS, RealServer(find_prometheus(programs, {}), tmp_path))
    assert code == 0
    assert _children() == before
    assert not list(tmp_path.glob("vane-rules-test-*"))


def _children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_rules_for_namespaces_with_certain_labels(tmp_path: Path) -> None:
    match = "{namespaceSelector: {matchExpressions: [{key: team, operator: NotIn, values: [bank]}]}}"
    (tmp_path / "rules.yaml").write_text(RULES.replace("{namespaces: [shop]}", match))
    (tmp_path / "tests.yaml").write_text(
        """apiVersion: vane.dev/v1
kind: RuleTests
rule_files: [rules.yaml]
nodes: [a]
namespaces: {money: {team: bank}, shop: {team: web}}
tests:
  - name: by namespace
    input_series: [{series: 'use{node="a"}', values: 0.5x9}]
    moments:
      - {at: 1m, pod: {namespace: money}, expect: [{rule: hot, concerns: false}, {rule: measured, concerns: true}]}
      - {at: 1m, pod: {namespace: shop}, expect: [{rule: hot, concerns: true}]}
      - {at: 1m, pod: {namespace: unknown}, expect: [{rule: hot, concerns: true}]}
"""
    )
    out = io.StringIO()
    assert run_test_files([tmp_path / "tests.yaml"], EmbeddedServer(), out) == 0, out.getvalue()
