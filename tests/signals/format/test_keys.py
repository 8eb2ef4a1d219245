from __future__ import annotations

import pytest

from scheduler.errors import RuleFilesError
from scheduler.model.rules import ByKind, Calls, PairKey, Rule, Signal, WorkloadKey
from scheduler.signals.format.joined_by import JoinedBy, join_fault
from scheduler.signals.format.promql import ParsedQuery, parse_query
from scheduler.signals.format.promql_labels import ANY, NONE, Labels, labels_of
from scheduler.signals.format.rule_files import parse_rule_files
from scheduler.signals.format.rule_keys import CARDS

HEAD = "apiVersion: vane.dev/v1\nkind: Rules\nsignals:\n  x: "


def read(signal: str, rule: str = "") -> tuple[Signal, Rule | None]:
    rules = f"rules:\n  - {{name: r, signal: x, score: {{best: 0, worst: 1}}, {rule}}}\n" if rule else ""
    found = parse_rule_files({"a.yaml": f"{HEAD}{{{signal}}}\n{rules}".encode()})
    return found.signals["x"], found.rules[0] if found.rules else None


def rule_of(signal: str, rule: str) -> Rule:
    _, found = read(signal, rule)
    assert found is not None
    return found


def test_cards() -> None:
    signal, _ = read("expr: DCGM_FI_DEV_GPU_UTIL, by: gpu, unit: percent")
    assert (signal.by, signal.label, signal.depends_on_pod) == (ByKind.GPU, "", True)


def test_which_resources_are_cards() -> None:
    assert rule_of("expr: util, by: gpu", "weight: 1").gpu_resources == CARDS
    assert rule_of("expr: util, by: gpu", 'gpus: [example.com/npu, "nvidia.com/mig-*"]').gpu_resources == (
        "example.com/npu",
        "nvidia.com/mig-*",
    )
    assert rule_of("expr: max by (node) (cpu)", "weight: 1").gpu_resources == ()


def test_workloads() -> None:
    query = "expr: 'max by (node, app, ns) (p99)', by: workload"
    assert read(f"{query}, workload: app")[0].workload == WorkloadKey("app")
    assert read(f"{query}, workload: {{label: app, namespace: ns}}")[0].workload == WorkloadKey("app", "ns")
    assert rule_of(f"{query}, workload: app", "workload: app.kubernetes.io/name").pod_label == "app.kubernetes.io/name"


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("{labels: {app: cart}}", Calls({"app": "cart"})),
        ("{labels: {app: cart, tier: web}, namespaces: all}", Calls({"app": "cart", "tier": "web"}, True)),
        ("{labels: {app: cart}, namespaces: same}", Calls({"app": "cart"})),
        ("{pod_label: example.com/calls-zone}", Calls(pod_label="example.com/calls-zone")),
    ],
)
def test_pairs(text: str, calls: Calls) -> None:
    pair = "expr: 'avg by (a, b) (rtt)', by: pair, pair: {label: topology.kubernetes.io/zone, from: a, to: b}"
    signal, rule = read(pair, f"calls: {text}")
    assert (signal.label, signal.pair) == ("topology.kubernetes.io/zone", PairKey("a", "b"))
    assert rule is not None
    assert rule.calls == calls


def test_what_pods_add_is_for_nodes_only() -> None:
    with pytest.raises(RuleFilesError, match="Pods add to what is measured by node"):
        read("expr: util, by: gpu, unit: ratio, inflight: {cpu: request}")


@pytest.mark.parametrize(
    ("expr", "labels"),
    [
        ("x", ANY),
        ("sum(x)", NONE),
        ("sum by (a, b) (x)", Labels(frozenset("ab"))),
        ("sum without (a) (x)", Labels(frozenset("a"), is_open=True)),
        ("sum by (node) (sum by (a) (x))", NONE),
        ("a * on (x) group_left (y) sum by (x, y) (b)", ANY),
        ("sum by (x) (a) * on (x) group_left (y, z) sum by (x, y) (b)", Labels(frozenset("xy"))),
        ("sum by (x, y) (b) * on (x) group_right (y) sum by (x) (a)", Labels(frozenset("xy"))),
        ("sum by (z, w) (a) / on (z) sum by (z, y) (b)", Labels(frozenset("z"))),
        ("sum by (z, w) (a) / ignoring (w) b", Labels(frozenset("z"))),
        ("a and on (z) sum(b)", ANY),
        ("sum by (a) (x) or sum by (b) (x)", Labels(frozenset("ab"))),
        ("sum by (a) (x) or x", ANY),
        ("2 * sum by (a) (x > bool 1)", Labels(frozenset("a"))),
        ("sum by (a) (x) - scalar(y)", Labels(frozenset("a"))),
        ('count_values("v", x)', Labels(frozenset("v"))),
        ("topk(3, sum by (a) (x))", Labels(frozenset("a"))),
        ('label_replace(sum(x), "d", "$1", "s", "(.*)")', Labels(frozenset("d"))),
        ('label_join(sum by (a) (x), "d", "-", "s")', Labels(frozenset("ad"))),
        ('absent(x{a="b", c=~"d"})', Labels(frozenset("a"))),
        ("histogram_quantile(0.9, sum by (le, z) (rate(x[5m])))", Labels(frozenset("z"))),
        ("max_over_time(sum by (q) (x)[5m:1m])", Labels(frozenset("q"))),
        ("quantile_over_time(0.9, x[5m])", ANY),
        ("vector(1)", NONE),
    ],
)
def test_which_labels_a_result_may_have(expr: str, labels: Labels) -> None:
    query = parse_query(expr)
    assert isinstance(query, ParsedQuery)
    assert query.root is not None
    assert labels_of(query.root) == labels


def test_sets_of_labels() -> None:
    some, others = Labels(frozenset("ab")), Labels(frozenset("bc"), is_open=True)
    assert some & others == others & some == Labels(frozenset("a"))
    assert some | others == others | some == Labels(frozenset("c"), is_open=True)
    assert Labels(frozenset("c"), is_open=True) & others == Labels(frozenset("bc"), is_open=True)
    assert others | Labels(frozenset("cd"), is_open=True) == Labels(frozenset("c"), is_open=True)
    assert [others.has(name) for name in "abc"] == [True, False, False]


@pytest.mark.parametrize(
    ("expr", "joined"),
    [
        ("max by (Hostname, UUID) (x)", JoinedBy(ByKind.GPU)),
        ("max by (instance, gpu) (x)", JoinedBy(ByKind.GPU)),
        ("sum without (job) (x)", JoinedBy(ByKind.NODE)),
        ("avg by (zone) (x)", JoinedBy(ByKind.LABEL, "topology.kubernetes.io/zone")),
        ('label_replace(sum by (pod) (x), "node", "$1", "pod", "(.*)")', JoinedBy(ByKind.NODE)),
        ("sum(x)", JoinedBy(ByKind.CLUSTER)),
        ("max by (node, app) (x)", JoinedBy(ByKind.WORKLOAD, workload=WorkloadKey("app"))),
        ("max by (a, b) (x)", JoinedBy(ByKind.PAIR, "zone", pair=PairKey("a", "b"))),
    ],
)
def test_what_can_be_joined_is_taken(expr: str, joined: JoinedBy) -> None:
    query = parse_query(expr)
    assert isinstance(query, ParsedQuery)
    assert join_fault(query, joined) == ""


@pytest.mark.parametrize(
    "signal",
    [
        "expr: up, node_label: target",
        "expr: 'max by (target) (x)', node_label: target",
        "expr: util, by: gpu, node_label: k8s.node.name",
        "expr: 'max by (target, app) (p99)', by: workload, workload: app, node_label: target",
    ],
)
def test_a_signal_may_name_the_label_of_its_nodes(signal: str) -> None:
    found, _ = read(signal)
    assert found.node_label in ("target", "k8s.node.name")
    assert read("expr: up")[0].node_label == ""


def test_a_label_that_the_series_of_a_signal_lose_or_that_names_no_node_is_refused() -> None:
    def refusal(signal: str) -> str:
        with pytest.raises(RuleFilesError) as caught:
            read(signal)
        assert len(caught.value.problems) == 1
        return caught.value.problems[0].message.removeprefix("signal 'x', ")

    assert refusal("expr: 'max by (instance) (x)', node_label: host") == (
        "expr: leaves no label that names the node (host): it keeps instance. Write `by (host)`, or `by: cluster`"
    )
    assert refusal("expr: 'max by (Hostname, gpu) (x)', by: gpu, node_label: k8s.node.name") == (
        "expr: leaves no label that names the node (k8s.node.name): it keeps Hostname, gpu. Write"
        ' `by ("k8s.node.name", gpu)`, or whatever your exporter calls the two'
    )
    assert refusal("expr: 'max by (host) (x)', node_label: host, lag: 'max by (instance) (y)'").startswith(
        "lag: leaves"
    )
    for by, told in (("cluster", "cluster"), ("topology.kubernetes.io/zone", "a node label")):
        said = refusal(f"expr: up, by: {by}, node_label: host")
        assert said == (
            f"node_label: names nodes, and the series of a signal `by: {told}` name none."
            " Write `by: node`, `gpu` or `workload`, or drop the line"
        )
    pair = "by: pair, pair: {label: topology.kubernetes.io/zone, from: a, to: b}"
    assert "the series of a signal `by: pair` name none" in refusal(f"expr: up, {pair}, node_label: host")
    for wrong in ("__name__", "'a b'", "9a", "''", "'a\"b'"):
        assert refusal(f"expr: up, node_label: {wrong}").startswith("node_label: "), wrong
    assert "not a label of a series, got '9a'. Write its name as the series have it, as `host`" in refusal(
        "expr: up, node_label: 9a"
    )
    assert "unknown field" in refusal("requested: cpu, node_label: host")
