"""Pages of lists, and watches; the same on both API servers."""

from __future__ import annotations

import pytest

from tests.sim.apiserver.cluster import EVENTS, NODES, PODS, Cluster, event, plain, watched
from tests.support.manifests import Json
from tests.support.waiting import wait_until


def story(found: list[Json]) -> list[tuple[str, str]]:
    return [(line["type"], line["object"]["metadata"]["name"]) for line in found if line["type"] != "BOOKMARK"]


def test_pages_add_up_to_the_list_as_it_was(cluster: Cluster) -> None:
    for name in "edcba":
        cluster.api.create_pod(name)
    first = cluster.api.get(PODS, limit=2)
    assert first["metadata"]["remainingItemCount"] == 3
    cluster.api.delete_pod("c")
    cluster.api.create_pod("bb")
    cluster.api.patch(f"{PODS}/d", {"metadata": {"labels": {"new": "1"}}})

    pages = [first]
    while token := pages[-1]["metadata"].get("continue"):
        pages.append(cluster.api.get(PODS, limit=2, **{"continue": token}))
    items = [item for page in pages for item in page["items"]]
    assert [item["metadata"]["name"] for item in items] == list("abcde")
    assert all("labels" not in item["metadata"] for item in items)
    assert {page["metadata"]["resourceVersion"] for page in pages} == {first["metadata"]["resourceVersion"]}
    assert [len(page["items"]) for page in pages] == [2, 2, 1]

    since = watched(cluster, PODS, first["metadata"]["resourceVersion"], 4)
    assert story(since) == [("MODIFIED", "c"), ("DELETED", "c"), ("ADDED", "bb"), ("MODIFIED", "d")]


def test_a_selected_page_does_not_say_how_many_are_left(cluster: Cluster) -> None:
    for name in "abc":
        cluster.api.create_pod(name, labels={"app": "web"})
    page = cluster.api.get(PODS, limit=2, labelSelector="app=web")
    assert [item["metadata"]["name"] for item in page["items"]] == ["a", "b"]
    assert page["metadata"].keys() == {"resourceVersion", "continue"}


def test_lists_have_the_order_of_namespace_and_name_and_items_no_kind(cluster: Cluster) -> None:
    for namespace in ("a", "a-b"):
        cluster.api.create_namespace(namespace)
        cluster.api.create_pod("x", namespace=namespace)
    cluster.api.create_pod("x")
    listed = cluster.api.get("/api/v1/pods")
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert [item["metadata"]["namespace"] for item in listed["items"]] == ["a-b", "a", "default"]
    assert all("kind" not in item for item in listed["items"])


def test_a_version_from_the_future_times_out_and_a_bad_token_is_refused(cluster: Cluster) -> None:
    far = int(cluster.api.get(PODS)["metadata"]["resourceVersion"]) + 100_000
    answer = cluster.ask("GET", f"{PODS}?resourceVersion={far}")
    assert (answer.code, answer.reason) == (504, "Timeout")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert cluster.ask("GET", f"{PODS}?continue=nonsense").code == 400
    assert cluster.ask("GET", f"{PODS}?watch=1&resourceVersion=nonsense").code >= 400


def test_a_watch_tells_every_change_after_its_version_in_order(cluster: Cluster) -> None:
    cluster.api.create_pod("before")
    version = cluster.api.get(PODS)["metadata"]["resourceVersion"]
    created = cluster.api.create_pod("a")
    cluster.api.bind("a", "n1")
    cluster.api.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
    cluster.api.create_namespace("other")
    cluster.api.create_pod("elsewhere", namespace="other")

    found = list(cluster.api.watch(PODS, version, timeoutSeconds=1))
    assert story(found) == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a")]
    assert plain(found[0]["object"]) == plain(created)
    assert plain(found[2]["object"]) == plain(cluster.api.pod("a"))
    versions = [int(line["object"]["metadata"]["resourceVersion"]) for line in found]
    assert versions == sorted(set(versions))
    assert story(watched(cluster, "/api/v1/pods", version, 4)) == [*story(found), ("ADDED", "elsewhere")]


def test_with_a_selector_an_object_comes_and_goes(cluster: Cluster) -> None:
    version = cluster.api.get(PODS)["metadata"]["resourceVersion"]
    cluster.api.create_pod("a")
    cluster.api.bind("a", "n1")
    for phase in ("Running", "Succeeded"):
        cluster.api.patch(f"{PODS}/a/status", {"status": {"phase": phase}})
    last = cluster.api.pod("a")
    unfinished = watched(cluster, PODS, version, 4, fieldSelector="status.phase!=Succeeded,status.phase!=Failed")
    assert story(unfinished) == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    gone = unfinished[-1]["object"]
    assert gone["status"]["phase"] == "Running"
    assert gone["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]
    placed = watched(cluster, PODS, version, 3, fieldSelector="spec.nodeName=n1")
    assert story(placed) == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a")]


@pytest.mark.parametrize("version", ["0", ""])
def test_a_watch_without_a_version_begins_with_what_there_is(cluster: Cluster, version: str) -> None:
    cluster.api.create_pod("b")
    cluster.api.create_pod("a")
    cluster.api.patch(f"{PODS}/b", {"metadata": {"labels": {"x": "y"}}})
    found = watched(cluster, PODS, version, 2)
    assert sorted(story(found)) == [("ADDED", "a"), ("ADDED", "b")]


def test_the_state_is_sent_and_marked_when_asked_for(cluster: Cluster) -> None:
    cluster.api.create_pod("a")
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    found = watched(cluster, PODS, "", 2, **query)
    assert [line["type"] for line in found] == ["ADDED", "BOOKMARK"]
    metadata = found[1]["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(metadata["resourceVersion"]) >= int(found[0]["object"]["metadata"]["resourceVersion"])


def test_a_watch_goes_on_until_its_time_is_over(cluster: Cluster) -> None:
    version = cluster.api.create_node("n1")["metadata"]["resourceVersion"]
    watch = cluster.api.watch(NODES, version, timeoutSeconds=1)
    cluster.api.create_node("n2")
    found = iter(watch)
    assert next(found)["object"]["metadata"]["name"] == "n2"
    cluster.api.delete(f"{NODES}/n2")
    assert next(found)["type"] == "DELETED"
    assert list(found) == []


def test_what_is_forgotten_is_expired(cluster: Cluster) -> None:
    for name in "ab":
        cluster.api.post(EVENTS, event(name))
    page = cluster.api.get(EVENTS, limit=1)
    cluster.forget()

    def expired() -> list[Json]:
        found = watched(cluster, EVENTS, "1", 1)
        return found if found[0]["type"] == "ERROR" else []

    (line,) = wait_until(expired, what="an expired watch")
    status = line["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    rest = cluster.ask("GET", f"{EVENTS}?limit=1&continue={page['metadata']['continue']}")
    assert (rest.code, rest.reason) == (410, "Expired")
    version = cluster.api.get(EVENTS)["metadata"]["resourceVersion"]
    cluster.api.post(EVENTS, event("late"))
    assert story(watched(cluster, EVENTS, version, 1)) == [("ADDED", "late")]
