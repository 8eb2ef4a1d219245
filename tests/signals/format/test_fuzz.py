"""Whatever the bytes, a load ends with a RuleSet or with RuleFilesError, and every place lies within the file."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import RuleFilesError
from scheduler.model.rules import RuleSet
from scheduler.signals.format.promql import ParsedQuery, parse_query
from scheduler.signals.format.rule_files import parse_rule_files

PACK = (Path(__file__).parents[3] / "rules" / "node-utilisation.yaml").read_bytes()
RICH = b"""apiVersion: vane.dev/v1
kind: Rules
signals:
  cpu: {expr: '1 - avg by (node) (rate(c{m="i"}[2m]))', unit: ratio, interval: 15s, max_age: 60s, range: [0, 1]}
  lag: {expr: max by (zone) (lag), unit: s, reduce: max, by: topology.kubernetes.io/zone}
  burn: {expr: sum(burn), by: cluster}
  cards: {expr: 'max by (Hostname, UUID) (util)', by: gpu, unit: percent}
  own: {expr: 'max by (node, app, ns) (p99)', by: workload, workload: {label: app, namespace: ns}}
  way: {expr: 'avg by (a, b) (rtt)', by: pair, pair: {label: zone, from: a, to: b}}
rules:
  - name: hot
    match: {namespaces: [shop, "shop-*"], labels: {tier: web}}
    signal: cpu
    filter: {max: 0.80, clear: 0.75, missing: allow, valve: 0.5}
    score: {points: [[0, 100], [0.5, 80], [1, 0]], missing: neutral}
    weight: {signal: burn, points: [[0, 1], [2, 10]], missing: 1}
    mode: enforce
  - {name: fast, signal: lag, score: {best: 50ms, worst: 500ms}, weight: 5}
  - {name: cards, signal: cards, gpus: [nvidia.com/gpu, "nvidia.com/mig-*"], filter: {max: 90%}}
  - {name: own, signal: own, workload: app.kubernetes.io/name, score: {best: 0, worst: 1}}
  - {name: way, signal: way, calls: {labels: {app: db}, namespaces: all}, score: {best: 0, worst: 1}}
"""
TOKENS = [
    *(b":", b"- ", b"\n", b"  ", b"\t", b"[", b"]", b"{", b"}", b"&a ", b"*a", b"!!int ", b"---\n", b"'", b'"', b"|\n"),
    *(
        b"null",
        b"on",
        b".nan",
        b"1e999",
        b"0",
        b"-1",
        b"99999999999999999999",
        b"50ms",
        b"\xff",
        b"\x00",
        b"#",
        b"%",
        b"?",
    ),
    *(b"signals", b"rules", b"name", b"weight", b"filter", b"score", b"points", b"count", b"by", b"expr", b"max"),
]


def check(data: bytes) -> None:
    try:
        assert isinstance(parse_rule_files({"a.yaml": data, "b.yaml": PACK}), RuleSet)
    except RuleFilesError as error:
        lines = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for problem in error.problems:
            if problem.file == "a.yaml":
                assert 1 <= problem.line <= len(lines) + 1
                assert problem.column >= 1
            assert "\n" not in problem.message


def test_the_seeds_are_valid() -> None:
    assert len(parse_rule_files({"a.yaml": RICH, "b.yaml": PACK}).rules) == 7


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    check(data)


@given(st.text(max_size=200))
def test_any_text_under_a_good_head(text: str) -> None:
    check(b"apiVersion: vane.dev/v1\nkind: Rules\n" + text.encode("utf-8", "surrogatepass"))


@given(st.sampled_from([RICH, PACK]), st.data())
@settings(max_examples=400, deadline=None)
def test_a_good_file_with_a_few_changes(seed: bytes, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(seed)))
        end = start + data.draw(st.integers(0, 12))
        seed = seed[:start] + data.draw(st.one_of(st.sampled_from(TOKENS), st.binary(max_size=4))) + seed[end:]
    check(seed)


@given(
    st.lists(
        st.sampled_from(
            ["a", "sum", "rate", "by", "(", ")", "[5m]", "[5m:]", "{", "}", "+", "-", ">", "bool", "1", ",", '"x"', "="]
        )
    )
)
@settings(deadline=None)
def test_any_promql(words: list[str]) -> None:
    expr = " ".join(words)
    parsed = parse_query(expr)
    assert isinstance(parsed, ParsedQuery) or 0 <= parsed.offset <= len(expr)
