"""What rows do to the answers of Prometheus, and how they look at a signal meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from tests.faults.bench.bench import Bench
from tests.faults.bench.told import signal
from tests.support.fault_proxy import Asked, Fault
from tests.support.manifests import Json
from tests.support.vane import VaneProcess

INTERVAL_S = 1.0
MAX_AGE_S = 10.0
"""Of the signals of every row."""

NODE_CPU, GATE = "node_cpu", "gate"


def of_query(expr: str, fault: Fault) -> Fault:
    """Let a fault have one query, and pass all others."""

    def either(asked: Asked) -> None:
        if asked.query == expr:
            fault(asked)
        else:
            asked.say(asked.forward())

    return either


def with_series(change: Callable[[list[Json]], list[Json]], **more: object) -> Fault:
    """Change the series of an answer, each with what it stands for and its value, and add fields to it."""

    def fault(asked: Asked) -> None:
        answer = asked.forward()
        if answer["status"] == "success":
            answer["data"]["result"] = change(answer["data"]["result"])
        asked.say({**answer, **more})

    return fault


def saying(status: int, body: object) -> Fault:
    encoded = json.dumps(body).encode()
    return lambda asked: asked.write(encoded, status)


def break_with(bench: Bench, fault: Fault) -> None:
    bench.servers.prometheus_proxy.break_with(fault)


def mend(bench: Bench) -> None:
    bench.servers.prometheus_proxy.mend()


def looks(bench: Bench, vane: VaneProcess, name: str, seconds: float) -> list[Json]:
    """Look at a signal on a replica's page, several times a second."""
    found: list[Json] = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        found.append(signal(vane, name))
        bench.last(0.1)
    return [one for one in found if one]


def until_told(bench: Bench, vane: VaneProcess, name: str, problems: set[str], longest_s: float = 20.0) -> float:
    """Wait until a signal is told to have one of these problems; return the seconds that took."""
    begun_s = time.monotonic()
    bench.until(lambda: problems & set(signal(vane, name).get("problems", ())), longest_s, f"{problems} of {name}")
    return time.monotonic() - begun_s


def until_well(bench: Bench, vane: VaneProcess, name: str, longest_s: float = 30.0) -> float:
    """Wait until a signal is fresh and nothing is wrong with it; return the seconds that took."""
    begun_s = time.monotonic()

    def is_well() -> bool:
        said = signal(vane, name)
        return bool(said) and said["state"] == "fresh" and not said["problems"]

    bench.until(is_well, longest_s, f"a healthy {name}")
    return time.monotonic() - begun_s


def oldest_s(found: list[Json]) -> float:
    """Return the highest age of a signal's samples, infinite where it had none."""
    return max((float("inf") if one["age_s"] is None else one["age_s"] for one in found), default=float("nan"))
