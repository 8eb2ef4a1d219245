from __future__ import annotations

import logging

import pytest

from scheduler.cluster.cache import Cache
from scheduler.errors import CacheCorruptedError, InvalidObjectError, StaleSnapshotError
from scheduler.model.identity import NodeChanges, NodeIdentity, NodeNames
from tests.builders import NO_SIGNALS, make_node, make_pod
from tests.cluster.worlds import CountingIndex, assert_recount_agrees, assert_shows, is_assumed, node_version, versioned


def make_cache() -> Cache:
    cache = Cache([CountingIndex()])
    cache.set_node(make_node("n1"))
    cache.set_node(make_node("n2"))
    return cache


def cpu_on(cache: Cache, node: str) -> int:
    row = cache.state.nodes.row_of(node)
    return 0 if row is None else int(cache.state.nodes.requested[0, row])


def test_an_assumed_pod_counts_and_is_forgotten_without_a_trace() -> None:
    cache = make_cache()
    cache.assume(make_pod("a", cpu="500m"), "n1")
    assert cpu_on(cache, "n1") == 500
    assert is_assumed(cache, "default/a")
    forgotten = cache.forget("default/a")
    assert forgotten is not None
    assert forgotten.pod.spec.node_name == "n1"
    assert cpu_on(cache, "n1") == 0
    assert cache.forget("default/a") is None
    assert_recount_agrees(cache)


def test_the_watch_confirms_an_assumption_and_it_cannot_be_forgotten_any_more() -> None:
    cache = make_cache()
    cache.assume(make_pod("a", cpu="500m"), "n1")
    assert cache.add_pod(make_pod("a", cpu="700m", node="n1"))
    assert not is_assumed(cache, "default/a")
    assert cpu_on(cache, "n1") == 700
    assert cache.forget("default/a") is None
    assert cache.counts() == {"nodes": 2, "pods": 1, "assumed_pods": 0}
    assert_recount_agrees(cache)


def test_a_confirmation_that_brings_nothing_but_the_node_touches_no_row() -> None:
    cache = make_cache()
    cache.assume(make_pod("a", cpu="500m", version="1"), "n1")
    generation = cache.state.nodes.generation
    confirmed = make_pod("a", cpu="500m", version="2", node="n1")
    assert cache.add_pod(confirmed)
    assert cache.state.nodes.generation == generation
    known = cache.get("default/a")
    assert known is not None
    assert (known.pod, known.is_assumed) == (confirmed, False)
    assert cache.counts() == {"nodes": 2, "pods": 1, "assumed_pods": 0}
    assert_recount_agrees(cache)


def test_a_confirmation_that_has_begun_to_be_resized_counts_anew() -> None:
    cache = make_cache()
    cache.assume(make_pod("a", cpu="500m"), "n1")
    allotted = {"containerStatuses": [{"name": "c0", "allocatedResources": {"cpu": "2"}}]}
    assert cache.add_pod(make_pod("a", cpu="500m", node="n1", status=allotted))
    assert cpu_on(cache, "n1") == 2000
    assert_recount_agrees(cache)


def test_a_pod_bound_elsewhere_than_assumed_moves(caplog: pytest.LogCaptureFixture) -> None:
    cache = make_cache()
    cache.assume(make_pod("a", cpu="500m"), "n1")
    with caplog.at_level(logging.WARNING):
        cache.add_pod(make_pod("a", cpu="500m", node="n2"))
    assert (cpu_on(cache, "n1"), cpu_on(cache, "n2")) == (0, 500)
    assert "was assumed on n1 but is bound to n2" in caplog.text
    assert_recount_agrees(cache)


def test_assuming_twice_is_a_contradiction() -> None:
    cache = make_cache()
    cache.assume(make_pod("a"), "n1")
    with pytest.raises(CacheCorruptedError, match="is assumed on n2 but is on n1"):
        cache.assume(make_pod("a"), "n2")


def test_a_pod_that_cannot_be_counted_is_not_assumed() -> None:
    cache = make_cache()
    with pytest.raises(InvalidObjectError):
        cache.assume(make_pod("a", cpu="many"), "n3")
    assert cache.state.nodes.row_of("n3") is None
    assert_recount_agrees(cache)


def test_assuming_ends_the_nomination() -> None:
    cache = make_cache()
    pod = make_pod("a", nominated="n1")
    cache.nominator.add(pod, "n1")
    assert list(cache.state.nominated) == ["n1"]
    cache.assume(pod, "n2")
    assert cache.state.nominated == {}


def test_a_confirmed_pod_on_another_node_is_a_contradiction() -> None:
    cache = make_cache()
    cache.add_pod(make_pod("a", node="n1"))
    with pytest.raises(CacheCorruptedError, match="is on n1, but an update shows it on n2"):
        cache.add_pod(make_pod("a", node="n2"))


def test_a_row_that_lost_its_pod_is_a_contradiction() -> None:
    cache = make_cache()
    cache.add_pod(make_pod("a", node="n1"))
    cache.state.pods.clear()
    with pytest.raises(CacheCorruptedError, match="whose row lacks it"):
        cache.remove_pod("default/a")


def test_the_same_version_is_ignored() -> None:
    cache = make_cache()
    pod = versioned(make_pod("a", node="n1"), 7)
    assert cache.add_pod(pod)
    generation = cache.state.nodes.generation
    assert not cache.add_pod(versioned(make_pod("a", node="n1"), 7))
    node = node_version(make_node("n1"), 3)
    cache.set_node(node)
    before = cache.state.nodes.generation
    assert cache.set_node(node_version(make_node("n1", cpu="9"), 3)) is node
    assert cache.state.nodes.generation == before > generation


def test_a_resize_in_place_changes_the_usage() -> None:
    cache = make_cache()
    cache.add_pod(versioned(make_pod("a", node="n1", cpu="1"), 1))
    cache.add_pod(versioned(make_pod("a", node="n1", cpu="3"), 2))
    assert cpu_on(cache, "n1") == 3000
    cache.add_pod(versioned(make_pod("a", node="n1", cpu="2"), 3))
    assert cpu_on(cache, "n1") == 2000
    assert_recount_agrees(cache)


def test_a_resize_that_only_the_status_shows_changes_the_usage() -> None:
    cache = make_cache()
    cache.add_pod(versioned(make_pod("a", node="n1", cpu="1"), 1))
    actual = {"containerStatuses": [{"name": "c0", "resources": {"requests": {"cpu": "2"}}}]}
    cache.add_pod(versioned(make_pod("a", node="n1", cpu="1", status=actual), 2))
    assert cpu_on(cache, "n1") == 2000
    assert_recount_agrees(cache)


def test_a_row_kept_only_by_an_assumption_goes_when_the_pod_is_bound_elsewhere() -> None:
    cache = make_cache()
    cache.assume(make_pod("a"), "n1")
    cache.remove_node("n1")
    cache.add_pod(make_pod("a", node="n2"))
    assert cache.state.nodes.row_of("n1") is None
    assert_recount_agrees(cache)


def test_a_change_of_status_alone_leaves_the_row_alone_but_shows_the_new_pod() -> None:
    cache = make_cache()
    cache.add_pod(versioned(make_pod("a", node="n1"), 1))
    snapshot = cache.snapshot(NO_SIGNALS, 0.0)
    generation = cache.state.nodes.generation
    new = versioned(make_pod("a", node="n1", status={"phase": "Running"}), 2)
    assert cache.add_pod(new)
    assert cache.state.nodes.generation == generation
    assert list(cache.state.pods_on(0)) == [new]
    with pytest.raises(StaleSnapshotError):
        _ = snapshot.nodes
    assert_recount_agrees(cache)


@pytest.mark.parametrize("cpu", ["many", "-1"])
def test_a_bound_pod_counts_without_the_amounts_that_cannot_be_read(cpu: str, caplog: pytest.LogCaptureFixture) -> None:
    cache = make_cache()
    cache.add_pod(versioned(make_pod("a", node="n1", cpu=cpu, memory="1Gi"), 1))
    row = cache.state.nodes.row_of("n1")
    assert row is not None
    nodes = cache.state.nodes
    assert (cpu_on(cache, "n1"), int(nodes.requested[1, row]), int(nodes.n_pods[row])) == (0, 2**30, 1)
    assert list(cache.unreadable_pods) == ["default/a"]
    assert f"Pod default/a: counts without what cannot be read: resource 'cpu': {cpu!r}" in caplog.text.replace(
        "quantity: got ", ""
    ).replace("got ", "")
    cache.add_pod(versioned(make_pod("a", node="n1", cpu="1"), 2))
    assert (cpu_on(cache, "n1"), cache.unreadable_pods) == (1000, {})
    cache.add_pod(versioned(make_pod("a", node="n1"), 3), problem="no schema fits")
    assert (cpu_on(cache, "n1"), list(cache.unreadable_pods)) == (0, ["default/a"])
    assert_recount_agrees(cache)
    cache.remove_pod("default/a")
    assert cache.unreadable_pods == {}
    assert_recount_agrees(cache)


def test_a_pod_waits_for_its_node_and_survives_it() -> None:
    cache = Cache([CountingIndex()])
    cache.add_pod(make_pod("a", node="late", cpu="1"))
    row = cache.state.nodes.row_of("late")
    assert row is not None
    assert not cache.state.nodes.alive[row]
    cache.set_node(make_node("late"))
    assert cache.state.nodes.row_of("late") == row
    cache.remove_node("late")
    assert cpu_on(cache, "late") == 1000
    cache.remove_pod("default/a")
    assert cache.state.nodes.row_of("late") is None
    assert_recount_agrees(cache)


def test_a_node_that_comes_and_goes_a_thousand_times_leaves_nothing_behind() -> None:
    cache = make_cache()
    for turn in range(1000):
        cache.set_node(node_version(make_node("spot", labels={"turn": str(turn)}), turn))
        cache.add_pod(make_pod(f"p{turn}", node="spot", cpu="1"))
        if turn % 2:
            cache.remove_pod(f"default/p{turn}")
            cache.remove_node("spot")
        else:
            cache.remove_node("spot")
            cache.remove_pod(f"default/p{turn}")
    assert cache.state.nodes.n_rows <= 3
    assert cache.state.nodes.row_of("spot") is None
    assert_shows(cache, [make_node("n1"), make_node("n2")], [])
    assert_recount_agrees(cache)


def test_a_node_with_an_impossible_quantity_is_set_aside(caplog: pytest.LogCaptureFixture) -> None:
    cache = make_cache()
    cache.add_pod(make_pod("a", node="n1", cpu="1"))
    with caplog.at_level(logging.WARNING):
        old = cache.set_node(make_node("n1", cpu="a lot"))
        cache.set_node(make_node("n1", cpu="a lot"))
    assert old is not None
    assert cache.node("n1") is None
    assert list(cache.unreadable_nodes) == ["n1"]
    assert caplog.text.count("Node n1: cannot be read and takes no Pods") == 1
    assert cpu_on(cache, "n1") == 1000
    cache.set_node(make_node("n1"))
    assert cache.unreadable_nodes == {}
    assert cache.state.nodes.n_alive == 2
    assert_recount_agrees(cache)


def test_of_names_only_what_changed_is_told() -> None:
    cache = make_cache()
    assert cache.name_changes() == NodeChanges(1, (NodeNames("n1", ("n1",)), NodeNames("n2", ("n2",))))
    assert cache.identity() == NodeIdentity(1, ("n1", "n2"))
    assert cache.name_changes() is None
    cache.set_node(make_node("n1", cpu="8", labels={"zone": "a"}))
    assert cache.name_changes() is None
    cache.set_node(make_node("n1", labels={"kubernetes.io/hostname": "host-1"}))
    cache.set_node(make_node("n0"))
    cache.set_node(make_node("brief"))
    cache.remove_node("brief")
    cache.remove_node("n2")
    assert cache.name_changes() == NodeChanges(
        2, (NodeNames("n0", ("n0",)), NodeNames("n1", ("host-1",))), gone=("brief", "n2")
    )
    assert cache.identity() == NodeIdentity(2, ("n0", "n1"))


def test_a_snapshot_ends_with_the_next_change() -> None:
    cache = make_cache()
    snapshot = cache.snapshot(NO_SIGNALS, 5.0)
    assert (snapshot.nodes.n_alive, snapshot.now_s) == (2, 5.0)
    cache.assume(make_pod("a"), "n1")
    with pytest.raises(StaleSnapshotError):
        _ = snapshot.nodes
