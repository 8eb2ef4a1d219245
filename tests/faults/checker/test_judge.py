"""Violations that are sown into a run: the checker sees each, and nothing where there is nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.checker.evidence import UNPLACEABLE
from tests.faults.checker.judge import judge
from tests.faults.recorded import Run

ASSIGNED = "Successfully assigned default/{} to {}"


def good() -> Run:
    """Two replicas, of which one leads after the other; all that they do is right."""
    run = Run()
    run.lease("a")
    run.node("n1", cpu="1")
    run.node("n2", cpu="1")
    for i, node in enumerate(("n1", "n2")):
        run.pod(f"p{i}", cpu="700m")
        run.bind(f"p{i}", node)
        run.event("Scheduled", f"p{i}", ASSIGNED.format(f"p{i}", node))
    run.pod("late", cpu="700m")
    refused = "0/2 nodes are available: 2 Insufficient cpu."
    run.event("FailedScheduling", "late", refused, name="series")
    run.node("n9", cpu="100m")
    run.wait(20.0)
    run.event("FailedScheduling", "late", refused, name="series")
    run.remove_node("n9")
    run.lease("b")
    run.remove_pod("p0")
    run.bind("late", "n1", replica="b")
    run.event("Scheduled", "late", ASSIGNED.format("late", "n1"))
    for i in range(50):
        run.take("deciding", 200 + i % 3, 40)
    return run


def bind_twice(run: Run) -> None:
    run.bind("p1", "n2")


def move(run: Run) -> None:
    run.change_spec("p1", nodeName="n1")


def bind_as_another(run: Run) -> None:
    run.pod("new", cpu="100m")
    run.bind("new", "n1", user="kube-scheduler")


def write_the_node(run: Run) -> None:
    run.pod("new", cpu="100m")
    run.change_spec("new", nodeName="n1")


def bind_after_the_loss(run: Run) -> None:
    run.pod("new", cpu="100m")
    run.bind("new", "n1", replica="a")


def ask_after_the_end(run: Run) -> None:
    run.pod("new", cpu="100m")
    run.bind("new", "n1", replica="b", code=201)
    run.wait(16.0)
    run.pod("newer", cpu="100m")
    run.bind("newer", "n1", replica="b")


def bind_to_nothing(run: Run) -> None:
    run.pod("new", cpu="100m")
    run.bind("new", "n3", replica="b")


def bind_to_a_node_long_gone(run: Run) -> None:
    run.pod("new", cpu="100m")
    run.remove_node("n2")
    run.wait(0.2)
    run.bind("new", "n2", replica="b")


def bind_to_a_cordoned_node(run: Run) -> None:
    run.node("n1", cpu="1", unschedulable=True)
    run.pod("new", cpu="100m")
    run.wait(0.2)
    run.bind("new", "n1", replica="b")


def overfill(run: Run) -> None:
    run.pod("new", cpu="400m")
    run.bind("new", "n1", replica="b")


def overfill_what_others_filled(run: Run) -> None:
    run.pod("foreign", ours=False, cpu="300m", node_name="n1")
    run.wait(0.2)
    run.pod("new", cpu="100m")
    run.bind("new", "n1", replica="b")


def overfill_with_pods(run: Run) -> None:
    run.node("tiny", pods="1")
    for name in ("one", "two"):
        run.pod(name)
        run.bind(name, "tiny", replica="b")


def forget(run: Run) -> None:
    run.pod("new", cpu="100m")


def change_a_spec(run: Run) -> None:
    run.change_spec("p1", tolerations=[{"operator": "Exists"}])


def say_another_node(run: Run) -> None:
    run.pod("new", cpu="100m")
    run.bind("new", "n1", replica="b")
    run.event("Scheduled", "new", ASSIGNED.format("new", "n2"))


def say_it_too_early(run: Run) -> None:
    run.pod("new", cpu="100m")
    run.event("Scheduled", "new", ASSIGNED.format("new", "n1"))
    run.bind("new", "n1", replica="b")


def say_it_twice(run: Run) -> None:
    run.event("Scheduled", "p1", ASSIGNED.format("p1", "n2"))


def say_it_in_other_words(run: Run) -> None:
    run.event("Scheduled", "p1", "p1 is on n2")


def refuse_the_bound(run: Run) -> None:
    run.wait(6.0)
    run.event("FailedScheduling", "late", "0/2 nodes are available: 2 Insufficient cpu.")


def miscount_the_nodes(run: Run) -> None:
    run.pod("big", cpu="64", labels={UNPLACEABLE: "yes"})
    run.event("FailedScheduling", "big", "0/7 nodes are available: 7 Insufficient cpu.")


def claim_a_victim(run: Run) -> None:
    run.event("Preempted", "p1", "Preempted by default/new on node n2")


def label_a_node(run: Run) -> None:
    run.asked("patch", "nodes")


def edit_a_pod(run: Run) -> None:
    run.asked("update", "pods")


def swell(run: Run) -> None:
    for i in range(100):
        run.take("deciding", 200 + 2 * i, 40)


def leak_descriptors(run: Run) -> None:
    for i in range(100):
        run.take("deciding", 200, 40 + i)


TWICE = "no Pod bound twice"
ALONE = "Pods bound by Vane alone"
FORMER = "no Pod bound by a former leader"
PLACE = "no Pod bound where none can be"
TRUTH = "Events truthful"
FLAT = "memory and descriptors flat"

SOWN: tuple[tuple[Callable[[Run], None], str], ...] = (
    (bind_twice, TWICE),
    (move, TWICE),
    (bind_as_another, ALONE),
    (write_the_node, ALONE),
    (bind_after_the_loss, FORMER),
    (ask_after_the_end, FORMER),
    (bind_to_nothing, PLACE),
    (bind_to_a_node_long_gone, PLACE),
    (bind_to_a_cordoned_node, PLACE),
    (overfill, PLACE),
    (overfill_what_others_filled, PLACE),
    (overfill_with_pods, PLACE),
    (forget, "no Pod forgotten"),
    (change_a_spec, "no spec changed"),
    (say_another_node, TRUTH),
    (say_it_too_early, TRUTH),
    (say_it_twice, TRUTH),
    (say_it_in_other_words, TRUTH),
    (refuse_the_bound, TRUTH),
    (miscount_the_nodes, TRUTH),
    (claim_a_victim, TRUTH),
    (label_a_node, "nothing written out of turn"),
    (edit_a_pod, "nothing written out of turn"),
    (swell, FLAT),
    (leak_descriptors, FLAT),
)


def test_a_run_in_which_all_is_right_is_clean() -> None:
    verdict = judge(good().evidence())
    assert verdict.violations == {}
    assert verdict.told_apart == []


@pytest.mark.parametrize(("sow", "invariant"), SOWN, ids=[sow.__name__ for sow, _ in SOWN])
def test_a_sown_violation_is_seen(sow: Callable[[Run], None], invariant: str) -> None:
    run = good()
    sow(run)
    assert invariant in judge(run.evidence()).violations


def test_a_node_that_went_a_moment_before_is_told_apart() -> None:
    run = good()
    run.pod("new", cpu="100m")
    run.wait(1.0)
    run.remove_node("n2")
    run.wait(0.05)
    run.bind("new", "n2", replica="b")

    verdict = judge(run.evidence())

    assert PLACE not in verdict.violations
    assert verdict.told_apart == [f"default/new to n2 at revision {run.revision}: there was no such node"]


def test_room_that_others_took_a_moment_before_is_told_apart() -> None:
    run = good()
    run.pod("new", cpu="300m")
    run.wait(1.0)
    run.pod("foreign", ours=False, cpu="300m", node_name="n2")
    run.wait(0.05)
    run.bind("new", "n2", replica="b")

    verdict = judge(run.evidence())

    assert PLACE not in verdict.violations
    assert len(verdict.told_apart) == 1


def test_a_bind_that_is_refused_binds_nothing() -> None:
    run = good()
    run.bind("p1", "n1", replica="b", code=409)
    assert judge(run.evidence()).is_clean


def test_a_request_that_was_under_way_is_excused_for_that_long() -> None:
    run = good()
    run.pod("new", cpu="100m")
    run.wait(16.0)
    run.bind("new", "n1", replica="b")
    assert judge(run.evidence(network_s=2.0)).is_clean
    assert FORMER in judge(run.evidence(network_s=0.5)).violations


def test_what_is_meant_to_wait_is_not_forgotten() -> None:
    run = good()
    run.pod("big", cpu="64", labels={UNPLACEABLE: "yes"})
    run.pod("gated", spec={"schedulingGates": [{"name": "a.dev/b"}]})
    run.pod("foreign", ours=False)
    assert judge(run.evidence()).is_clean
