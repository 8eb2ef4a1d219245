"""Hostile objects through the whole line, from bytes to decisions: each ends, and no ordinary Pod notices.

`HOSTILE=full pytest -s` draws 20,000 objects, and says how long the slowest took.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.errors import InvalidObjectError
from scheduler.kube.resources import KINDS
from scheduler.kube.watch_stream import Changed
from tests.builders import make_node, make_pod, object_of
from tests.hostile.documents import DOCUMENTS, POD, spoilt
from tests.loop.harness import Harness

IS_FULL = os.environ.get("HOSTILE") == "full"
N_EXAMPLES = 6_000 if IS_FULL else 25
PYTHON_WORDS = re.compile(
    r"Traceback|Error:|object has no|unsupported operand|NoneType|too large|out of bounds|out of range|not iterable"
    r"|cannot convert|not supported between|unhashable|list index|must be (str|int|real)|surrogates"
)
"""What a fault of ours sounds like, in a message that should tell a Pod's owner something."""


class Faults(logging.Handler):
    """Keeps what was logged with a traceback: none of it is the object's."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.texts.append(f"{record.getMessage()}: {record.exc_info[1]!r}")


def cluster() -> Harness:
    """Return four nodes, of which hostile Pods may be bound to the first, with a few Pods and a class of volumes."""
    harness = Harness()
    nodes = [
        make_node(f"n{i}", labels={"zone": "ab"[i % 2], "gen": str(i)}, extended={"example.com/x": 4}) for i in range(4)
    ]
    harness.list_nodes(*nodes)
    harness.list_pods(*(make_pod(f"old-{i}", node=f"n{i}", cpu="500m", labels={"app": "web"}) for i in range(4)))
    storage = {
        "metadata": {"name": "wait"},
        "provisioner": "csi.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    harness.loop.apply(Changed("StorageClass", "ADDED", object_of("StorageClass", storage)))
    return harness


def probe(harness: Harness) -> str:
    """Place an ordinary Pod; return its node."""
    harness.see(make_pod("ordinary", cpu="100m", memory="64Mi", labels={"app": "web"}))
    harness.run()
    return harness.placed().get("ordinary", "")


UNDISTURBED = probe(cluster())


def show(harness: Harness, kind: str, type_: Any, document: Any) -> None:
    """Have the watch show an object; where not even its metadata can be read it is left out there."""
    try:
        item = KINDS[kind].decode(json.dumps(document).encode())
    except InvalidObjectError:
        return
    harness.loop.apply(Changed(kind, type_, item))


def is_settled(harness: Harness, uid: str) -> bool:
    """Return whether a Pod was placed, refused with words or is none of ours; gated ones wait as they should."""
    binder, queue = harness.binder, harness.world.queue
    told = {report.pod.uid for report in binder.reports} | {event.pod.uid for event in binder.events}
    if uid in told or harness.world.cache.is_placed(uid):
        return True
    return queue.place_of(uid) in ("", "gated")


@pytest.fixture(autouse=True)
def _reports_come_from_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


OBJECTS = st.lists(
    st.sampled_from(["Pod", "Pod", "Pod", *DOCUMENTS]).flatmap(
        lambda kind: st.tuples(st.just(kind), st.sampled_from(["ADDED", "MODIFIED", "DELETED"]), spoilt(kind))
    ),
    min_size=1,
    max_size=7,
)


@dataclass
class Tally:
    """What was shown, and the most CPU time that any of it took until nothing waited."""

    n_objects: int = 0
    slowest_s: float = 0.0

    @contextlib.contextmanager
    def timed(self, n_objects: int) -> Iterator[None]:
        gc.disable()  # the rubbish of thousands of examples is not theirs
        begun_s = time.process_time()
        yield
        self.n_objects += n_objects
        self.slowest_s = max(self.slowest_s, time.process_time() - begun_s)
        gc.enable()


@pytest.fixture(scope="module")
def tally() -> Iterator[Tally]:
    found = Tally()
    yield found
    print(f"\n{found.n_objects} objects, up to seven at once; slowest {1000 * found.slowest_s:.0f} ms")  # noqa: T201


@given(shown=OBJECTS)
@settings(max_examples=N_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_object_ends_and_no_other_pod_notices(tally: Tally, shown: list[tuple[str, str, Any]]) -> None:
    faults = Faults()
    logging.getLogger("scheduler").addHandler(faults)
    try:
        harness = cluster()
        with tally.timed(len(shown)):
            for i, (kind, type_, document) in enumerate(shown):
                document["metadata"] |= {"resourceVersion": str(100 + i)}
                if kind == "Pod":
                    document["metadata"] |= {"uid": f"uid-{i}", "name": f"bad-{i}"}
                show(harness, kind, type_, document)
            harness.run()
        for i in range(len(shown)):
            assert is_settled(harness, f"uid-{i}"), harness.world.queue.place_of(f"uid-{i}")
        assert probe(harness), [report.message for report in harness.binder.reports]
    finally:
        logging.getLogger("scheduler").removeHandler(faults)
    assert faults.texts == []
    assert [one.message for one in harness.binder.reports if PYTHON_WORDS.search(one.message)] == []


@given(st.lists(spoilt("Pod"), min_size=1, max_size=5))
@settings(max_examples=N_EXAMPLES // 4, deadline=None, suppress_health_check=list(HealthCheck))
def test_pods_that_are_refused_change_nothing_for_others(documents: list[Any]) -> None:
    harness = cluster()
    for i, document in enumerate(documents):
        document["metadata"] |= {"uid": f"uid-{i}", "name": f"bad-{i}"}
        document["spec"] = document["spec"] if isinstance(document.get("spec"), dict) else {}
        document["spec"] |= {"nodeName": "", "overhead": {"cpu": "100"}, "schedulerName": "vane"}
        show(harness, "Pod", "ADDED", document)
    harness.run()

    assert harness.placed() == {}
    assert probe(harness) == UNDISTURBED


def work_of(harness: Harness, *documents: Any) -> int:
    """Return how many Python and C functions were called to apply Pods and to decide until nothing waits."""
    decoded = [KINDS["Pod"].decode(json.dumps(document).encode()) for document in documents]
    n_calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal n_calls
        n_calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for item in decoded:
            harness.loop.apply(Changed("Pod", "ADDED", item))
        harness.run()
    finally:
        sys.setprofile(None)
    return n_calls


def pod(name: str, node: str = "", **spec: Any) -> dict[str, Any]:
    metadata = {**POD["metadata"], "name": name, "uid": name, "labels": {}}
    return {"metadata": metadata, "spec": {"nodeName": node, "schedulerName": "vane", **spec}}


def differing_term(number: int, key: str = "zone") -> dict[str, Any]:
    """Return a term about nearly every Pod, like no other one."""
    wanted = [{"key": "id", "operator": "NotIn", "values": [f"p{number}"]}]
    return {"topologyKey": key, "labelSelector": {"matchExpressions": wanted}, "namespaceSelector": {}}


def near_others(n: int) -> dict[str, Any]:
    """Return a Pod's spec with so many soft terms."""
    weighted = [{"weight": 1 + i % 100, "podAffinityTerm": differing_term(i)} for i in range(n)]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


def away_from_others(n: int) -> dict[str, Any]:
    """Return a Pod's spec with so many terms that keep others away, each from the nodes with another label."""
    required = [differing_term(i, f"nowhere-{i}") for i in range(n)]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def spread(n: int) -> dict[str, Any]:
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": f"nowhere-{i}",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": differing_term(i)["labelSelector"],
        }
        for i in range(n)
    ]
    return {"topologySpreadConstraints": constraints}


NAMES = {f"example.com/x{i:05d}": "9E" for i in range(20_000)}
SELECTOR = {"key": "zone", "operator": "NotIn", "values": ["c"]}
VAST: dict[str, dict[str, Any]] = {
    "resource names": {"containers": [{"resources": {"requests": NAMES}}]},
    "sidecars": {
        "initContainers": [
            {"name": f"c{i}", "restartPolicy": "Always", "resources": {"requests": {f"example.com/x{i}": "1"}}}
            for i in range(5_000)
        ]
    },
    "node affinity terms": {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [f"z{i}"]}]}
                        for i in range(5_000)
                    ]
                }
            }
        }
    },
    "tolerations": {"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(10_000)]},
    "host ports": {"containers": [{"ports": [{"hostPort": i} for i in range(1, 10_000)]}]},
    "soft affinity": near_others(1_900),
    "soft affinity beyond what is read": near_others(4_500),
    "anti-affinity": away_from_others(1_900),
    "anti-affinity beyond what is read": away_from_others(4_500),
    "spread": spread(480),
    "spread beyond what is read": spread(4_500),
    "volumes": {"volumes": [{"name": f"v{i}", "emptyDir": {}} for i in range(10_000)]},
}


@pytest.mark.parametrize("where", ["", "n0"])
@pytest.mark.parametrize("what", VAST)
def test_a_pod_as_large_as_the_api_server_takes_costs_a_bounded_amount_of_work(what: str, where: str) -> None:
    harness = cluster()
    vast = pod("vast", where, **VAST[what])
    assert len(json.dumps(vast)) < 2**20
    cost = work_of(harness, vast)
    after = work_of(harness, pod("next"))

    # What 250 ms have room for on a machine of 2020, several times over.
    assert cost < 1_500_000, cost
    assert after < 20_000, after
    assert is_settled(harness, "vast")
    assert probe(harness)


def crowded(n: int) -> Harness:
    """Return the cluster with so many Pods more, no two with equal labels."""
    harness = cluster()
    harness.list_pods(*(make_pod(f"p{i}", node=f"n{i % 4}", cpu="1m", labels={"id": f"p{i}"}) for i in range(n)))
    return harness


def test_pods_with_a_thousand_soft_terms_do_not_hold_others_back() -> None:
    harness = crowded(400)
    others = [pod(f"other-{i}", affinity=near_others(1)["affinity"]) for i in range(20)]
    work_of(harness, others.pop())
    ordinary = work_of(harness, *others[:9]) / 9
    beside = work_of(harness, *(pod(f"costly-{i}", **near_others(1_000)) for i in range(3)), *others[9:])

    # Each term beside each of the Pods would be 400,000 comparisons for each of the three.
    assert beside - 10 * ordinary < 3 * 250_000, beside
    assert all(is_settled(harness, one["metadata"]["uid"]) for one in others)


@pytest.mark.parametrize("there", [near_others(1_000), away_from_others(1_000)], ids=["soft", "anti-affinity"])
def test_what_placed_pods_say_about_others_costs_these_next_to_nothing(there: dict[str, Any]) -> None:
    harness = crowded(40)
    ordinary = work_of(harness, pod("first"))
    for i in range(20):
        show(harness, "Pod", "ADDED", pod(f"tenant-{i}", f"n{i % 4}", **there, priority=i))

    assert work_of(harness, pod("second")) < ordinary + 2_000


def test_a_tenant_with_amounts_beyond_any_number_closes_no_node() -> None:
    harness = cluster()
    many = [{"resources": {"requests": {"example.com/x": "9007199254740991"}}}] * 4
    for i in range(40):
        show(harness, "Pod", "ADDED", pod(f"tenant-{i}", f"n{i % 4}", containers=many))
    assert probe(harness) == UNDISTURBED
    harness.see(make_pod("wants-x", extended={"example.com/x": 1}))
    harness.run()
    (report,) = harness.binder.reports
    assert report.message.startswith("0/4 nodes are available: 4 Insufficient example.com/x.")
