from __future__ import annotations

from typing import Any

import pytest

from scheduler.sim.reasons import Told, tell

TERM = {"plugin": "SignalScore", "weight": 2.0, "values": [80, 40]}
FIT = {"plugin": "NodeResourcesFit", "name": "", "weight": 1.0, "values": [50, 50], "contribution": [50_000, 50_000]}
USE = {"rule": "avoid-hot-nodes", "signal": "node_cpu_use", "freshness": "fresh", "age_s": 0.84, "value": 0.312}


def decision(**changed: object) -> dict[str, Any]:
    return {
        "number": 7,
        "pod": "shop/web-1",
        "node": "node-a1",
        "message": "",
        "n_feasible": 12,
        "refusals": [],
        "terms": [FIT, {**TERM, "name": "avoid-hot-nodes", "contribution": [160_000, 80_000]}],
        "rules": [USE],
        **changed,
    }


def refusal(n_nodes: int, rule: str = "avoid-hot-nodes") -> dict[str, object]:
    return {"plugin": "SignalFilter", "rule": rule, "reason": "…", "n_nodes": n_nodes}


def test_a_decision_names_the_rule_its_sample_and_its_age() -> None:
    told = tell(decision(refusals=[refusal(3), refusal(2, rule="")]))
    assert told == Told(
        7, "web-1", "node-a1", "avoid-hot-nodes: CPU 31 %, 0.8 s old; 3 refused by avoid-hot-nodes", True, 3
    )


@pytest.mark.parametrize(
    ("changed", "why", "is_by_rule"),
    [
        ({"terms": [FIT]}, "all equal: the Pod's UID decides", False),
        ({"terms": [{**FIT, "contribution": [60_000, 50_000]}]}, "least requested", False),
        ({"n_feasible": 1, "terms": []}, "the only node left", False),
        ({"rules": [{**USE, "value": None, "age_s": None}]}, "avoid-hot-nodes: node_cpu_use has no sample", True),
        ({"rules": [{**USE, "freshness": "fading"}]}, "avoid-hot-nodes: CPU 31 %, 0.8 s old, fading", True),
        ({"rules": [{**USE, "signal": "web_p99", "value": 87.4}]}, "avoid-hot-nodes: p99 87 ms, 0.8 s old", True),
        ({"rules": [{**USE, "signal": "mine", "value": 0.5}]}, "avoid-hot-nodes: mine 0.5, 0.8 s old", True),
    ],
)
def test_what_made_the_difference(changed: dict[str, object], why: str, is_by_rule: bool) -> None:
    told = tell(decision(**changed))
    assert (told.why, told.is_by_rule) == (why, is_by_rule)


def test_a_pod_that_fits_nowhere_keeps_the_schedulers_words() -> None:
    message = '0/12 nodes are available: 12 node(s) rejected by rule "avoid-hot-nodes".'
    told = tell(decision(node="", message=message, refusals=[refusal(12)], terms=[]))
    assert (told.node, told.why, told.n_refused) == ("", message, 12)
