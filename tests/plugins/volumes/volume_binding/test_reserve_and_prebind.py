"""What VolumeBinding makes of volumes and claims once a node is chosen, what it writes, and when that is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scheduler.errors import NotComingError
from scheduler.framework.instructions import PatchObject, WaitFor
from scheduler.framework.intree_args import VolumeBindingArgs
from scheduler.framework.status import PreFilterResult, Reserved
from scheduler.model.catalog import CatalogObject, key_of
from scheduler.model.objects import Node
from scheduler.model.snapshot import Snapshot
from scheduler.model.volumes import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim
from scheduler.plugins.volumes.volume_binding.binding_plan import PodVolumes
from scheduler.plugins.volumes.volume_binding.plugin import VolumeBinding
from scheduler.plugins.volumes.volume_binding.reserve_and_prebind import AssumedVolumes, choose, still_awaited, writes
from tests.builders import NO_SIGNALS, cluster_of, make_node, make_pod
from tests.plugins.volumes.objects import (
    ZONE,
    claim,
    csi_node,
    pod_claiming,
    storage_class,
    term,
    volume,
)

BY_CONTROLLER = {"pv.kubernetes.io/bound-by-controller": "yes"}
OURS = {"namespace": "default", "name": "c", "uid": "uid-c"}
NODE = make_node("n", labels={ZONE: "1"})
POD = pod_claiming("c")


def named(uid: str = "uid-c", name: str = "c") -> dict[str, str]:
    return {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name, "uid": uid}


class Shown:
    """What the API server has shown, in memory."""

    def __init__(self, *items: CatalogObject, nodes: tuple[Node, ...] = (NODE,)) -> None:
        self._items = {key_of(item): item for item in items}
        self._nodes = {node.metadata.name: node for node in nodes}

    def node(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def get(self, kind: Any, name: str, namespace: str = "") -> Any:
        return self._items.get((kind.__name__, namespace, name))


@pytest.mark.parametrize(
    ("found", "annotations"),
    [
        pytest.param(volume("pv"), BY_CONTROLLER, id="free"),
        pytest.param(volume("pv", claimRef=named(uid="")), {}, id="made for it by a user"),
        pytest.param(volume("pv", claimRef=named(uid="", name="other")), BY_CONTROLLER, id="made for another"),
        pytest.param(volume("pv", claimRef=named(uid="earlier")), BY_CONTROLLER, id="its namesake's"),
        pytest.param(volume("pv", metadata={"annotations": BY_CONTROLLER}), {}, id="annotated already"),
    ],
)
def test_a_volume_is_bound_to_the_claim(found: PersistentVolume, annotations: Mapping[str, str]) -> None:
    wanted = claim("c", metadata={"resourceVersion": "5"})
    chosen = choose(PodVolumes([(wanted, found)], []), "n")

    ((_, item),) = chosen.static
    assert chosen.changed == (item,)
    assert item.spec.claim_ref is not None
    assert (item.spec.claim_ref.name, item.spec.claim_ref.uid) == ("c", "uid-c")
    assert item.spec.capacity == found.spec.capacity
    assert (item.metadata.annotations or {}) == {**(found.metadata.annotations or {}), **annotations}
    (patch,) = writes(chosen)
    assert (patch.kind, patch.namespace, patch.name) == ("PersistentVolume", "", "pv")
    assert patch.spec["claimRef"] == {"apiVersion": "v1", **named(), "resourceVersion": "5"}


def test_what_is_so_already_is_not_written() -> None:
    mine = volume("pv", claimRef=OURS)
    selected = claim("d", annotations={SELECTED_NODE: "n"})
    chosen = choose(PodVolumes([(claim("c"), mine)], [selected]), "n")

    assert chosen == AssumedVolumes(((claim("c"), mine),), (selected,), ())
    assert list(writes(chosen)) == []


def test_volumes_are_written_before_claims() -> None:
    kept = claim("d", annotations={"kept": "yes", SELECTED_NODE: "earlier"}, metadata={"resourceVersion": "7"})
    chosen = choose(PodVolumes([(claim("c"), volume("pv"))], [kept]), "n")

    first, second = writes(chosen)
    assert first.kind == "PersistentVolume"
    assert second == PatchObject("PersistentVolumeClaim", "default", "d", "7", {SELECTED_NODE: "n"}, {})
    (item,) = chosen.provision
    assert item.metadata.annotations == {**(kept.metadata.annotations or {}), SELECTED_NODE: "n"}


@pytest.mark.parametrize(
    ("shown", "awaited"),
    [
        pytest.param((volume("pv", claimRef=OURS), claim("c", volume="pv")), set(), id="bound"),
        pytest.param((volume("pv", claimRef=OURS), claim("c")), {"pv", "c"}, id="not bound"),
        pytest.param(
            (volume("pv", claimRef=OURS), claim("c", volumeName="pv")), {"pv", "c"}, id="bound, not completed"
        ),
    ],
)
def test_a_claim_and_its_volume_are_awaited(shown: tuple[CatalogObject, ...], awaited: set[str]) -> None:
    chosen = choose(PodVolumes([(claim("c"), volume("pv"))], []), "n")
    assert {name for _, _, name in still_awaited(chosen, "n", Shown(*shown))} == awaited


def selected(to: str = "") -> PersistentVolumeClaim:
    return claim("c", volume=to, annotations={SELECTED_NODE: "n"})


@pytest.mark.parametrize(
    ("shown", "awaited"),
    [
        pytest.param((selected(),), {"c"}, id="nothing yet"),
        pytest.param((selected("new"),), {"c", "new"}, id="volume not seen yet"),
        pytest.param((selected("new"), volume("new", affinity=[term(ZONE, "1")])), set(), id="done"),
    ],
)
def test_a_volume_to_be_made_is_awaited(shown: tuple[CatalogObject, ...], awaited: set[str]) -> None:
    chosen = choose(PodVolumes([], [claim("c")]), "n")
    assert {name for _, _, name in still_awaited(chosen, "n", Shown(*shown))} == awaited


MIGRATED = csi_node("n", migrated="kubernetes.io/aws-ebs")
NOT_THERE = 'pv "new" node affinity doesn\'t match node "n": no matching NodeSelectorTerms'


@pytest.mark.parametrize(
    ("affinity", "shown", "problem"),
    [
        pytest.param([term(ZONE, "2")], (), NOT_THERE, id="another zone"),
        pytest.param([term(ZONE, "1", operator="NotIn")], (), NOT_THERE, id="not in this zone"),
        pytest.param([], (), NOT_THERE, id="nowhere"),
        pytest.param([term(ZONE, "2"), term(ZONE, "1")], (), "", id="one of two"),
        pytest.param(None, (), "", id="everywhere"),
        pytest.param([term(ZONE, "1")], (MIGRATED,), NOT_THERE, id="the driver's own label"),
    ],
)
def test_a_volume_must_be_within_reach(affinity: Any, shown: tuple[CatalogObject, ...], problem: str) -> None:
    made = volume("new", affinity=affinity, awsElasticBlockStore={"volumeID": "vol-1"})
    chosen = choose(PodVolumes([], [claim("c")]), "n")
    api = Shown(selected("new"), made, *shown)
    if not problem:
        assert still_awaited(chosen, "n", api) == set()
        return
    with pytest.raises(NotComingError) as caught:
        still_awaited(chosen, "n", api)
    assert str(caught.value) == f"binding volumes: {problem}"


def test_a_migrated_volume_that_cannot_be_told_ends_the_wait() -> None:
    mine = volume("pv", claimRef=OURS, awsElasticBlockStore={"volumeID": "aws://zone/disk"})
    chosen = choose(PodVolumes([(claim("c"), mine)], []), "n")
    api = Shown(mine, claim("c", volume="pv"), MIGRATED)
    with pytest.raises(NotComingError, match="binding volumes: failed to translate pv to csi: could not translate pv"):
        still_awaited(chosen, "n", api)


def test_the_points_of_the_plugin() -> None:
    plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=7))
    objects = (claim("c", storage_class="wait"), storage_class())
    snapshot = Snapshot(cluster_of([NODE], (), [plugin], objects), NO_SIGNALS, 0.0)
    result = plugin.prefilter(POD, snapshot)
    assert isinstance(result, PreFilterResult)
    state: Any = result.state
    assert plugin.prebind(state, POD, "n") is None

    reserved = plugin.reserve(state, POD, "n")

    assert isinstance(reserved, Reserved)
    (item,) = reserved.objects
    assert item.metadata.annotations == {SELECTED_NODE: "n"}
    chosen: Any = reserved.state
    steps = plugin.prebind(chosen, POD, "n")
    assert steps is not None
    assert steps[-1] == WaitFor(7.0, "binding volumes: context deadline exceeded")
    assert [type(step) for step in steps] == [PatchObject, WaitFor]
    assert plugin.reserve(None, make_pod(), "n") is None
