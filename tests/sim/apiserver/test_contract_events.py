"""Events in both groups, and Leases; the same on both API servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sim.apiserver.cluster import EVENTS, LEASES, NEW_EVENTS, Cluster, event, new_event, plain, timeless, watched
from tests.support.kubeapi import STRATEGIC_MERGE_PATCH
from tests.support.manifests import Json

ABOUT = {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u", "apiVersion": "v1"}


def test_an_event_of_the_new_group_is_read_in_both(cluster: Cluster) -> None:
    created = cluster.api.post(NEW_EVENTS, new_event("e"))
    metadata = {"name": "e", "namespace": "default"}
    same = {
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingInstance": "vane-host",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "metadata": metadata,
    }
    note = "Successfully assigned default/p to n1"
    assert timeless(created) == {
        **same,
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "regarding": ABOUT,
        "note": note,
        "reportingController": "vane",
        "deprecatedSource": {},
        "deprecatedFirstTimestamp": None,
        "deprecatedLastTimestamp": None,
    }
    assert timeless(cluster.api.get(f"{EVENTS}/e")) == {
        **same,
        "kind": "Event",
        "apiVersion": "v1",
        "involvedObject": ABOUT,
        "message": note,
        "reportingComponent": "vane",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
    }


def test_an_event_of_the_old_group_is_read_in_both(cluster: Cluster) -> None:
    times = {"firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:05:05Z"}
    cluster.api.post(EVENTS, event("e", count=3, source={"component": "c", "host": "h"}, **times))
    shown = timeless(cluster.api.get(f"{NEW_EVENTS}/e"))
    assert shown == {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "e", "namespace": "default"},
        "eventTime": None,
        "reason": "R",
        "regarding": ABOUT,
        "note": "M",
        "type": "Normal",
        "deprecatedSource": {"component": "c", "host": "h"},
        "deprecatedFirstTimestamp": times["firstTimestamp"],
        "deprecatedLastTimestamp": times["lastTimestamp"],
        "deprecatedCount": 3,
    }


def test_by_the_new_group_a_series_is_patched_into_an_event_and_nothing_else(cluster: Cluster) -> None:
    cluster.api.post(NEW_EVENTS, new_event("e"))
    series = {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000006Z"}
    cluster.api.patch(f"{NEW_EVENTS}/e", {"series": series}, STRATEGIC_MERGE_PATCH)
    assert cluster.api.get(f"{EVENTS}/e")["series"] == series
    refused = cluster.ask("PATCH", f"{NEW_EVENTS}/e", {"note": "other"}, content_type=STRATEGIC_MERGE_PATCH)
    assert refused.code == 422
    assert refused.message == 'Event "e" is invalid: message: Invalid value: "other": field is immutable'
    by_core = cluster.api.patch(f"{EVENTS}/e", {"message": "other"}, STRATEGIC_MERGE_PATCH)
    assert by_core["message"] == cluster.api.get(f"{NEW_EVENTS}/e")["note"] == "other"
    missing = cluster.ask("PATCH", f"{NEW_EVENTS}/none", {"series": series}, content_type=STRATEGIC_MERGE_PATCH)
    assert missing.code == 404


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"eventTime": None}, ["eventTime"]),
        ({"type": "Strange"}, ["type"]),
        ({"reason": ""}, ["reason"]),
        ({"action": ""}, ["action"]),
        ({"note": "x" * 1025}, ["message"]),
    ],
)
def test_an_impossible_event_is_refused(cluster: Cluster, fields: Json, wrong: list[str]) -> None:
    answer = cluster.ask("POST", NEW_EVENTS, new_event("e", **fields))
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == wrong


def test_events_are_selected_by_what_they_are_about(cluster: Cluster) -> None:
    cluster.api.post(NEW_EVENTS, new_event("placed"))
    cluster.api.post(EVENTS, event("warned", type="Warning", source={"component": "kubelet"}))
    other = {"kind": "Node", "name": "n1", "uid": "n1"}
    cluster.api.post(EVENTS, {**event("node"), "involvedObject": other})

    def names(path: str, selector: str) -> set[str]:
        return {one["metadata"]["name"] for one in cluster.api.list(path, fieldSelector=selector)}

    assert names(EVENTS, "involvedObject.name=p,involvedObject.uid=u") == {"placed", "warned"}
    assert names(EVENTS, "involvedObject.kind=Node,involvedObject.namespace=") == {"node"}
    assert names(EVENTS, "type=Warning,reason=R") == {"warned"}
    assert names(EVENTS, "source=kubelet") == {"warned"}
    assert names(EVENTS, "reportingComponent=vane") == {"placed"}
    assert names(NEW_EVENTS, "regarding.name=p,reason=Scheduled") == {"placed"}


def test_a_watch_of_events_shows_each_group_its_own_names(cluster: Cluster) -> None:
    version = cluster.api.get(EVENTS)["metadata"]["resourceVersion"]
    cluster.api.post(NEW_EVENTS, new_event("e"))
    for path, field in ((EVENTS, "message"), (NEW_EVENTS, "note")):
        (line,) = watched(cluster, path, version, 1)
        assert line["type"] == "ADDED"
        assert line["object"][field] == "Successfully assigned default/p to n1"


def lease(**fields: Any) -> Json:
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z"}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "vane", "namespace": "default"},
        "spec": spec | fields,
    }


def test_a_lease_is_taken_over_by_its_version(cluster: Cluster) -> None:
    first = cluster.api.post(LEASES, lease())
    assert timeless(first) == lease()
    assert cluster.ask("POST", LEASES, lease()).reason == "AlreadyExists"
    first["spec"]["holderIdentity"] = "other"
    second = cluster.api.put(f"{LEASES}/vane", first)
    assert second["spec"]["holderIdentity"] == "other"
    assert plain(cluster.api.get(f"{LEASES}/vane")) == plain(second)
    late = cluster.ask("PUT", f"{LEASES}/vane", first)
    assert (late.code, late.reason) == (409, "Conflict")
    assert late.message.startswith('Operation cannot be fulfilled on leases.coordination.k8s.io "vane": the object has')
    blind = cluster.ask("PUT", f"{LEASES}/vane", lease())
    assert (blind.code, blind.body["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")


def test_a_lease_is_watched_by_name(cluster: Cluster) -> None:
    version = cluster.api.get(LEASES)["metadata"]["resourceVersion"]
    created = cluster.api.post(LEASES, lease())
    cluster.api.post(LEASES, {**lease(), "metadata": {"name": "another"}})
    cluster.api.put(f"{LEASES}/vane", {**created, "spec": {**created["spec"], "holderIdentity": ""}})
    cluster.api.delete(f"{LEASES}/vane")
    found = watched(cluster, LEASES, version, 3, fieldSelector="metadata.name=vane")
    holders = [(line["type"], line["object"]["spec"].get("holderIdentity")) for line in found]
    assert holders == [("ADDED", "me"), ("MODIFIED", ""), ("DELETED", "")]


def test_put_creates_a_lease_and_an_impossible_one_is_refused(cluster: Cluster) -> None:
    assert cluster.ask("PUT", f"{LEASES}/vane", lease()).code == 201
    answer = cluster.ask("POST", LEASES, {**lease(leaseDurationSeconds=0), "metadata": {"name": "b"}})
    assert answer.message == (
        'Lease.coordination.k8s.io "b" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0'
    )
