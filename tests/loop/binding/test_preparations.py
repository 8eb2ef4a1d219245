"""From Reserve to Bind with claims that wait for a node: what is assumed, written, waited for and taken back."""

from __future__ import annotations

import gc
import json
from typing import Any, Literal

import msgspec
import pytest

from scheduler.framework.events import ClusterEvent
from scheduler.kube.binder.messages import PatchResult
from scheduler.kube.watch_stream import Changed, Replaced
from scheduler.loop.messages import BinderSaid
from scheduler.model.catalog import CatalogObject
from scheduler.model.volumes import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim
from tests.builders import make_node, make_pod
from tests.loop.harness import Harness
from tests.plugins.volumes.objects import claim, pod_claiming, storage_class, term, volume

STATIC = storage_class("local", provisioner="kubernetes.io/no-provisioner")
MADE = storage_class("made")
HOST = "kubernetes.io/hostname"
BINDING = 'running PreBind plugin "VolumeBinding": '
CONFLICT = 'Operation cannot be fulfilled on persistentvolumes "pv-a": the object has been modified'


def local(name: str, node: str, version: str = "1", **more: Any) -> PersistentVolume:
    return volume(
        name, storage_class="local", affinity=[term(HOST, node)], metadata={"resourceVersion": version}, **more
    )


def waiting(name: str, storage_class: str = "local", version: str = "1", **more: Any) -> PersistentVolumeClaim:
    return claim(name, storage_class=storage_class, metadata={"resourceVersion": version}, **more)


class World:
    """Nodes a and b, each with a local volume; claims of both kinds."""

    def __init__(self) -> None:
        self.harness = Harness()
        self.catalog = self.harness.world.cache.state.catalog
        self.harness.list_nodes(make_node("a"), make_node("b"))
        self.harness.list_pods()
        self.show(STATIC, MADE, local("pv-a", "a"), waiting("data"), waiting("more"), waiting("made", "made"))

    def show(self, *items: CatalogObject) -> None:
        for item in items:
            self.harness.loop.apply(Changed(type(item).__name__, "MODIFIED", item))

    def start(self, *claims: str, name: str = "web") -> None:
        """Have a Pod decided that has these claims, and the nomination written."""
        self.harness.see(pod_claiming(*claims, name=name))
        self.harness.run(1)
        self.harness.settle_patches()

    def wrote(self) -> list[tuple[str, Any]]:
        return [(request.path, json.loads(request.body)) for request in self.harness.binder.writes]

    def answer(self, version: str, outcome: Literal["patched", "failed"] = "patched", message: str = "") -> None:
        """Have the API server answer the one write that is under way."""
        (request,), self.harness.binder.writes = self.harness.binder.writes, []
        result = PatchResult(number=request.number, outcome=outcome, message=message, resource_version=version)
        self.harness.loop.apply(BinderSaid([result]))

    def tick(self, seconds: float = 0.0) -> None:
        self.harness.now_s += seconds
        self.harness.binding.tick()

    def failure(self) -> str:
        (report,) = self.harness.binder.reports
        assert (report.reason, report.nominated_node_name) == ("SchedulerError", "")
        assert not self.harness.world.cache.is_placed(report.pod.uid)
        assert self.harness.world.queue.place_of(report.pod.uid) == "error-backoff"
        return report.message

    def contents(self) -> bytes:
        """Return all volumes and claims as decisions see them, in their order."""
        return b"\n".join(
            msgspec.json.encode(item)
            for kind in (PersistentVolume, PersistentVolumeClaim)
            for item in self.catalog.all(kind)
        )


@pytest.fixture
def world() -> World:
    return World()


def bound_volume(version: str = "3") -> PersistentVolume:
    reference = {"namespace": "default", "name": "data", "uid": "uid-data"}
    return local("pv-a", "a", version, claimRef=reference, phase="Bound")


def bound_claim(name: str = "data", to: str = "pv-a", version: str = "3", **annotations: str) -> PersistentVolumeClaim:
    return claim(name, volume=to, storage_class="local", metadata={"resourceVersion": version}, annotations=annotations)


def bound_provision(node: str = "a", to: str = "pv-new", version: str = "9") -> PersistentVolumeClaim:
    return claim(
        "made",
        volume=to,
        storage_class="made",
        metadata={
            "resourceVersion": version,
            "annotations": {SELECTED_NODE: node, "pv.kubernetes.io/bind-completed": "yes"},
        },
    )


def test_a_claim_gets_the_volume_of_its_node_and_then_the_pod_is_bound(world: World) -> None:
    world.harness.see(pod_claiming("data"))
    world.harness.run(1)

    (nomination,) = world.harness.binder.patches
    assert (nomination.nominated_node_name, nomination.annotations) == ("a", {})
    assert world.wrote() == []
    world.harness.settle_patches("failed")
    assert world.wrote() == [
        (
            "/api/v1/persistentvolumes/pv-a",
            {
                "metadata": {
                    "resourceVersion": "1",
                    "annotations": {"pv.kubernetes.io/bound-by-controller": "yes"},
                },
                "spec": {
                    "claimRef": {
                        "apiVersion": "v1",
                        "kind": "PersistentVolumeClaim",
                        "namespace": "default",
                        "name": "data",
                        "uid": "uid-data",
                        "resourceVersion": "1",
                    }
                },
            },
        )
    ]
    world.answer("2")
    # The claim is bound, but the volume as it was written has not been seen yet.
    world.show(bound_claim())
    world.tick()
    assert world.harness.placed() == {}
    world.show(bound_volume())
    world.tick()

    assert world.harness.placed() == {"pod": "a"}
    world.harness.settle()
    assert len(world.harness.binding) == 0
    assert len(world.harness.world.cache.assumed) == 0


def test_others_see_at_once_what_is_taken(world: World) -> None:
    world.start("data", name="first")
    before = world.harness.binder.reports[:]
    world.start("more", name="second")

    assert before == []
    (report,) = world.harness.binder.reports
    assert report.message == (
        "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. preemption: 0/2 nodes "
        "are available: 2 Preemption is not helpful for scheduling."
    )


def test_a_claim_without_a_volume_is_given_its_node_and_one_is_awaited(world: World) -> None:
    world.start("made")

    ((path, body),) = world.wrote()
    assert path == "/api/v1/namespaces/default/persistentvolumeclaims/made"
    node = body["metadata"]["annotations"][SELECTED_NODE]
    assert body == {"metadata": {"resourceVersion": "1", "annotations": {SELECTED_NODE: node}}}
    assumed = world.catalog.get(PersistentVolumeClaim, "made", "default")
    assert assumed is not None
    assert assumed.metadata.annotations == {SELECTED_NODE: node}
    world.answer("5")
    world.show(bound_provision(node))
    world.tick()
    assert world.harness.placed() == {}
    world.show(volume("pv-new", affinity=[term(HOST, node)], made_for="made"))
    world.tick()

    assert world.harness.placed() == {"web": node}


def test_a_volume_that_comes_unannounced_is_seen_within_a_second(world: World) -> None:
    world.start("made")
    world.answer("5")
    world.show(bound_provision(node_of(world)))
    world.tick()
    world.harness.world.cache.state.set_object(volume("pv-new"))
    assert world.harness.binding.next_deadline() == world.harness.now_s + 1.0
    world.tick(1.0)

    assert list(world.harness.placed()) == ["web"]


def selected(**annotations: str) -> PersistentVolumeClaim:
    return claim("made", storage_class="made", metadata={"resourceVersion": "8", "annotations": annotations})


def node_of(world: World) -> str:
    placed = world.harness.world.cache.get("default/web")
    assert placed is not None
    return placed.node_name


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        pytest.param({}, 'selectedNode annotation reset for PVC "made"', id="none left"),
        pytest.param({"other": "x"}, 'provisioning failed for PVC "made"', id="removed"),
        pytest.param({SELECTED_NODE: "elsewhere"}, 'provisioning failed for PVC "made"', id="another"),
    ],
)
def test_a_provisioner_that_gives_up_sends_the_pod_back(
    world: World, annotations: dict[str, str], message: str
) -> None:
    world.start("made")
    world.answer("5")
    world.show(selected(**annotations))
    world.tick()

    assert world.failure() == f"{BINDING}binding volumes: {message}"


def test_a_volume_made_elsewhere_sends_the_pod_back(world: World) -> None:
    world.start("made")
    node = node_of(world)
    world.answer("5")
    world.show(volume("pv-new", affinity=[term(HOST, "elsewhere")]), bound_provision(node))
    world.tick()

    what = f'pv "pv-new" node affinity doesn\'t match node "{node}"'
    assert world.failure() == f"{BINDING}binding volumes: {what}: no matching NodeSelectorTerms"


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("PersistentVolumeClaim", "data", 'failed to check binding: persistentvolumeclaims "default/data" not found'),
        ("PersistentVolume", "pv-a", 'failed to check binding: persistentvolumes "pv-a" not found'),
        ("Node", "a", 'failed to get node "a": node "a" not found'),
    ],
)
def test_what_is_deleted_in_the_wait_sends_the_pod_back(world: World, kind: str, name: str, message: str) -> None:
    world.start("data")
    world.answer("2")
    world.show(bound_volume("2"))
    gone: dict[str, Any] = {"PersistentVolumeClaim": waiting(name), "PersistentVolume": local(name, "a"), "Node": None}
    item = gone[kind] or make_node(name)
    world.harness.loop.apply(Changed(kind, "DELETED", item))
    world.tick()

    assert world.failure() == f"{BINDING}binding volumes: {message}"


def test_a_volume_that_is_let_go_sends_the_pod_back(world: World) -> None:
    world.start("data")
    world.answer("2")
    world.show(local("pv-a", "a", "4"))
    world.tick()

    assert world.failure() == f'{BINDING}binding volumes: ClaimRef got reset for pv "pv-a"'


def test_the_wait_ends_after_ten_minutes(world: World) -> None:
    world.start("data")
    world.answer("2")
    world.tick(599.5)
    assert len(world.harness.binding) == 1
    assert world.harness.binding.n_under_way == 0
    world.tick(0.5)

    assert world.failure() == f"{BINDING}binding volumes: context deadline exceeded"


@pytest.mark.parametrize("at", ["PreBind", "Bind"])
def test_no_event_is_kept_for_a_pod_that_is_being_bound(world: World, at: str) -> None:
    """A provisioner may take ten minutes, and each change to a node would be kept with both versions of it."""
    before = n_events()
    if at == "PreBind":
        world.start("made")
        world.answer("2")
    else:
        world.harness.see(make_pod("web"))
        world.harness.run(1)
    assert len(world.harness.binding) == 1
    for number in range(3_000):
        world.harness.loop.apply(Changed("Node", "MODIFIED", make_node("b", pods=200 + number)))
        if number % 10 == 0:
            world.harness.see(make_pod("web", version=str(number), labels={"at": str(number)}), "MODIFIED")

    assert n_events() == before


def n_events() -> int:
    """Return how many cluster events something still refers to."""
    return sum(isinstance(one, ClusterEvent) for one in gc.get_objects())


def test_a_conflict_leaves_everything_as_it_was(world: World) -> None:
    before = world.contents()
    world.start("data", "made")
    assert world.contents() != before
    world.answer("", "failed", CONFLICT)

    assert world.failure() == f"{BINDING}{CONFLICT}"
    assert world.contents() == before
    assert len(world.harness.world.cache.assumed) == 0
    page = world.harness.metrics_page()
    assert 'scheduler_volume_scheduling_stage_error_total{operation="bind"} 1.0' in page


def test_what_is_written_stays_when_a_later_write_fails(world: World) -> None:
    world.start("data", "made")
    world.answer("2")
    world.answer("", "failed", "no")

    assert world.failure() == f"{BINDING}no"
    taken, free = (
        world.catalog.get(PersistentVolume, "pv-a"),
        world.catalog.get(PersistentVolumeClaim, "made", "default"),
    )
    assert taken is not None
    assert free is not None
    assert taken.spec.claim_ref is not None
    assert free.metadata.annotations == {}


def test_one_that_was_refused_for_what_is_given_back_comes_again(world: World) -> None:
    world.start("data", name="first")
    world.start("more", name="second")
    assert world.harness.world.queue.place_of("default/second") == "unschedulable"
    world.answer("", "failed", CONFLICT)

    assert world.harness.world.queue.place_of("default/second") in ("active", "backoff")


def test_a_pod_deleted_in_the_wait_gives_back_what_is_not_written(world: World) -> None:
    before = world.contents()
    world.start("data")
    world.harness.see(pod_claiming("data", name="web"), "DELETED")

    assert world.contents() == before
    assert len(world.harness.binding) == 0


def test_a_list_that_shows_nothing_new_ends_no_assumption(world: World) -> None:
    world.start("data")
    after = world.contents()
    world.harness.loop.apply(Replaced("PersistentVolume", [local("pv-a", "a")]))
    assert world.contents() == after

    world.harness.loop.apply(Replaced("PersistentVolume", []))
    assert world.catalog.get(PersistentVolume, "pv-a") is None
    assert len(world.harness.world.cache.assumed) == 0


def test_a_new_leader_goes_on_where_the_old_one_ended(world: World) -> None:
    written = claim(
        "made", storage_class="made", metadata={"resourceVersion": "8", "annotations": {SELECTED_NODE: "b"}}
    )
    reference = {"namespace": "default", "name": "data", "uid": "uid-data"}
    world.show(written, local("pv-b", "b", "7", claimRef=reference))
    world.start("data", "made")

    assert node_of(world) == "b"
    assert world.wrote() == []
    world.show(bound_claim(to="pv-b"), volume("pv-new"), bound_provision("b"))
    world.tick()
    assert world.harness.placed() == {"web": "b"}


def test_a_pod_that_preemption_sends_away_is_tried_again(world: World) -> None:
    world.start("data")
    world.answer("2")
    assert world.harness.binding.preempted("default/web", "DefaultPreemption")

    assert world.failure() == f"{BINDING}preempted by DefaultPreemption"


def test_claims_that_are_bound_need_nothing(world: World) -> None:
    world.show(bound_volume(), bound_claim())
    world.harness.see(pod_claiming("data"))
    world.harness.see(make_pod("plain"))
    world.harness.run()

    assert set(world.harness.placed()) == {"pod", "plain"}
    assert (world.harness.binder.patches, world.harness.binder.writes) == ([], [])
