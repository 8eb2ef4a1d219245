from __future__ import annotations

from tests.faults.checker.requests import asked_in, most_lists, n_binds_asked, rate_per_s
from tests.faults.recorded import BEGIN_S, Run


def test_a_storm_of_lists_is_counted_by_replica_and_resource() -> None:
    run = Run()
    for replica in ("a", "b"):
        for _ in range(3):
            run.asked("list", "pods", replica)
            run.wait(4.0)
    run.wait(60.0)
    run.asked("list", "pods", "a")
    run.asked("list", "nodes", "a")
    run.asked("list", "pods", "c", user="admin")

    most = most_lists(asked_in(run.audit), 30.0)

    assert most == {("a", "pods"): 3, ("b", "pods"): 3, ("a", "nodes"): 1}


def test_further_pages_of_a_list_are_the_same_list() -> None:
    run = Run()
    run.asked("list", "pods")
    run.asked("list", "pods")
    run.audit[-1]["requestURI"] = "/pods?limit=500&continue=abc"
    assert most_lists(asked_in(run.audit), 30.0) == {("a", "pods"): 1}


def test_binds_are_counted_whatever_was_answered() -> None:
    run = Run()
    run.pod("p")
    run.bind("p", "n", code=409)
    run.bind("p", "n")
    assert n_binds_asked(run.evidence().bindings) == {"uid-p": 2}


def test_a_rate_is_that_within_its_time() -> None:
    run = Run()
    for _ in range(20):
        run.asked("patch", "pods/status")
        run.wait(0.5)
    times_s = [one.at_s for one in asked_in(run.audit)]
    assert rate_per_s(times_s, BEGIN_S, BEGIN_S + 5.0) == 2.0
    assert rate_per_s(times_s, BEGIN_S + 20.0, BEGIN_S + 25.0) == 0.0
