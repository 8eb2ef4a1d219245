"""Rules over built-in signals in the loop: what they give exactly, and what brings back whom they refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from scheduler.kube.ended_pods import ENDED_PODS
from scheduler.kube.watch_stream import Replaced
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule
from scheduler.model.views import NodeView
from scheduler.rules.kinds import reading_of
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness

HEAD = "apiVersion: vane.dev/v1\nkind: Rules\n"
ONE_EACH = f"""\
{HEAD}
signals:
  mates: {{count: {{same: [app]}}}}
rules:
  - {{name: one-each, signal: mates, filter: {{max: 0}}}}
"""
NOBODY = "0/2 nodes are available: 2 node(s) rejected by rule"
BACKOFF_S = 11.0


def web(name: str, app: str = "web", node: str = "", namespace: str = "default", version: str = "1") -> PodInfo:
    return make_pod(
        name, uid=f"{namespace}/{name}", labels={"app": app}, node=node, namespace=namespace, version=version
    )


def harness_of(rules: str, *pods: PodInfo) -> Harness:
    harness = Harness()
    harness.list_nodes(make_node("a", labels={"zone": "1"}), make_node("b", labels={"zone": "2"}))
    harness.list_pods(*pods)
    harness.load_rules(rules)
    return harness


def refused(harness: Harness) -> list[str]:
    return [report.message for report in harness.binder.reports]


def test_the_record_tells_the_count_of_the_chosen_node() -> None:
    harness = harness_of(ONE_EACH, web("there", node="a"))
    harness.see(web("new"))
    harness.run()

    (record,) = [record for _, record in harness.world.records.after(0, 9)]
    (use,) = record.rules
    assert harness.placed() == {"new": "b"}
    assert (use.rule, use.signal, use.expr) == ("one-each", "mates", "count same app")
    assert (use.freshness, use.age_s, use.value) == ("fresh", 0.0, 0.0)
    (refusal,) = record.refusals
    assert (refusal.rule, refusal.n_nodes) == ("one-each", 1)


@pytest.mark.parametrize(
    ("change", "comes_back"),
    [
        pytest.param(("DELETED", web("there-a", node="a")), True, id="one that counted leaves"),
        pytest.param(("DELETED", web("other-a", app="db", node="a")), False, id="one that did not count leaves"),
        pytest.param(("DELETED", web("there-a", node="a", namespace="else")), False, id="of another namespace"),
        pytest.param(("MODIFIED", web("there-a", app="db", node="a", version="2")), True, id="its label changes"),
    ],
)
def test_what_brings_back_a_pod_that_a_count_refused(change: tuple[str, PodInfo], comes_back: bool) -> None:
    others = web("other-a", "db", "a"), web("there-a", node="a", namespace="else")
    harness = harness_of(ONE_EACH, web("there-a", node="a"), web("there-b", node="b"), *others)
    harness.see(web("new"))
    harness.run()
    assert refused(harness)[-1].startswith(NOBODY)
    harness.now_s += BACKOFF_S
    assert harness.run() == 0

    type_, pod = change
    harness.see(pod, type_)

    assert harness.run() == comes_back
    assert harness.placed() == ({"new": "a"} if comes_back else {})


def test_a_limit_from_below_waits_for_a_pod_to_come() -> None:
    harness = harness_of(ONE_EACH.replace("max: 0", "min: 1"))
    harness.see(web("new"))
    harness.run()
    assert refused(harness)[-1].startswith(NOBODY)
    harness.now_s += BACKOFF_S

    harness.see(web("other", app="db", node="a"))
    assert harness.run() == 0
    harness.see(web("first", node="b"))

    assert harness.run() == 1
    assert harness.placed() == {"new": "b"}


def test_a_new_label_of_the_pod_brings_it_back() -> None:
    harness = harness_of(ONE_EACH, web("there-a", node="a"), web("there-b", node="b"))
    harness.see(web("new"))
    harness.run()
    harness.now_s += BACKOFF_S

    harness.see(web("new", app="db", version="2"), "MODIFIED")

    assert harness.run() == 1


@pytest.mark.parametrize(("signal", "limit"), [("{pods: {}}", "max: 0"), ("{requested: cpu}", "max: 0.5")])
def test_any_pod_that_leaves_frees_of_sums_over_pods(signal: str, limit: str) -> None:
    rules = ONE_EACH.replace("{count: {same: [app]}}", signal).replace("max: 0", limit)
    placed = [make_pod(f"there-{n}", uid=f"default/there-{n}", node=n, cpu="1") for n in "ab"]
    harness = harness_of(rules, *placed)
    harness.see(web("new"))
    harness.run()
    assert refused(harness)[-1].startswith(NOBODY)
    harness.now_s += BACKOFF_S
    assert harness.run() == 0

    harness.see(placed[0], "DELETED")

    assert harness.run() == 1
    assert harness.placed() == {"new": "a"}


def test_a_node_that_grows_frees_of_shares_of_it() -> None:
    rules = ONE_EACH.replace("{count: {same: [app]}}", "{requested: cpu, unit: ratio}").replace("max: 0", "max: 20%")
    placed = [make_pod(f"there-{n}", uid=n, node=n, cpu="1") for n in "ab"]
    harness = harness_of(rules, *placed)
    harness.see(web("new"))
    harness.run()
    assert refused(harness)[-1].startswith(NOBODY)
    harness.now_s += BACKOFF_S

    harness.list_nodes(make_node("a", cpu="8", labels={"zone": "1"}), make_node("b", labels={"zone": "2"}))

    assert harness.run() == 1
    assert harness.placed() == {"new": "a"}


def bound_at(pod: PodInfo, unix_s: float) -> PodInfo:
    text = datetime.fromtimestamp(unix_s, UTC).isoformat()
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": text}]
    meta = pod.pod.metadata
    return make_pod(
        meta.name,
        uid=meta.uid,
        labels=meta.labels,
        node=pod.pod.spec.node_name,
        version="9",
        status={"conditions": conditions, "phase": "Succeeded"},
    )


def test_pods_that_have_ended_count_until_their_window_has_passed() -> None:
    harness = harness_of(ONE_EACH.replace("same: [app]", "same: [app], window: 1m"))
    # What had ended before anything was watched: one was bound 30 s ago by the clock of the loop, one long ago.
    ended = bound_at(web("ended", node="a"), 970.0), bound_at(web("old", node="b"), 900.0)
    harness.loop.apply(Replaced(ENDED_PODS, [pod.pod for pod in ended]))
    harness.see(web("first"))
    harness.see(web("second"))
    harness.run()
    assert harness.placed() == {"first": "b"}
    assert refused(harness)[-1].startswith(NOBODY)

    harness.now_s += 29.0
    harness.loop.look_after()
    harness.now_s += 2.0
    assert harness.run() == 0
    harness.loop.look_after()
    harness.now_s += 2.0

    assert harness.run() == 1
    assert harness.placed() == {"first": "b", "second": "a"}


def test_a_pod_that_has_left_counts_within_the_window_though_a_trial_would_not_see_it() -> None:
    harness = harness_of(ONE_EACH.replace("same: [app]", "same: [app], window: 1h"), web("there", node="a"))
    harness.see(web("there", node="a"), "DELETED")
    harness.see(web("first"))
    harness.see(web("second"))
    harness.run()

    assert harness.placed() == {"first": "b"}
    world, signal = harness.world, harness.world.signals.rules.signals["mates"]
    table = world.signals.freeze(NodeView(world.cache.state.nodes), harness.now_s)
    snapshot = world.cache.snapshot(table, harness.now_s)
    copy = snapshot.detach()
    harness.see(web("there", node="a"), "DELETED")
    column = reading_of(Rule("one-each", "mates"), signal, Memo()).column(web("asking"), copy)
    assert column is not None
    assert column.values.tolist() == [1.0, 1.0]


def test_the_page_of_metrics_is_shown_beside_counts_and_label_matches() -> None:
    more_rules = """
  - {name: apart, signal: mates, score: {best: 0, worst: 9}}
  - {name: own, label_match: zone}
"""
    harness = harness_of(ONE_EACH + more_rules)

    page = harness.metrics_page()

    assert 'vane_rule_refusals_total{rule="own"} 0' in page
    assert 'vane_signal_state{signal="mates"' not in page


@pytest.mark.parametrize(("tenant", "node"), [("red", "a"), ("blue", "b"), ("green", ""), (None, "a or b")])
def test_labels_of_pod_and_node_match(tenant: str | None, node: str) -> None:
    harness = Harness()
    harness.list_nodes(
        *(make_node(name, labels={"example.com/tenant": t}) for name, t in (("a", "red"), ("b", "blue"))),
        make_node("c"),
    )
    harness.list_pods()
    harness.load_rules(f"{HEAD}rules:\n  - {{name: own, label_match: {{pod: tenant, node: example.com/tenant}}}}\n")
    harness.see(make_pod("new", labels={"tenant": tenant} if tenant else {}))
    harness.run()

    if node:
        assert harness.placed()["new"] in (node.split(" or ") if tenant else "abc")
    else:
        assert refused(harness)[-1].startswith('0/3 nodes are available: 3 node(s) rejected by rule "own".')
        harness.now_s += BACKOFF_S
        harness.list_nodes(make_node("a", labels={"example.com/tenant": "green"}))
        assert harness.run() == 1
        assert harness.placed() == {"new": "a"}


@pytest.mark.parametrize(("window", "n_remembered"), [(", window: 1h", 1), ("", 0)])
def test_pods_that_have_gone_are_remembered_only_while_a_signal_counts_them(window: str, n_remembered: int) -> None:
    harness = harness_of(ONE_EACH.replace("same: [app]", f"same: [app]{window}"), web("there", node="a"))
    harness.see(web("there", node="a", version="2"), "DELETED")
    assert len(harness.world.cache.state.history) == n_remembered
