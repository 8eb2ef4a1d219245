"""Every mistake of a test file has its place, what was found and what to write instead."""

from __future__ import annotations

import pytest

from scheduler.model.quantity import parse_quantity
from scheduler.rule_tests.reader import read_test_file

GOOD = """apiVersion: vane.dev/v1
kind: RuleTests
rule_files: [rules.yaml]
nodes: [a, {name: b, labels: {zone: z}, allocatable: {cpu: 8, nvidia.com/gpu: 2}, addresses: [10.0.0.2]}]
pods:
  - {name: old, node: a, namespace: shop, labels: {app: web}, requests: {cpu: 500m}}
tests:
  - name: first
    interval: 30s
    pods: [{name: new, node: b, placed: 1m, started: 70s, gone: 5m}, {name: waiting, node: b, started: never}]
    input_series:
      - {series: 'use{node="a"}', values: '1 _ 3'}
      - {series: 'use{node="b"}', values: 2}
    moments:
      - {at: 1m, expect: [{rule: hot, nodes: {a: 50, b: refused}}]}
      - at: 90s
        pod: {namespace: shop, labels: {app: web}, requests: {memory: 1Gi}, uid: u-1}
        expect:
          - {rule: hot, weight: 2, concerns: false, nodes: {a: {refused: true, score: 1.5, missing: false, value: 3}}}
namespaces: {shop: {team: web}, bank: {team: "1"}}
"""


def problems(old: str, new: str) -> list[str]:
    assert old in GOOD
    _, found = read_test_file("t.yaml", GOOD.replace(old, new).encode())
    return [str(problem) for problem in found]


def test_a_good_file() -> None:
    file, found = read_test_file("t.yaml", GOOD.encode())
    assert not found
    assert file is not None
    assert file.rule_files == ("rules.yaml",)
    (test,) = file.tests
    assert [node.metadata.name for node in test.nodes] == ["a", "b"]
    b = test.nodes[1]
    assert b.metadata.labels == {"kubernetes.io/hostname": "b", "zone": "z"}
    assert b.status.allocatable == {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "2"}
    assert [one.address for one in b.status.addresses or ()] == ["10.0.0.2"]
    assert test.series[0].samples == ((0.0, 1.0), (60.0, 3.0))
    assert test.series[1].samples == ((0.0, 2.0),)

    old, new, waiting = test.pods
    assert old.pod.key == "shop/old"
    assert old.pod.pod.spec.node_name == "a"
    assert old.placed_s < -3600.0
    assert (new.placed_s, new.gone_s, new.pod.started_s, new.pod.bound_s) == (60.0, 300.0, 70.0, 60.0)
    assert waiting.pod.started_s == float("inf")

    first, second = test.moments
    assert (first.at_s, second.at_s) == (60.0, 90.0)
    assert first.pod.key == "default/pod"
    assert (second.pod.key, second.pod.uid, second.pod.labels) == ("shop/pod", "u-1", {"app": "web"})
    assert second.pod.requests["memory"] == parse_quantity("1Gi")
    (expected,) = second.expected
    assert (expected.weight, expected.concerns) == (2.0, False)
    (node,) = expected.nodes
    assert (node.is_refused, node.score, node.is_missing, node.value) == (True, 1.5, False, 3.0)
    assert [(one.node, one.is_refused, one.score) for one in first.expected[0].nodes] == [
        ("a", False, 50.0),
        ("b", True, None),
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: RuleTests", "kind: Rules", "t.yaml:2:7: kind: not known, got 'Rules' (did"),
        ("    interval:", "    intervall:", "t.yaml:9:5: test 1: unknown field, got 'intervall' (did you mean"),
        ("interval: 30s", "interval: 0s", "t.yaml:9:15: test 'first', interval: must be above 0, got '0s'"),
        ("'1 _ 3'", "'1 x 3'", "t.yaml:12:46: test 'first', input_series, values: no value, got 'x'"),
        ('use{node="a"}', 'use{node=~"a"}', "a series has its labels by `=`"),
        ('use{node="b"}', 'use{node="a"}', "t.yaml:13:10: test 'first', input_series: is given twice"),
        ("a: 50", "c: 50", "rule 'hot': no such node, got 'c'"),
        ("b: refused", "b: refuse", "not known, got 'refuse'. Write `refused`, `allowed`, `missing`"),
        ("at: 90s", "at: 30s", "t.yaml:16:9: test 'first': moments must rise in time, got 30s after 60s"),
        ("at: 90s", "at: 90", "must be a duration, got 90. Write a number and a unit, as `90s`"),
        ("at: 90s", "at: 8d", "must be within 7d, got '8d'"),
        ("node: a, namespace", "node: c, namespace", "Pod shop/old is on no node of this test, got 'c'"),
        ("name: waiting", "name: new", "two Pods of one name and namespace, got 'default/new'"),
        ("gone: 5m", "gone: 30s", "gone: must be after it is placed, at 60s"),
        ("started: 70s", "started: 5s", "started: must not be before it is placed, at 60s"),
        ("cpu: 500m", "cpu: 500x", "pods, requests, cpu: not a quantity: got '500x'"),
        ("concerns: false", "concerns: no", "concerns: must be true or false, got 'no'"),
        ("weight: 2,", "weight: heavy,", "weight: must be a number, got 'heavy'"),
        ("rule_files: [rules.yaml]", "rule_files: []", "rule_files: must be a list, got an empty one"),
        ("name: b, ", "name: a, ", "two nodes with the same name"),
        ("    moments:", "    at: 1m\n    moments:", "moments and at exclude each other, got both"),
        ("labels: {zone: z}", "labels: {zone: z z}", "labels: not a label's value, got 'z z'"),
    ],
)
def test_mistakes(old: str, new: str, said: str) -> None:
    found = problems(old, new)
    assert any(said in problem for problem in found), found


def test_all_mistakes_come_at_once() -> None:
    text = GOOD.replace("interval: 30s", "interval: soon").replace("a: 50", "a: most").replace("'1 _ 3'", "'?'")
    _, found = read_test_file("t.yaml", text.encode())
    assert [(one.line, one.message.split(",")[0]) for one in found] == [
        (9, "test 'first'"),
        (12, "test 'first'"),
        (15, "test 'first'"),
    ]


def test_an_empty_file_is_told_its_kind() -> None:
    _, (problem,) = read_test_file("t.yaml", b"")
    assert "`kind: RuleTests`" in problem.message
