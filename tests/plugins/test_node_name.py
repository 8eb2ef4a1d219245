from __future__ import annotations

from scheduler.framework.status import PreFilterResult
from scheduler.plugins.node_name import REASON, NodeName
from tests.builders import make_node, make_pod, snapshot_of
from tests.plugins.run import refusals

NODES = [make_node("a"), make_node("b")]


def test_a_pod_that_names_its_node_is_kept_to_it() -> None:
    snapshot = snapshot_of(NODES)
    pod = make_pod(node="b")

    assert NodeName().prefilter(pod, snapshot) == PreFilterResult(node_names=frozenset({"b"}))
    assert refusals(NodeName(), pod, snapshot) == {"a": {("UnschedulableAndUnresolvable", REASON)}}


def test_a_name_that_no_node_has_refuses_all() -> None:
    assert set(refusals(NodeName(), make_pod(node="gone"), snapshot_of(NODES))) == {"a", "b"}


def test_a_pod_without_a_name_may_go_anywhere() -> None:
    snapshot = snapshot_of(NODES)

    assert NodeName().prefilter(make_pod(), snapshot) == PreFilterResult()
    assert refusals(NodeName(), make_pod(), snapshot) == {}
