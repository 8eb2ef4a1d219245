"""The fields of a case, from the vector and from Vane, in one form that can be compared with `==`.

What is left out on purpose: the order of reasons, which of several best nodes is chosen or emptied, and the
wording of errors that quote Go's validation. Plugins that are not built are taken out of
what kube-scheduler answered; a case where their scores differ between nodes is not compared at all
(`Case.needs`), so taking their constant part out of the totals is exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from scheduler.decision.decide import decide
from scheduler.decision.decision import Decision, WeighedTerm
from scheduler.decision.dry_run import PreemptionDryRun
from scheduler.decision.filter_phase import Filtered, filter_phase
from scheduler.decision.score_phase import score_phase
from scheduler.errors import PluginError
from scheduler.framework.diagnosis import Diagnosis
from scheduler.framework.observer import UNOBSERVED
from scheduler.framework.profile import Profile
from scheduler.framework.status import SKIP, Code, PreFilterResult, Status
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.default_preemption.plugin import DefaultPreemption
from tests.conformance.cases import ABSENT_PLUGINS, Case

OURS = {"SignalScore", "TenantOvercommit"}
"""Plugins that kube-scheduler has not, and that skip where there are neither rules nor tenants."""

EVENT_LIMIT = 1024
THOUSANDTHS = 1000

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one case that is not equal."""

    case: str
    field: str
    expected: object
    found: object


def compare(case: Case, profile: Profile) -> tuple[Fields, list[Difference]]:
    """Return the expected fields that were compared, and those that differ."""
    expected, found = expected_fields(case), found_fields(case, profile)
    differences = [
        Difference(case.name, field, value, found.get(field, "nothing"))
        for field, value in expected.items()
        if found.get(field, "nothing") != value
    ]
    return expected, differences


def expected_fields(case: Case) -> Fields:
    """Return what kube-scheduler answered, without the plugins that are not built."""
    expect = case.expect
    fields: Fields = {"result": expect["result"], "preenqueue": _expected_preenqueue(expect)}
    if _failed_before_scores(expect):
        return fields | _expected_beside_fault(expect)
    if "prefilter" in expect:
        fields["prefilter"] = _expected_prefilter(expect["prefilter"])
    if expect.get("filter") is not None:
        fields["filter"] = {name: _expected_verdict(one) for name, one in expect["filter"].items()}
    fields["feasible"] = sorted(expect.get("feasible") or [])
    fields |= _expected_nominated(expect)
    if "scores" in expect:
        for field in ("raw", "scores", "weights"):
            fields[field] = _without_absent(expect[field])
        fields["score_skipped"] = sorted(set(expect.get("score_skipped", ())) - set(ABSENT_PLUGINS))
        fields["total"] = _expected_total(expect)
        fields["best"] = sorted(expect["best"])
    if "score_error" in expect:
        fields["score_error"] = _error_head(expect["score_error"])
    if "postfilter" in expect:
        fields |= _expected_postfilter(expect["postfilter"])
    if expect["result"] == "scheduled":
        fields["choice"] = "acceptable"
    elif "condition_reason" in expect:
        fields["condition_reason"] = expect["condition_reason"]
        fields |= _expected_texts(expect)
    return fields


def found_fields(case: Case, profile: Profile) -> Fields:
    """Return what Vane answers, by the same functions that the live loop calls."""
    pod = case.pod
    for plugin in profile.pre_enqueue:
        status = plugin.pre_enqueue(pod)
        if status is not None:
            return {
                "result": "gated",
                "preenqueue": _status(status, plugin.name),
                "feasible": [],
            }
    snapshot = case.snapshot()
    names = snapshot.nodes.names
    looking = _without_nomination(pod) if "nominated" in case.expect else pod
    try:
        filtered = filter_phase(looking, snapshot, profile, None, UNOBSERVED)
    except PluginError:
        return {"preenqueue": None, "feasible": []} | _found_result(case, pod, snapshot, profile)
    fields: Fields = {"preenqueue": None, "prefilter": _found_prefilter(pod, snapshot, profile, filtered)}
    if filtered.diagnosis.prefilter is None:
        fields["filter"] = _found_verdicts(snapshot, filtered)
    fields["feasible"] = sorted(names[row] for row in np.flatnonzero(filtered.standing).tolist())
    fields |= _found_scores(pod, snapshot, profile, filtered)
    return fields | _found_result(case, pod, snapshot, profile)


def _without_nomination(pod: PodInfo) -> PodInfo:
    """Return the Pod as it looks at all nodes alike: so the vectors tell of them, besides of its nominated one."""
    status = msgspec.structs.replace(pod.pod.status, nominated_node_name="")
    return PodInfo(msgspec.structs.replace(pod.pod, status=status))


def _failed_before_scores(expect: Fields) -> bool:
    """Return whether a plugin failed in PreFilter or Filter: the message names it, and nothing else came of it."""
    verdicts = [expect.get("prefilter"), *(expect.get("filter") or {}).values()]
    return any(one is not None and one["code"] == "Error" for one in verdicts)


def _expected_beside_fault(expect: Fields) -> Fields:
    """Return what is told besides: a Pod may have taken its nominated node before others had a fault."""
    if expect["result"] == "scheduled":
        return {"choice": "acceptable"} | _expected_nominated(expect)
    return {"condition_reason": expect["condition_reason"], "feasible": []} | _expected_texts(expect)


def _expected_preenqueue(expect: Fields) -> object:
    found = expect["preenqueue"]
    return None if found is None else {key: found[key] for key in ("code", "plugin", "reasons")}


def _expected_prefilter(found: Fields) -> Fields:
    fields = {key: found[key] for key in ("code", "plugin", "reasons")}
    fields["nodes"] = sorted(found["nodes"]) if found["nodes"] is not None else None
    if found["code"] == Code.SUCCESS.label:
        fields["skipped"] = sorted(set(found["skipped"]) - set(ABSENT_PLUGINS))
    return fields


def _expected_verdict(found: Fields | None) -> object:
    if found is None:
        return None
    # Who refuses a node outside the PreFilter set is not told there, only which plugins made the set.
    plugin = "" if found.get("excluded") else found["plugin"]
    return {"plugin": plugin, "code": found["code"], "reasons": sorted(found["reasons"])}


def _expected_nominated(expect: Fields) -> Fields:
    """Return whether the Pod's nominated node was taken, which an attempt that fails later on does not tell."""
    tried = expect.get("nominated")
    return {} if tried is None or expect["result"] == "error" else {"nominated": tried["used"]}


def _without_absent(by_plugin: Fields) -> Fields:
    return {plugin: value for plugin, value in by_plugin.items() if plugin not in ABSENT_PLUGINS}


def _expected_total(expect: Fields) -> Fields:
    scores, weights = expect["scores"], expect["weights"]
    absent = [plugin for plugin in scores if plugin in ABSENT_PLUGINS]
    return {
        node: total - sum(weights[plugin] * scores[plugin][node] for plugin in absent)
        for node, total in expect["total"].items()
    }


def _expected_texts(expect: Fields) -> Fields:
    if expect["result"] == "error":
        return {"message": _error_head(expect["failure_message"])}
    text, event = str(expect["failure_message"]), str(expect["event_message"])
    is_chance = "preemption: [" in text and event != text
    return {
        "message": in_order(text),
        **({} if is_chance else {"event": in_order(event)}),
        "unschedulable_plugins": sorted(expect.get("unschedulable_plugins") or []),
    }


def _expected_postfilter(found: Fields) -> Fields:
    """Return what PostFilter said; who says that nothing helps is DynamicResources there, which has no words for it."""
    fields: Fields = {"nomination": "acceptable" if found["nominated_node"] else ""}
    if not found["nominated_node"]:
        fields["nomination"] = "cleared" if found["clears_nomination"] else "kept"
    if found.get("candidates"):
        fields["victims"] = "those of the node"
        fields["candidates"] = found["candidates"]
    if found.get("non_candidates"):
        fields["non_candidates"] = {
            name: {"code": one["code"], "reasons": sorted(map(_without_go, one["reasons"]))}
            for name, one in found["non_candidates"].items()
        }
    return fields


def _found_postfilter(case: Case, pod: PodInfo, snapshot: Snapshot, profile: Profile, decision: Decision) -> Fields:
    """Return what PostFilter said; a node among those that tie is as good as the one that was picked."""
    expected = case.expect.get("postfilter") or {}
    node = decision.nomination
    fields: Fields = {"nomination": "kept" if node is None else node or "cleared"}
    if node:
        candidate = (expected.get("candidates") or {}).get(node, {})
        victims = [victim.key for victim in decision.victims]
        fields["victims"] = "those of the node" if victims == candidate.get("victims") else victims
        fields["nomination"] = "acceptable" if node in (expected.get("acceptable_nodes") or ()) else node
    filtered = filter_phase(pod, snapshot, profile, None, UNOBSERVED)
    preemption = next((plugin for plugin in profile.postfilter if isinstance(plugin, DefaultPreemption)), None)
    before = filtered.diagnosis.prefilter
    is_over = before is not None and before.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    if preemption is None or filtered.run is None or is_over:
        return fields
    search = preemption.search(pod, snapshot, filtered.diagnosis, PreemptionDryRun(filtered.run))
    names = snapshot.nodes.names
    fields["candidates"] = {
        names[one.row]: {"victims": [victim.key for victim in one.victims], "pdb_violations": one.n_violations}
        for one in search.candidates
    }
    verdicts = Diagnosis(snapshot.nodes.n_alive, tuple(search.refusals))
    rows = {int(row) for refusal in search.refusals for row in np.flatnonzero(refusal.mask)}
    found = {names[row]: verdicts.of_row(row) for row in rows}
    fields["non_candidates"] = {
        name: {"code": one[1].label, "reasons": sorted(map(_without_go, one[2]))}
        for name, one in found.items()
        if one is not None
    }
    return (
        fields
        if expected.get("deterministic", True)
        else fields | _with_untried(fields, _expected_postfilter(expected))
    )


def _with_untried(found: Fields, expected: Fields) -> Fields:
    """Return what was found of nodes, and of those that were not tried what is expected: not all have to be."""
    fields = ("candidates", "non_candidates")
    untried = expected.get("candidates", {}).keys() - found["candidates"].keys()
    untried |= expected.get("non_candidates", {}).keys() - found["non_candidates"].keys()
    return {
        field: found[field] | {name: one for name, one in expected.get(field, {}).items() if name in untried}
        for field in fields
    }


def _told(case: Case, decision: Decision) -> str:
    """Return the text of the condition, with the node that kube-scheduler picked where ours ties with it."""
    expected, text = case.expect.get("postfilter") or {}, decision.diagnosis.message()
    if decision.nomination not in (expected.get("acceptable_nodes") or ()):
        return text
    ours = f"on node {decision.nomination}, preempting {len(decision.victims)} victims"
    theirs = f"on node {expected['nominated_node']}, preempting {len(expected['victims'])} victims"
    return text.replace(ours, theirs)


def in_order(text: str) -> str:
    """Return a text with preemption's faults sorted: kube-scheduler's threads tell them as they come to them.

    Where the event's note is cut, which of them it holds is chance.
    """
    head, found, faults = _without_go(text).partition("preemption: [")
    return f"{head}{found}{', '.join(sorted(faults[:-1].split(', ')))}]" if found else head


def _without_go(fault: str) -> str:
    """Return a fault without what kube-scheduler's libraries say of a disk that no driver took over."""
    return re.sub(r"(from inline to csi|could not translate pv): [^,\]]*", r"\1", fault)


def _error_head(text: str) -> str:
    return text.partition(": ")[0]


def _event_note(text: str) -> str:
    """Cut as kube-scheduler cuts event notes: 1,024 bytes that end in ` ...`."""
    raw = text.encode()
    return text if len(raw) <= EVENT_LIMIT else raw[: EVENT_LIMIT - 4].decode(errors="ignore") + " ..."


def _status(status: Status, plugin: str) -> Fields:
    return {"code": status.code.label, "plugin": plugin, "reasons": list(status.reasons)}


def _found_prefilter(pod: PodInfo, snapshot: Snapshot, profile: Profile, filtered: Filtered) -> Fields:
    diagnosis = filtered.diagnosis
    if diagnosis.prefilter is not None:
        by = diagnosis.prefilter_plugins
        # Of several whose nodes have none in common, kube-scheduler names none as the one that refused.
        fields = _status(diagnosis.prefilter, by[0] if len(by) == 1 else "")
        return fields | {"nodes": None if len(by) == 1 else []}
    skipped: list[str] = []
    allowed: frozenset[str] | None = None
    for plugin in profile.prefilter:
        result = plugin.prefilter(pod, snapshot)
        if not isinstance(result, PreFilterResult):
            skipped += {plugin.name} - OURS
        elif result.node_names is not None:
            allowed = result.node_names if allowed is None else allowed & result.node_names
    nodes = None if allowed is None else sorted(allowed)
    return {"code": "Success", "plugin": "", "reasons": [], "nodes": nodes, "skipped": sorted(skipped)}


def _found_verdicts(snapshot: Snapshot, filtered: Filtered) -> Fields:
    nodes = snapshot.nodes
    return {nodes.names[row]: _found_verdict(filtered, row) for row in np.flatnonzero(nodes.alive).tolist()}


def _found_verdict(filtered: Filtered, row: int) -> object:
    verdict = filtered.diagnosis.of_row(row)
    if verdict is None:
        return None
    plugin, code, reasons = verdict
    excluded = any(reason.startswith("node(s) didn't satisfy plugin") for reason in reasons)
    return {"plugin": "" if excluded else plugin, "code": code.label, "reasons": sorted(reasons)}


def _found_scores(pod: PodInfo, snapshot: Snapshot, profile: Profile, filtered: Filtered) -> Fields:
    """Score whoever is feasible, also a single node: the vectors tell those scores, too."""
    feasible = np.flatnonzero(filtered.standing)
    if len(feasible) == 0:
        return {}
    try:
        terms, total = score_phase(pod, snapshot, profile, feasible, filtered.states, UNOBSERVED)
    except PluginError as error:
        return {"score_error": _error_head(str(error))}
    names = [snapshot.nodes.names[row] for row in feasible.tolist()]
    skipped = [plugin.name for plugin in profile.prescore if plugin.prescore(pod, snapshot, feasible) is SKIP]
    return {
        "raw": {term.plugin: dict(zip(names, term.raw.tolist(), strict=True)) for term in terms},
        "scores": {term.plugin: dict(zip(names, term.values.tolist(), strict=True)) for term in terms},
        "weights": {term.plugin: term.weight for term in terms},
        "score_skipped": sorted(set(skipped) - OURS),
        "total": {name: int(one) / THOUSANDTHS for name, one in zip(names, _checked_total(terms, total), strict=True)},
        "best": sorted(name for name, one in zip(names, total, strict=True) if one == total.max()),
    }


def _checked_total(terms: tuple[WeighedTerm, ...], total: Any) -> Any:
    assert (sum(term.contribution for term in terms) == total).all()
    return total


def _found_result(case: Case, pod: PodInfo, snapshot: Snapshot, profile: Profile) -> Fields:
    try:
        decision = decide(pod, snapshot, profile)
    except PluginError as error:
        return {"result": "error", "condition_reason": "SchedulerError", "message": _error_head(str(error))}
    if decision.is_scheduled:
        acceptable = decision.node_name in case.expect.get("acceptable", ())
        choice = "acceptable" if acceptable else decision.node_name
        return {"result": "scheduled", "choice": choice, "nominated": decision.nominated}
    text = _told(case, decision)
    return _found_postfilter(case, pod, snapshot, profile, decision) | {
        "result": "unschedulable",
        "nominated": False,
        "condition_reason": "Unschedulable",
        "message": in_order(text),
        "event": in_order(_event_note(text)),
        "unschedulable_plugins": sorted(decision.diagnosis.plugins),
    }
