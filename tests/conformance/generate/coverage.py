"""What the answers reach: reasons, branches of scores, outcomes of preemption. Each of FACTS has to be reached."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tests.conformance.generate import losses
from tests.conformance.generate.draw import BETA_ZONE, ZONE, Fields
from tests.conformance.generate.losses import facts_of_preemption

_NAMED = re.compile(r'"[^"]*"')
_RESOURCE = re.compile(r"Insufficient (?!cpu$|memory$|ephemeral-storage$).*")
_PLUGINS = re.compile(r"plugin\(s\) .*")

_OTHER_NODE = "node(s) didn't match the requested node name"
"""Only a nominated node can be refused so, before all others are looked at; the text tells it, not the filters."""

_SCORES = (
    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread", "InterPodAffinity",
    "ImageLocality",
)  # fmt: skip
_CORDON = "NodeUnschedulable"
_BALANCE = "NodeResourcesBalancedAllocation"
_SOURCES = (
    "awsElasticBlockStore", "gcePersistentDisk", "azureDisk", "cinder", "portworxVolume", "azureFile", "vsphereVolume",
    "rbd", "iscsi", "csi", "ephemeral", "image",
)  # fmt: skip
_UNCHANGED = 75
_HIGH = (1000, 2_000_000_000)
_SKIPPING = ("NodeAffinity", "PodTopologySpread", "InterPodAffinity", _BALANCE)

FACTS: tuple[str, ...] = (
    *(f"result {result}" for result in ("gated", "scheduled", "unschedulable", "error", "crash")),
    "no nodes",
    *(f"reason {text}" for text in (
        f"NodeName: {_OTHER_NODE}",
        "NodeUnschedulable: node(s) were unschedulable",
        "TaintToleration: node(s) had untolerated taint(s)",
        "NodeAffinity: node(s) didn't match Pod's node affinity/selector",
        "NodeAffinity: node(s) didn't match scheduler-enforced node affinity",
        "NodePorts: node(s) didn't have free ports for the requested pod ports",
        "NodeResourcesFit: Too many pods",
        "NodeResourcesFit: Insufficient cpu",
        "NodeResourcesFit: Insufficient memory",
        "NodeResourcesFit: Insufficient ephemeral-storage",
        "NodeResourcesFit: Insufficient …",
        "VolumeRestrictions: node(s) had no available disk",
        "VolumeRestrictions: node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod",
        "NodeVolumeLimits: node(s) exceed max volume count",
        "NodeVolumeLimits: … CSI driver is not installed on the node",
        "VolumeBinding: node(s) didn't find available persistent volumes to bind",
        "VolumeBinding: node(s) didn't match PersistentVolume's node affinity",
        "VolumeBinding: node(s) did not have enough free storage",
        "VolumeBinding: node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        "VolumeZone: node(s) had no available volume zone",
        "PodTopologySpread: node(s) didn't match pod topology spread constraints",
        "PodTopologySpread: node(s) didn't match pod topology spread constraints (missing required label)",
        "InterPodAffinity: node(s) didn't match pod affinity rules",
        "InterPodAffinity: node(s) didn't match pod anti-affinity rules",
        "InterPodAffinity: node(s) didn't satisfy existing pods anti-affinity rules",
        "NodeDeclaredFeatures: node(s) didn't match Pod's required features",
        ": node(s) didn't satisfy plugin(s) …",
    )),
    *(f"reason before nodes {text}" for text in (
        "NodeAffinity: pod affinity terms conflict",
        ": node(s) didn't satisfy plugin(s) …",
        "VolumeBinding: pod has unbound immediate PersistentVolumeClaims",
        "VolumeBinding: persistentvolumeclaim … is being deleted",
        "VolumeBinding: persistentvolumeclaim … bound to non-existent persistentvolume …",
        "VolumeBinding: PVC … was not created for pod … (pod is not owner)",
        "VolumeBinding: waiting for ephemeral volume controller to create the persistentvolumeclaim …",
        "VolumeRestrictions: persistentvolumeclaim … not found",
        "VolumeZone: persistentvolume … not found",
    )),
    *(f"error {head}" for head in (
        'running "NodeVolumeLimits" filter plugin', 'running "VolumeBinding" filter plugin',
        'running PreScore plugin "NodeAffinity"',
    )),
    *(f"score {plugin} differs" for plugin in (*_SCORES, _BALANCE)),
    *(f"score {plugin} is {edge} somewhere" for plugin in _SCORES for edge in (0, 100)),
    *(f"score {_BALANCE} is {how} 75" for how in ("above", "below", "just")),
    *(f"score {plugin} is left out" for plugin in _SKIPPING),
    *(f"raw score {plugin} below 0" for plugin in ("InterPodAffinity",)),
    *(f"preemption {outcome}" for outcome in (
        "nominates", "breaks a budget", "breaks none", "ties", "has one best node", "clears nominations",
        "clears its own nomination", "empties a node of several Pods", "finds victims that are terminating",
        "finds no victims on a node", "helps nowhere",
        *(f"fails on a node without its victims: {plugin}" for plugin in (
            "NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "PodTopologySpread",
            "InterPodAffinity",
        )),
        "not eligible: policy Never", "not eligible: a Pod is terminating", "not tried: PreFilter had ended",
        "may end before all nodes are tried", "finds two budgets of one namespace",
    )),
    "nomination used", "nomination refused", "nomination to a node that is gone",
    "score PodTopologySpread without constraints of the Pod",
    *(f"score VolumeBinding above 0 {where}" for where in ("among volumes", "among pools")),
    *(f"spread with {field}" for field in (
        "minDomains", "matchLabelKeys", "nodeAffinityPolicy Honor", "nodeAffinityPolicy Ignore",
        "nodeTaintsPolicy Honor", "nodeTaintsPolicy Ignore", "no selector", "a selector of all",
    )),
    *(f"affinity with {field}" for field in (
        "namespaces", "namespaceSelector", "namespaceSelector of all", "matchLabelKeys", "no selector",
    )),
    *(f"disk of {source}" for source in _SOURCES),
    *(f"profile of {point}" for point in ("multiPoint", "score", "filter", "postFilter", "preEnqueue")),
    "gated target with a nomination", "gated Pod with a nomination",
    "profile with weights", "profile with plugins left out", "profile with arguments",
    *(f"profile with arguments of {name}" for name in (
        "NodeResourcesFit", "NodeResourcesBalancedAllocation", "NodeAffinity", "InterPodAffinity", "PodTopologySpread",
        "VolumeBinding", "DefaultPreemption",
    )),
    *(f"strategy {name}" for name in ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")),
    "driver that must be there", "zones with an empty part", "score InterPodAffinity differs under another weight",
    *(f"cordoned node before a priority of {least}" for least in _HIGH),
    *(f"host users {users}" for users in ("unset, host network", "True, host network", "False, host network", "False")),
    *losses.FACTS,
)  # fmt: skip
"""Everything that a generator of this size has to reach."""


def facts_of(case: Fields) -> set[str]:
    """Return which facts an answered case reaches, FACTS and others."""
    expect = case["expect"]
    found = {f"result {expect['result']}"}
    if not case["objects"].get("nodes"):
        found.add("no nodes")
    found |= set(_reasons(expect)) | set(_scores(expect)) | set(_preemption(expect)) | set(_asked(case))
    return found | set(_wanted(case)) | set(_scored_for(case)) | set(facts_of_preemption(case)) | set(_stored(case))


def counted(cases: Iterable[Fields]) -> Counter[str]:
    """Return how many cases reach each fact; those of FACTS are there with 0, too."""
    counts = Counter(dict.fromkeys(FACTS, 0))
    for case in cases:
        counts.update(facts_of(case))
    return counts


def _plain(text: str) -> str:
    """Take names out of a reason."""
    text = _RESOURCE.sub("Insufficient …", _NAMED.sub("…", text))
    text = re.sub(r"^PVC \S+ was not created for pod \S+", "PVC … was not created for pod …", text)
    text = re.sub(r"^\S+( CSI driver is not installed)", r"…\1", text)
    text = re.sub(r"^(running … filter plugin): .*", r"\1", text)
    return _PLUGINS.sub("plugin(s) …", text)


def _reasons(expect: Fields) -> Iterator[str]:
    before = expect.get("prefilter") or {}
    if before.get("code") not in (None, "Success"):
        for text in before["reasons"]:
            yield f"reason before nodes {before['plugin']}: {_plain(text)}"
    for verdict in (expect.get("filter") or {}).values():
        for text in (verdict or {}).get("reasons", ()):
            yield f"reason {verdict['plugin']}: {_plain(text)}"
    if expect["result"] == "error":
        yield f"error {expect['error'].partition(': ')[0]}"
    told = expect.get("failure_message", "")
    if _OTHER_NODE in told and "nominated" in expect:
        yield f"reason NodeName: {_OTHER_NODE}"
    for plugin in (expect.get("preenqueue") or {}).get("plugin", "").split():
        yield f"gate {plugin}"


def _scores(expect: Fields) -> Iterator[str]:
    for plugin in expect.get("score_skipped") or ():
        yield f"score {plugin} is left out"
    for plugin, by_node in (expect.get("scores") or {}).items():
        values = set(by_node.values())
        if len(values) > 1:
            yield f"score {plugin} differs"
        for edge in (0, 100):
            if edge in values:
                yield f"score {plugin} is {edge} somewhere"
        if plugin == _BALANCE:
            signs = {(value > _UNCHANGED) - (value < _UNCHANGED) for value in values}
            yield from (f"score {plugin} is {('just', 'above', 'below')[sign]} 75" for sign in signs)
    for plugin, by_node in (expect.get("raw") or {}).items():
        if any(value < 0 for value in by_node.values()):
            yield f"raw score {plugin} below 0"


def _preemption(expect: Fields) -> Iterator[str]:
    tried = expect.get("nominated")
    if tried:
        yield f"nomination {'used' if tried['used'] else 'refused'}"
        if tried["node"] not in expect["node_order"]:
            yield "nomination to a node that is gone"
    outcome = expect.get("postfilter")
    if not outcome:
        return
    if not outcome.get("deterministic", True):
        yield "preemption may end before all nodes are tried"
    said = {
        "preemptionPolicy=Never": "not eligible: policy Never",
        "a terminating pod on the nominated node": "not eligible: a Pod is terminating",
        "not found": "not tried: PreFilter had ended",
    }
    yield from (f"preemption {fact}" for text, fact in said.items() if text in outcome["message"])
    if outcome["clears_nomination"]:
        yield "preemption clears its own nomination"
    yield from (f"preemption {fact}" for fact in _candidates(outcome))


def _candidates(outcome: Fields) -> Iterator[str]:
    for verdict in outcome["non_candidates"].values():
        if "No preemption victims found for incoming pod" in verdict["reasons"]:
            yield "finds no victims on a node"
        elif verdict["plugin"]:
            yield f"fails on a node without its victims: {verdict['plugin']}"
    if not outcome["nominated_node"]:
        if "Preemption is not helpful for scheduling" in outcome["message"]:
            yield "helps nowhere"
        return
    yield "nominates"
    chosen = outcome["candidates"][outcome["nominated_node"]]
    yield "breaks a budget" if chosen["pdb_violations"] else "breaks none"
    yield "ties" if len(outcome["acceptable_nodes"]) > 1 else "has one best node"
    if outcome["cleared_nominations"]:
        yield "clears nominations"
    if len(chosen["victims"]) > 1:
        yield "empties a node of several Pods"
    if len(outcome["deleted"]) < len(outcome["victims"]):
        yield "finds victims that are terminating"


def _wanted(case: Fields) -> Iterator[str]:
    """Yield what stands in the Pod to place, and the sources of all volumes."""
    spec = case["pod"]["spec"]
    if spec.get("schedulingGates") and case["pod"]["status"].get("nominatedNodeName"):
        yield "gated target with a nomination"
    users = f"host users {spec.get('hostUsers', 'unset')}"
    yield f"{users}, host network" if spec.get("hostNetwork") else users
    cordoned = [one for one in (case["expect"].get("filter") or {}).values() if (one or {}).get("plugin") == _CORDON]
    yield from (f"cordoned node before a priority of {one}" for one in _HIGH if cordoned and _priority(spec) >= one)
    for constraint in spec.get("topologySpreadConstraints", ()):
        yield from (f"spread with {field}" for field in ("minDomains", "matchLabelKeys") if field in constraint)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield f"spread with {field} {constraint.get(field)}"
        yield f"spread with {_selects(constraint.get('labelSelector'))}"
    for term in _terms(spec.get("affinity") or {}):
        for field in ("namespaces", "namespaceSelector", "matchLabelKeys"):
            if field in term:
                yield f"affinity with {field}{' of all' if term[field] == {} else ''}"
        yield f"affinity with {_selects(term.get('labelSelector'))}"
    held = [*spec.get("volumes", ()), *(volume["spec"] for volume in case["objects"].get("persistentvolumes", ()))]
    yield from (f"disk of {source}" for source in _SOURCES if any(source in one for one in held))


def _selects(selector: Fields | None) -> str:
    if selector is None:
        return "no selector"
    return "a selector" if selector else "a selector of all"


def _terms(affinity: Fields) -> Iterator[Fields]:
    for kind in ("podAffinity", "podAntiAffinity"):
        for terms in affinity.get(kind, {}).values():
            yield from (term.get("podAffinityTerm", term) for term in terms)


def _scored_for(case: Fields) -> Iterator[str]:
    """Yield facts of scores that the answer alone does not tell apart."""
    scores = case["expect"].get("scores") or {}
    if not case["pod"]["spec"].get("topologySpreadConstraints") and "PodTopologySpread" in scores:
        yield "score PodTopologySpread without constraints of the Pod"
    if any(scores.get("VolumeBinding", {}).values()):
        is_made = case["objects"].get("csistoragecapacities")
        yield f"score VolumeBinding above 0 among {'pools' if is_made else 'volumes'}"
    weights = [config["args"].get("hardPodAffinityWeight", 1) for config in _configs(case)]
    if len(set(scores.get("InterPodAffinity", {}).values())) > 1 and any(weight != 1 for weight in weights):
        yield "score InterPodAffinity differs under another weight"


def _asked(case: Fields) -> Iterator[str]:
    for pod in case["objects"].get("pods", ()):
        if pod["spec"].get("schedulingGates") and (pod.get("status") or {}).get("nominatedNodeName"):
            yield "gated Pod with a nomination"
    namespaces = [one["metadata"]["namespace"] for one in case["objects"].get("poddisruptionbudgets", ())]
    if len(namespaces) > len(set(namespaces)) and (case["expect"].get("postfilter") or {}).get("candidates"):
        yield "preemption finds two budgets of one namespace"
    profile = case.get("profile") or {}
    yield from (f"profile of {point}" for point in profile.get("plugins", ()))
    for plugins in profile.get("plugins", {}).values():
        yield from ("profile with weights" for _ in plugins.get("enabled", ())[:1])
        yield from ("profile with plugins left out" for _ in plugins.get("disabled", ())[:1])
    for config in _configs(case):
        yield "profile with arguments"
        yield f"profile with arguments of {config['name']}"
        if "scoringStrategy" in config["args"]:
            yield f"strategy {config['args']['scoringStrategy']['type']}"


def _stored(case: Fields) -> Iterator[str]:
    """Yield what stands in the objects that volumes lead to."""
    for volume in case["objects"].get("persistentvolumes", ()):
        labels = volume["metadata"].get("labels", {})
        if any("" in labels[key].split("__") for key in (ZONE, BETA_ZONE) if key in labels):
            yield "zones with an empty part"
    for driver in case["objects"].get("csidrivers", ()):
        if driver["spec"].get("preventPodSchedulingIfMissing"):
            yield "driver that must be there"


def _configs(case: Fields) -> Sequence[Fields]:
    found: Sequence[Fields] = (case.get("profile") or {}).get("pluginConfig", ())
    return found


def _priority(spec: Fields) -> int:
    return int(spec.get("priority", 0))
