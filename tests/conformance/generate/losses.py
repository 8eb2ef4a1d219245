"""Losses: which facts of preemption an answered case reaches, by its candidates, its budgets and its nominated node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise

from tests.conformance.generate.draw import Fields

LOSSES = (
    "broken budgets", "highest priority", "sum of priorities", "number of victims", "start of the highest"
)  # fmt: skip
"""What kube-scheduler weighs of a candidate, one after the other."""

FACTS: tuple[str, ...] = (
    *(f"preemption counts the {loss}" for loss in LOSSES),
    *(f"preemption counts the {one} before the {other}" for one, other in pairwise(LOSSES)),
    "preemption ends with a fault", "preemption ends with several faults", "preemption leaves out a node with a fault",
    "preemption counts no budget for who is disrupted already",
    "preemption counts another budget for who is disrupted already",
    *(f"preemption goes on beside a Pod {how}" for how in (
        "that leaves for another reason", "that stays although it is marked", "whose mark is False",
        "with another condition", "that leaves and is not below",
    )),
)  # fmt: skip

_LOWEST_PRIORITY = -(2**31)


def facts_of_preemption(case: Fields) -> Iterator[str]:
    outcome = case["expect"].get("postfilter")
    if not outcome:
        return
    yield from _of_faults(outcome)
    if case["pod"].get("status", {}).get("nominatedNodeName") and "not eligible" not in outcome["message"]:
        yield from _of_nominated_node(case)
    pods = {_key(pod): pod for pod in case["objects"].get("pods", ())}
    yield from _of_losses(outcome["candidates"], pods)
    for found in outcome["candidates"].values():
        for victim in found["victims"]:
            yield from _of_budgets(pods.get(victim), case["objects"].get("poddisruptionbudgets", ()))


def _key(pod: Fields) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _of_faults(outcome: Fields) -> Iterator[str]:
    if outcome.get("code") == "Error" and outcome["message"].startswith("preemption: "):
        yield "preemption ends with a fault"
        if outcome["message"].startswith("preemption: ["):
            yield "preemption ends with several faults"
    elif any(one.get("code") == "Error" for one in outcome["non_candidates"].values()) and outcome["candidates"]:
        yield "preemption leaves out a node with a fault"


def _of_losses(candidates: Mapping[str, Fields], pods: Mapping[str, Fields]) -> Iterator[str]:
    """Yield what the choice hangs on: without it, or in another order, other nodes would lose least."""
    known = {node: one for node, one in candidates.items() if all(victim in pods for victim in one["victims"])}
    losses = {
        node: _loss(one["pdb_violations"], [pods[victim] for victim in one["victims"]]) for node, one in known.items()
    }
    if len(losses) < 2:
        return
    order = list(range(len(LOSSES)))
    best = _least(losses, order)
    for i, loss in enumerate(LOSSES):
        if _least(losses, order[:i] + order[i + 1 :]) != best:
            yield f"preemption counts the {loss}"
        if i and _least(losses, [*order[: i - 1], i, i - 1, *order[i + 1 :]]).isdisjoint(best):
            yield f"preemption counts the {LOSSES[i - 1]} before the {loss}"


def _loss(n_violations: int, victims: Sequence[Fields]) -> tuple[float, ...]:
    priorities = [pod["spec"].get("priority", 0) for pod in victims]
    top = max(priorities)
    starts = [_start_s(pod) for pod, priority in zip(victims, priorities, strict=True) if priority == top]
    total = sum(priority - _LOWEST_PRIORITY for priority in priorities)
    return n_violations, top, total, len(victims), -min(starts)


def _start_s(pod: Fields) -> float:
    started = (pod.get("status") or {}).get("startTime")
    return datetime.fromisoformat(started).timestamp() if started else float("inf")


def _least(losses: Mapping[str, tuple[float, ...]], order: Sequence[int]) -> set[str]:
    by_node = {node: tuple(loss[i] for i in order) for node, loss in losses.items()}
    least = min(by_node.values())
    return {node for node, loss in by_node.items() if loss == least}


def _of_budgets(victim: Fields | None, budgets: Sequence[Fields]) -> Iterator[str]:
    """Yield whether budgets without room protect a victim or name it as disrupted already."""
    if victim is None:
        return
    metadata, named = victim["metadata"], list[bool]()
    for budget in budgets:
        chosen = (budget["spec"].get("selector") or {}).get("matchLabels")
        is_its = chosen and chosen.items() <= metadata.get("labels", {}).items()
        is_empty = budget["status"]["disruptionsAllowed"] <= 0
        if is_its and is_empty and budget["metadata"]["namespace"] == metadata["namespace"]:
            named.append(metadata["name"] in budget["status"].get("disruptedPods", {}))
    if any(named):
        yield f"preemption counts {'no' if all(named) else 'another'} budget for who is disrupted already"


def _of_nominated_node(case: Fields) -> Iterator[str]:
    """Yield what stands on the nominated node that looks like a victim on its way out, and is none."""
    name = case["pod"]["status"]["nominatedNodeName"]
    verdict = (case["expect"].get("filter") or {}).get(name)
    if verdict is None or verdict["code"] == "UnschedulableAndUnresolvable":
        return
    own = case["pod"]["spec"].get("priority", 0)
    for pod in case["objects"].get("pods", ()):
        for condition in pod["status"].get("conditions", ()) if pod["spec"].get("nodeName") == name else ():
            differs = {
                "that leaves for another reason": condition.get("reason") != "PreemptionByScheduler",
                "that stays although it is marked": "deletionTimestamp" not in pod["metadata"],
                "whose mark is False": condition["status"] != "True",
                "with another condition": condition["type"] != "DisruptionTarget",
                "that leaves and is not below": pod["spec"].get("priority", 0) >= own,
            }
            how = [one for one, is_so in differs.items() if is_so]
            if len(how) == 1:
                yield f"preemption goes on beside a Pod {how[0]}"
