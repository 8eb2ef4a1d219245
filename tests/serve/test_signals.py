"""`GET /signals`: what may be asked, and what the page makes of the figures and of what the asking process knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from scheduler.loop.pages.signals import (
    Figures,
    LearnedFigures,
    ListingFault,
    NodeFigures,
    RuleFigures,
    SignalFigures,
    SignalsQuery,
    VerdictFigures,
)
from scheduler.model.signals import Freshness
from scheduler.rules.shown import Sort
from scheduler.serve.answered_page import OwnFigures, PageRefused
from scheduler.serve.http import PageServer
from scheduler.serve.signals import MAX_LIMIT, SignalsPage
from scheduler.signals.answers import Drops, SignalAnswer
from scheduler.signals.asking.query_health import QueryHealth
from scheduler.signals.problems import MissingReason
from tests.serve.source import Source
from tests.serve.test_http import request

NAN = float("nan")
CPU = SignalFigures(
    name="cpu",
    asks="max by (node) (cpu)",
    key="node",
    unit="ratio",
    server="",
    is_built_in=False,
    interval_s=10.0,
    spacing_s=0.0,
    fresh_s=20.0,
    max_age_s=40.0,
    depends_on_pod=False,
    state=Freshness.FRESH,
    age_s=5.0,
    is_suspect=False,
    n_nodes=3,
    n_covered=2,
)
HOT = RuleFigures("hot", "cpu", "enforce", 3.0, True, True, False, 1)


def floats(*values: float) -> bytes:
    return np.array(values, dtype=np.float64).tobytes()


def nodes(**changes: Any) -> NodeFigures:
    shown = NodeFigures(
        "cpu", ["a", "b", "c"], [], floats(0.9, 0.5, NAN), floats(5.0, 25.0, 5.0), floats(0.125, NAN, NAN)
    )
    return msgspec.structs.replace(shown, **changes)


VERDICTS = VerdictFigures("hot", bytes([1, 0, 2]), floats(10.0, 50.0, 30.0))


def knowing(query_health: Mapping[str, QueryHealth]) -> OwnFigures:
    return OwnFigures(dict, lambda: query_health)


def page(figures: Sequence[Figures], health: QueryHealth | None = None) -> dict[str, Any]:
    made = SignalsPage(SignalsQuery())
    for one in figures:
        made.add(msgspec.msgpack.encode([one]))
    told: dict[str, Any] = msgspec.json.decode(made.body(knowing({} if health is None else {"cpu": health})))
    return told


def answer(**fields: Any) -> SignalAnswer:
    return SignalAnswer("cpu", "", 1, 40.0, 0.0, **fields)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("", SignalsQuery(limit=20)),
        ("?signal=cpu&sort=age&limit=0", SignalsQuery("cpu", "", Sort.AGE, 0)),
        ("?signal=cpu&sort=name&limit=5000", SignalsQuery("cpu", "", Sort.NAME, 5000)),
    ],
)
def test_what_is_asked_for_reaches_the_source(
    server: PageServer, source: Source, query: str, asked: SignalsQuery
) -> None:
    said = request(server, f"/signals{query}")
    assert (said.status, said.text) == (200, '{"signals":[]}\n')
    assert said.headers["Content-Type"] == "application/json"
    assert source.signal_queries == [asked]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?pod=shop/web", "unknown parameter 'pod'. Use signal, node, sort, limit"),
        ("?signal=cpu&node=a", "signal and node: use one of them"),
        ("?sort=size", "sort: must be value, age, name, got 'size'"),
        (f"?limit={MAX_LIMIT + 1}", f"limit: must be from 0 to {MAX_LIMIT}, got '5001'"),
        ("?limit=-1", "limit: must be from 0"),
        ("?limit=", "limit: must be from 0"),
    ],
)
def test_nonsense_is_refused(server: PageServer, source: Source, query: str, problem: str) -> None:
    said = request(server, f"/signals{query}")
    assert said.status == 400
    assert problem in said.text
    assert source.signal_queries == []


def test_a_node_that_nobody_knows_is_not_found(server: PageServer) -> None:
    said = request(server, "/signals?node=x")
    assert (said.status, said.text) == (404, "/signals: no node 'x'\n")


def test_a_node_is_told_with_its_state_and_with_what_each_rule_makes_of_it() -> None:
    health = QueryHealth(answer(n_series=3, n_mapped=2, drops=Drops(nan=1)), 1.0, {"c": MissingReason.NAN})
    told = page([CPU, HOT, nodes(), VERDICTS], health=health)
    assert told["nodes"] == [
        {
            "signal": "cpu",
            "node": "a",
            "value": 0.9,
            "age_s": 5.0,
            "state": "fresh",
            "inflight": 0.125,
            "rules": [{"rule": "hot", "verdict": "refused", "score": 10.0}],
        },
        {
            "signal": "cpu",
            "node": "b",
            "value": 0.5,
            "age_s": 25.0,
            "state": "fading",
            "inflight": None,
            "rules": [{"rule": "hot", "verdict": "", "score": 50.0}],
        },
        {
            "signal": "cpu",
            "node": "c",
            "value": None,
            "age_s": 5.0,
            "state": "missing",
            "why": "nan",
            "inflight": None,
            "rules": [{"rule": "hot", "verdict": "refused, no sample", "score": 30.0}],
        },
    ]
    assert told["rules"] == [
        {
            "name": "hot",
            "signal": "cpu",
            "mode": "enforce",
            "weight": 3.0,
            "refused_nodes": 1,
            "valve_open": False,
        }
    ]


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [({"mode": "shadow"}, "refused (shadow)"), ({"is_valve_open": True}, "refused (valve open)")],
)
def test_a_rule_that_does_not_act_refuses_nobody(changes: dict[str, Any], verdict: str) -> None:
    told = page([CPU, msgspec.structs.replace(HOT, **changes), nodes(), VERDICTS])
    assert told["nodes"][0]["rules"][0]["verdict"] == verdict


ABSENT = msgspec.structs.replace(CPU, state=Freshness.ABSENT, age_s=41.0)


@pytest.mark.parametrize(
    ("signal", "health", "state", "why"),
    [
        (CPU, None, "missing", "unknown"),
        (CPU, QueryHealth(answer(error="x", error_kind="timeout")), "missing", "unknown"),
        (CPU, QueryHealth(answer(n_series=2, n_mapped=2)), "missing", "no_series"),
        (CPU, QueryHealth(answer(n_series=3, n_mapped=2), missing={"zone-c": MissingReason.STALE}), "missing", "stale"),
        (ABSENT, QueryHealth(answer(error="x", error_kind="timeout")), "absent", "too_old"),
        (msgspec.structs.replace(ABSENT, age_s=float("inf")), None, "absent", "no_answer"),
    ],
)
def test_a_node_without_a_value_says_why(
    signal: SignalFigures, health: QueryHealth | None, state: str, why: str
) -> None:
    told = page([signal, nodes(keys=["zone-a", "zone-b", "zone-c"])], health=health)
    last = told["nodes"][-1]
    assert (last["key"], last["value"], last["state"], last["why"]) == ("zone-c", None, state, why)


@pytest.mark.parametrize(
    ("health", "problems", "words"),
    [
        (QueryHealth(answer(n_series=3, n_mapped=3)), [], ""),
        (QueryHealth(None), [], "not asked yet"),
        (
            QueryHealth(answer(error="no answer within 5 s", error_kind="timeout"), pause="breaker", next_try_s=12.04),
            ["timeout"],
            "no answer (timeout): no answer within 5 s",
        ),
        (
            QueryHealth(answer(n_series=3, n_mapped=1, drops=Drops(inf=1, range=1), warnings=("half of it",))),
            ["warnings", "inf", "range"],
            "warnings in the answer: half of it; samples that are infinite; samples outside `range`",
        ),
    ],
)
def test_what_is_wrong_with_a_signal_is_said_in_words(health: QueryHealth, problems: list[str], words: str) -> None:
    (told,) = page([CPU], health=health)["signals"]
    assert (told["problems"], told["words"], told["pause"]) == (problems, words, health.pause)
    assert told["next_try_s"] == round(health.next_try_s, 1)


def test_what_is_not_known_is_said_and_a_fault_is_raised() -> None:
    made = SignalsPage(SignalsQuery(signal="gpu"))
    made.add(msgspec.msgpack.encode([CPU]))
    with pytest.raises(PageRefused, match="no signal 'gpu'; there are cpu"):
        made.body(knowing({}))
    made = SignalsPage(SignalsQuery(node="x"))
    made.add(msgspec.msgpack.encode([CPU, nodes(names=[], values=b"", ages_s=b"", inflight=b"")]))
    with pytest.raises(PageRefused, match="no node 'x'"):
        made.body(knowing({}))
    made.add(msgspec.msgpack.encode([ListingFault("ValueError: it broke")]))
    with pytest.raises(RuntimeError, match="it broke"):
        made.body(knowing({}))


def test_what_was_learned_of_a_workload_is_told_with_its_spread() -> None:
    told = page([CPU, LearnedFigures("cpu", "shop", "ReplicaSet/web", "cpu", 7, 0.2, 0.18, NAN)])

    assert told["learned"] == [
        {
            "signal": "cpu",
            "workload": "shop/ReplicaSet/web",
            "of": "cpu",
            "seen": 7,
            "adds": 0.2,
            "quartiles": [0.18, None],
        }
    ]
