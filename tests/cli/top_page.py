"""What `vane top` is shown, and the command with what it prints in hand."""

from __future__ import annotations

import io
from typing import Any

from scheduler.cli.main import main


def signal(name: str, **fields: Any) -> dict[str, Any]:
    usual = {
        "name": name,
        "asks": "x",
        "by": "node",
        "unit": "ratio",
        "server": "",
        "state": "fresh",
        "suspect": False,
        "age_s": 3.2,
        "interval_s": 15.0,
        "spacing_s": 30.0 if name == "cpu" else None,
        "max_age_s": 60.0,
        "nodes": 2,
        "covered": 2,
        "depends_on_pod": False,
        "problems": [],
        "words": "",
        "pause": "",
        "next_try_s": 9.0,
    }
    return usual | fields


def node(signal: str, name: str, **fields: Any) -> dict[str, Any]:
    usual = {"signal": signal, "node": name, "value": 0.5, "age_s": 3.2, "state": "fresh", "inflight": None}
    return usual | {"rules": []} | fields


PAGE = {
    "signals": [
        signal("cpu"),
        signal(
            "disk",
            unit="bytes",
            server="far",
            state="absent",
            age_s=None,
            covered=0,
            problems=["timeout"],
            words="no answer (timeout): no answer within 5 s",
            pause="breaker",
        ),
        signal("zone", by="topology.kubernetes.io/zone", unit="s", state="fading", age_s=700.0, suspect=True),
    ],
    "rules": [
        {"name": "hot", "signal": "cpu", "mode": "enforce", "weight": 3.0, "refused_nodes": 1, "valve_open": False},
        {"name": "far", "signal": "zone", "mode": "enforce", "weight": None, "refused_nodes": 2, "valve_open": True},
    ],
    "learned": [
        {"signal": "cpu", "workload": "shop/Deployment", "of": "cpu", "seen": 9, "adds": 0.2, "quartiles": [0.1, 0.25]},
        {"signal": "disk", "workload": "shop/db", "of": "memory", "seen": 3, "adds": 2048.0, "quartiles": [0, 4096.0]},
        {"signal": "zone", "workload": "shop/web", "of": "", "seen": 3, "adds": 0.1, "quartiles": [0.1, 0.1]},
    ],
    "nodes": [
        node("cpu", "b", value=0.91, inflight=0.0125, rules=[{"rule": "hot", "verdict": "refused", "score": 9.0}]),
        node("cpu", "a", value=None, state="missing", why="nan", rules=[{"rule": "hot", "verdict": "", "score": None}]),
        node("disk", "b", value=None, state="absent", why="no_answer", age_s=None),
        node("zone", "b", key="z1", value=0.25, age_s=700.0, state="fading"),
    ],
}


class Top:
    """The command with what it prints in hand."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.out = self.err = ""

    def __call__(self, *words: str) -> int:
        out, err = io.StringIO(), io.StringIO()
        code = main(["top", *words, "--url", self.url], {}, out, err)
        self.out, self.err = out.getvalue(), err.getvalue()
        return code
