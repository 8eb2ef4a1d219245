"""Profiles other than the default one, as they stand in a KubeSchedulerConfiguration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.conformance.generate.draw import HOST, PREFERRED, REQUIRED, ZONE, Draw, Fields
from tests.conformance.generate.nodes import requirement

_SCORERS = (
    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity",
    "NodeResourcesBalancedAllocation", "ImageLocality",
)  # fmt: skip
_CAN_BE_DISABLED = (
    "NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
    "NodeDeclaredFeatures", "NodeResourcesBalancedAllocation", "ImageLocality", "DefaultPreemption",
)  # fmt: skip
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi")


_FILTERS = (
    "NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity",
    "NodeDeclaredFeatures",
)  # fmt: skip


def by_point(draw: Draw) -> None:
    """Enable, disable, reorder and weigh plugins at one point or another, or name the whole chain of all points.

    A plugin stays with what its PreFilter or PreScore makes ready: without that kube-scheduler fails every attempt. So
    does VolumeBinding with its Filter, without which it scores 0 there.
    """
    plugins: Fields = {}
    there = {*_FILTERS, *_SCORERS}
    if draw.often(0.3):
        there = {name for name in sorted(there) if draw.often(0.85)}
        chain = sorted({*there, "PrioritySort", "DefaultBinder", "SchedulingGates", "DefaultPreemption"})
        plugins["multiPoint"] = {"disabled": [{"name": "*"}], "enabled": _named(draw.some(chain, len(chain)))}
    filters, scorers = sorted(there & {*_FILTERS}), sorted(there & {*_SCORERS})
    if draw.often(0.6):
        plugins["score"] = _scoring(draw, scorers)
    if draw.often(0.7):
        plugins["filter"] = draw.pick((_some_out, _some_first, _only_some))(draw, filters)
    if draw.often(0.15):
        plugins["postFilter"] = {"disabled": _named(["DefaultPreemption"])}
    if draw.often(0.15):
        plugins["preEnqueue"] = {"disabled": _named(["SchedulingGates"])}
    draw.profile = {"schedulerName": "default-scheduler", "plugins": plugins}


def _some_out(draw: Draw, names: Sequence[str]) -> Fields:
    return {"disabled": _named(draw.some([name for name in names if name != "VolumeBinding"], 1, 3))}


def _some_first(draw: Draw, names: Sequence[str]) -> Fields:
    return {"enabled": _named(draw.some(names, 2, 6))}


def _only_some(draw: Draw, names: Sequence[str]) -> Fields:
    chosen = draw.some(names, 3)
    kept = ["VolumeBinding"] if "VolumeBinding" in names and "VolumeBinding" not in chosen else []
    return {"disabled": [{"name": "*"}], "enabled": _named([*chosen, *kept])}


def _named(names: Iterable[str]) -> list[Fields]:
    return [{"name": name} for name in names]


def _scoring(draw: Draw, names: Sequence[str]) -> Fields:
    weighed = [{"name": name, "weight": draw.pick((1, 2, 7, 99, 100))} for name in draw.some(names, 1)]
    choices: tuple[Fields, ...] = (
        {"disabled": _named(draw.some(names, 1, 4))},
        {"disabled": [{"name": "*"}], "enabled": weighed},
        {"enabled": weighed},
        {"disabled": _named(str(one["name"]) for one in weighed), "enabled": weighed},
    )
    return draw.pick(choices)


def another_profile(draw: Draw) -> None:
    """Weigh, leave out or configure plugins; without the part the case has no profile and means the default one."""
    plugins: Fields = {}
    if draw.often(0.5):
        weighed = [{"name": name, "weight": draw.pick((1, 2, 17, 100))} for name in draw.some(_SCORERS, 1, 3)]
        plugins["multiPoint"] = {"enabled": weighed}
    if draw.often(0.4):
        named = {one["name"] for one in plugins.get("multiPoint", {}).get("enabled", [])}
        left_out = [name for name in draw.some(_CAN_BE_DISABLED, 1, 2) if name not in named]
        plugins.setdefault("multiPoint", {})["disabled"] = [{"name": name} for name in left_out]
    disabled = {one["name"] for one in plugins.get("multiPoint", {}).get("disabled", [])}
    makers = {
        "NodeResourcesFit": _fit, "NodeResourcesBalancedAllocation": _balance, "NodeAffinity": _added_affinity,
        "InterPodAffinity": _inter_pod, "PodTopologySpread": _spread, "VolumeBinding": _binding,
        "DefaultPreemption": _preemption,
    }  # fmt: skip
    chosen = draw.some([name for name in makers if name not in disabled], 1, 3)
    configs = [{"name": name, "args": makers[name](draw)} for name in chosen]
    draw.profile = {"schedulerName": "default-scheduler", "plugins": plugins, "pluginConfig": configs}


def _weighed(draw: Draw, greatest: int) -> list[Fields]:
    weights = (1, greatest, max(1, greatest // 3))
    return [{"name": name, "weight": draw.pick(weights)} for name in draw.some(_RESOURCES, 1, 4)]


def _fit(draw: Draw) -> Fields:
    strategy: Fields = {"type": draw.pick(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"))}
    strategy["resources"] = _weighed(draw, 100)
    if strategy["type"] == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": _shape(draw)}
    args: Fields = {"scoringStrategy": strategy}
    if draw.often(0.3):
        args["ignoredResources"] = draw.some(("nvidia.com/gpu", "example.com/no"), 1)
    if draw.often(0.2):
        args["ignoredResourceGroups"] = draw.some(("nvidia.com", "example.com"), 1)
    return args


def _shape(draw: Draw) -> list[Fields]:
    uses = sorted(draw.some(range(101), 1, 12) if draw.often(0.5) else draw.some((0, 1, 20, 50, 80, 99, 100), 1))
    return [{"utilization": use, "score": draw.count(0, 10)} for use in uses]


def _binding(draw: Draw) -> Fields:
    return {"shape": _shape(draw), "bindTimeoutSeconds": draw.pick((0, 1, 600))}


def _preemption(draw: Draw) -> Fields:
    """Return how many nodes are tried; which ones is chance where that is not all."""
    percentage, absolute = draw.pick(((0, 1), (100, 0), (10, 1), (50, 0), (1, 3), (100, 1000)))
    return {"minCandidateNodesPercentage": percentage, "minCandidateNodesAbsolute": absolute}


def _balance(draw: Draw) -> Fields:
    return {"resources": _weighed(draw, 1)}


def _added_affinity(draw: Draw) -> Fields:
    added: Fields = {}
    if draw.often(0.6):
        added[REQUIRED] = {"nodeSelectorTerms": [{"matchExpressions": [requirement(draw)]} for _ in range(2)]}
    if draw.often(0.6) or not added:
        added[PREFERRED] = [{"weight": draw.count(1, 100), "preference": {"matchExpressions": [requirement(draw)]}}]
    return {"addedAffinity": added}


def _inter_pod(draw: Draw) -> Fields:
    return {"hardPodAffinityWeight": draw.pick((0, 1, 50, 100)), "ignorePreferredTermsOfExistingPods": draw.often(0.5)}


def affinity_arguments(draw: Draw) -> None:
    """Weigh what placed Pods require, and let some of them require the target near them."""
    config = [{"name": "InterPodAffinity", "args": _inter_pod(draw)}]
    draw.profile = {"schedulerName": "default-scheduler", "pluginConfig": config}
    for pod in draw.some(draw.placed, 1):
        selector = {"matchLabels": {"app": draw.target["metadata"]["labels"]["app"]}}
        near = [{"topologyKey": draw.pick((ZONE, HOST)), "labelSelector": selector, "namespaces": ["default"]}]
        pod["spec"].setdefault("affinity", {})["podAffinity"] = {REQUIRED: near}


def _spread(draw: Draw) -> Fields:
    constraints = [
        {
            "maxSkew": draw.pick((1, 2, 3, 2**31 - 1)),
            "topologyKey": key,
            "whenUnsatisfiable": draw.pick(("DoNotSchedule", "ScheduleAnyway")),
        }
        for key in draw.some((ZONE, HOST, "rack", "nobody-has-this"), 0, 3)
    ]
    return {"defaultingType": "List", "defaultConstraints": constraints}
