"""Why a Pod went where it went: one line out of a decision of the page /decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

_UNITS: Final = {"node_cpu_use": "CPU", "node_memory_use": "memory", "gpu_fragments": "fragments"}
_SHORT: Final = {
    "NodeResourcesFit": "least requested",
    "NodeResourcesBalancedAllocation": "balanced requests",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One decision in words; `node` is empty if the Pod fitted nowhere. `is_by_rule`: a rule made the difference."""

    number: int
    pod: str
    node: str
    why: str
    is_by_rule: bool
    n_refused: int
    """Nodes that rules turned away."""


def tell(decision: Json) -> Told:
    refused = [one for one in decision["refusals"] if one["rule"]]
    n_refused = sum(int(one["n_nodes"]) for one in refused)
    pod = str(decision["pod"]).rpartition("/")[2]
    if not decision["node"]:
        return Told(int(decision["number"]), pod, "", str(decision["message"]), bool(refused), n_refused)
    why, is_by_rule = _why(decision)
    away = ", ".join(f"{one['n_nodes']} refused by {one['rule']}" for one in refused)
    return Told(
        number=int(decision["number"]),
        pod=pod,
        node=str(decision["node"]),
        why="; ".join(part for part in (why, away) if part),
        is_by_rule=is_by_rule or bool(refused),
        n_refused=n_refused,
    )


def _why(decision: Json) -> tuple[str, bool]:
    """Return what spoke most for the chosen node against the mean of the other best ones, and whether it is a rule."""
    if int(decision["n_feasible"]) <= 1:
        return "the only node left", False
    best: Json | None = None
    lead = 0.0
    for term in decision["terms"]:
        mine, *others = term["contribution"]
        ahead = mine - sum(others) / len(others) if others else 0.0
        if ahead > lead:
            best, lead = term, ahead
    if best is None:
        return "all equal: the Pod's UID decides", False
    use = next((one for one in decision["rules"] if one["rule"] == best["name"]), None)
    if use is None:
        return _SHORT.get(best["plugin"], str(best["plugin"])), False
    return f"{use['rule']}: {sample(use)}", True


def sample(use: Json) -> str:
    """Return the sample behind a rule and its age, as `CPU 31 %, 0.8 s old`."""
    value, age_s, signal = use["value"], use["age_s"], str(use["signal"])
    if value is None or age_s is None:
        return f"{signal} has no sample"
    if signal in _UNITS:
        shown = f"{_UNITS[signal]} {100.0 * value:.0f} %"
    else:
        shown = f"p99 {value:.0f} ms" if signal == "web_p99" else f"{signal} {value:.3g}"
    fading = "" if use["freshness"] == "fresh" else f", {use['freshness']}"
    return f"{shown}, {age_s:.1f} s old{fading}"
