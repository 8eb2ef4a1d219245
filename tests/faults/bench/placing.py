"""How soon Pods are placed, as the checker's watch shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from tests.faults.bench.bench import Bench
from tests.faults.checker.history import POD, History
from tests.faults.checker.requests import Asked
from tests.support import manifests


def placed_after_s(history: History, names: Iterable[str]) -> dict[str, float]:
    """Return the seconds from a Pod's first sight to that of its node, by name; of those that have one."""
    wanted = set(names)
    created_s: dict[str, float] = {}
    took_s: dict[str, float] = {}
    for change in list(history.changes):
        if change.kind != POD or change.name not in wanted:
            continue
        if not change.content["spec"].get("nodeName"):
            created_s.setdefault(change.name, change.seen_s)
        elif change.name in created_s:
            took_s.setdefault(change.name, change.seen_s - created_s[change.name])
    return took_s


def bound_after_s(asked: Iterable[Asked], names: Iterable[str]) -> dict[str, float]:
    """Return the seconds from a Pod's creation to its bind, as the API servers answered them, by name."""
    wanted = set(names)
    created_s: dict[str, float] = {}
    took_s: dict[str, float] = {}
    for one in asked:
        if one.name not in wanted or one.verb != "create" or one.code != 201:
            continue
        if one.resource == "pods":
            created_s[one.name] = one.answered_s
        elif one.resource == "pods/binding" and one.name in created_s:
            took_s[one.name] = one.answered_s - created_s[one.name]
    return took_s


def quantile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that so many are not above; NaN of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else math.nan


class Placing:
    """The Pods that the churn creates from now on, until `names` is asked for."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._first = len(bench.churn.created)

    def names(self) -> Sequence[str]:
        return self._bench.churn.created[self._first :]

    def waits_s(self, names: Sequence[str] | None = None) -> list[float]:
        return list(placed_after_s(self._bench.watcher.history, self.names() if names is None else names).values())


def measure_all_placed(bench: Bench, names: Sequence[str], longest_s: float = 30.0) -> None:
    """Hold the share of Pods that had a node in the end against all."""
    bench.until(lambda: bench.watcher.bound >= set(names) or not bench.pending() & set(names), longest_s, "all Pods")
    placed = len(bench.watcher.bound & set(names))
    bench.figure(f"of {len(names)} Pods placed, share", placed / max(1, len(names)), at_least=1.0)


def probe(bench: Bench, prefix: str, steps: Iterable[Callable[[], object]], apart_s: float) -> list[float]:
    """Create a small Pod after each step, and return after how many seconds each was bound, infinite for never.

    They are deleted at the end.
    """
    names = []
    for i, step in enumerate(steps):
        step()
        names.append(f"{prefix}-{i}")
        bench.api.post("/api/v1/namespaces/default/pods", small_pod(names[-1]))
        bench.last(apart_s)
    bench.until(lambda: bench.watcher.bound >= set(names), 30.0, f"the placement of {prefix}-*")
    took_s = bound_after_s(bench.asked(), names)
    delete(bench, names)
    return [took_s.get(name, math.inf) for name in names]


def delete(bench: Bench, names: Iterable[str]) -> None:
    """Delete Pods; those on a node that the churn has emptied have gone already."""
    for name in names:
        bench.churn.ask(lambda server, name=name: server.delete_pod(name, grace=0))  # type: ignore[misc]


def small_pod(name: str, **shape: object) -> manifests.Json:
    """Return a Pod that fits anywhere."""
    shape = {"cpu": "10m", "memory": "16Mi", "scheduler_name": "vane", "grace": 0, **shape}
    return manifests.pod(name, **shape)  # type: ignore[arg-type]
