"""What schedulers watch and nobody makes in the demo: lists and watches as on the real API server, creating refused."""

from __future__ import annotations

import pytest

from scheduler.kube.resources import KINDS
from scheduler.sim.apiserver.resources import EMPTY, ServedResource
from tests.sim.apiserver.cluster import Cluster, EmbeddedCluster

KNOWN = {f"{one.prefix}/{one.plural}": one for one in EMPTY}


def test_all_that_a_profile_may_watch_is_served() -> None:
    others = {kind.path for kind in KINDS.values() if kind.name not in ("Node", "Pod", "Namespace")}
    assert others == KNOWN.keys()


@pytest.mark.parametrize("resource", EMPTY, ids=lambda one: one.plural)
def test_a_list_says_what_it_is_a_list_of(cluster: Cluster, resource: ServedResource) -> None:
    path = f"{resource.prefix}/{resource.plural}"
    listed = cluster.api.get(path)
    assert (listed["kind"], listed["apiVersion"]) == (f"{resource.kind}List", resource.api_version)
    assert listed["metadata"]["resourceVersion"].isdecimal()
    discovered = {one["name"]: one for one in cluster.api.get(resource.prefix)["resources"]}[resource.plural]
    assert (discovered["kind"], discovered["namespaced"]) == (resource.kind, resource.is_namespaced)
    assert {"get", "list", "watch"} <= set(discovered["verbs"])
    cluster.api.watch(path, listed["metadata"]["resourceVersion"], timeoutSeconds=1).close()  # an error if refused


@pytest.mark.parametrize("resource", EMPTY, ids=lambda one: one.plural)
def test_none_can_be_made_in_the_demo(embedded: EmbeddedCluster, resource: ServedResource) -> None:
    place = f"{resource.prefix}/namespaces/default" if resource.is_namespaced else resource.prefix
    answer = embedded.ask("POST", f"{place}/{resource.plural}", {"metadata": {"name": "x"}})
    assert (answer.code, answer.reason) == (405, "MethodNotAllowed")
    assert embedded.api.get(f"{resource.prefix}/{resource.plural}")["items"] == []
