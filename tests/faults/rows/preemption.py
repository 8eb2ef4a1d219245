"""Preemption where one way breaks a PodDisruptionBudget and the other does not."""

from __future__ import annotations

from tests.faults.bench.bench import Bench
from tests.faults.row import Row
from tests.faults.rows import steps
from tests.support.budgets import create_budget

_N_PAIRS = 5
_GUARDED = {"app": "guarded"}


def budgets(bench: Bench) -> None:
    """Pods that need a node to be cleared, with two to choose from: the victim of one is guarded, though lower."""
    for priority, value in (("low", 1), ("middle", 100), ("high", 1_000)):
        bench.api.create_priority_class(priority, value)
    create_budget(bench.api, "guard", _GUARDED, allowed=0)
    for pair in range(_N_PAIRS):
        for side in ("left", "right"):
            steps.create_room(bench, f"{side}-{pair}", room=f"pair-{pair}", cpu="1", labels={"side": side})
    bench.last(2.0)
    n_rounds, took_s, n_guarded_left, n_beside = int(bench.seconds(15, 3)), [], 0, 0
    for i in range(n_rounds):
        sides = ("left", "right") if i % 2 else ("right", "left")
        guarded, others, urgent = (
            [f"{what}-{i}-{j}" for j in range(_N_PAIRS)] for what in ("guarded", "other", "urgent")
        )
        for pair in range(_N_PAIRS):
            _create(bench, guarded[pair], "low", pair, sides[0], labels=_GUARDED)
            _create(bench, others[pair], "middle", pair, sides[1])
        steps.wait_placed(bench, [*guarded, *others])
        for pair in range(_N_PAIRS):
            _create(bench, urgent[pair], "high", pair)
        took_s.append(steps.wait_placed(bench, urgent))
        present = {pod["metadata"]["name"] for pod in bench.api.pods("default")}
        n_guarded_left += sum(name in present for name in guarded)
        n_beside += sum(name in present for name in others)
        steps.delete(bench, {*guarded, *others, *urgent} & present)
    n_all = n_rounds * _N_PAIRS
    bench.figure("Pods that took another's place", n_all)
    bench.figure("budgets broken", n_all - n_guarded_left, at_most=0)
    bench.figure("victims that stayed", n_beside, at_most=0)
    bench.figure("placed after, longest, s", max(took_s))
    bench.measure_recovery()


def _create(bench: Bench, name: str, priority: str, pair: int, side: str = "", **shape: object) -> None:
    spec = steps.in_room(f"pair-{pair}")
    if side:
        spec["nodeSelector"]["side"] = side
    steps.create(bench, [name], cpu="900m", priority_class=priority, spec=spec, **shape)


ROWS = (Row("F05", "preemption with a PodDisruptionBudget", budgets),)
