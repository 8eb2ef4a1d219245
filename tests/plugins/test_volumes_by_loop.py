"""The volume plugins' columns against a plain loop, while Pods, nodes and objects come, change and go.

The tables that the plugins keep from one question to the next are brought up to date step by step; the loop, and a
cluster built afresh, know nothing of the steps before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.framework.status import PreFilterResult
from scheduler.model.catalog import CatalogObject
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.plugins.node_volume_limits import REASON as FULL
from scheduler.plugins.node_volume_limits import NodeVolumeLimits
from scheduler.plugins.volume_binding import (
    REASON_AFFINITY,
    REASON_GONE,
    REASON_NO_SPACE,
    REASON_NO_VOLUME,
    VolumeBinding,
    VolumeState,
)
from scheduler.plugins.volume_restrictions import REASON_DISK, REASON_ONE_POD, VolumeRestrictions
from scheduler.plugins.volume_zone import VolumeZone
from tests.builders import NO_SIGNALS, cluster_of, make_node
from tests.plugins import volume_loop as loop
from tests.plugins.run import refusals
from tests.plugins.volumes import (
    ZONE,
    attachment,
    claim,
    claim_volume,
    csi,
    csi_driver,
    csi_node,
    pod_with,
    pool,
    storage_class,
    term,
    volume,
)

ALL = slice(None)
PLUGINS = (VolumeRestrictions(), NodeVolumeLimits(), VolumeBinding(), VolumeZone())
NODES = ("n0", "n1", "n2", "n3")
CLAIMS = ("c0", "c1", "c2", "c3", "c4")
VOLUMES = ("pv0", "pv1", "pv2", "pv3", "pv4", "pv5")
CLASSES = ("static", "made", "pooled")
DRIVERS = ("csi.example.com", "csi.pool")
CLASS_OBJECTS = (
    storage_class("static", provisioner="kubernetes.io/no-provisioner"),
    storage_class("made"),
    storage_class("pooled", provisioner="csi.pool"),
)
WORDS = {
    "affinity": REASON_AFFINITY,
    "gone": REASON_GONE,
    "no volume": REASON_NO_VOLUME,
    "no space": REASON_NO_SPACE,
    "disk": REASON_DISK,
    "one-pod": REASON_ONE_POD,
    "full": FULL,
}

zones = st.sampled_from(["1", "2", "1__2"])
affinities = st.sampled_from(
    [None, None, [term(ZONE, "1")], [term(ZONE, "2")], [term("kubernetes.io/hostname", "n1")], [term(ZONE, "1", "2")]]
)


@st.composite
def volumes(draw: st.DrawFn, names: tuple[str, ...] = VOLUMES) -> CatalogObject:
    # Sizes differ by name: which of two equal volumes is taken is nobody's business.
    name = draw(st.sampled_from(names))
    number = VOLUMES.index(name)
    source = draw(st.sampled_from([{"csi": csi(handle=f"h{number % 3}")}, {"cinder": {"volumeID": "h"}}, {}]))
    return volume(
        name,
        storage_class=draw(st.sampled_from(CLASSES)),
        size=f"{6 + number}Gi",
        modes=draw(st.sampled_from([["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]])),
        labels={ZONE: draw(zones)} if draw(st.booleans()) else {},
        affinity=draw(affinities),
        made_for=draw(st.sampled_from(["", "", "", *CLAIMS])),
        phase=draw(st.sampled_from(["Available", "Available", "Released"])),
        **source,
    )


@st.composite
def claims(draw: st.DrawFn, names: tuple[str, ...] = CLAIMS) -> CatalogObject:
    return claim(
        draw(st.sampled_from(names)),
        volume=draw(st.sampled_from([*[""] * 6, *VOLUMES])),
        storage_class=draw(st.sampled_from(CLASSES)),
        size=draw(st.sampled_from(["1Gi", "7Gi", "9Gi"])),
        modes=[draw(st.sampled_from(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"]))],
    )


@st.composite
def pools(draw: st.DrawFn) -> CatalogObject:
    # One pool for each zone at most: which of several is taken is nobody's business.
    zone = draw(st.sampled_from("12"))
    sizes = {"capacity": draw(st.sampled_from(["1Gi", "8Gi", "100Gi"]))} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        sizes["maximumVolumeSize"] = draw(st.sampled_from(["2Gi", "50Gi"]))
    return pool(f"pool{zone}", storage_class="pooled", selector={"matchLabels": {ZONE: zone}}, **sizes)


csi_nodes = st.builds(
    csi_node,
    st.sampled_from(NODES),
    csi_example_com=st.sampled_from([None, 0, 1, 2]),
    cinder_csi_openstack_org=st.sampled_from([None, 1, 2]),
)
beginnings = st.tuples(
    *(claims((name,)) for name in CLAIMS),
    *(volumes((name,)) for name in VOLUMES),
    csi_nodes,
    csi_nodes,
    pools(),
    pools(),
)
"""Every claim and every volume is there at first, so that there is much to decide."""

objects = st.one_of(
    volumes(),
    volumes(),
    claims(),
    claims(),
    pools(),
    csi_nodes,
    st.builds(
        lambda name, stop, track: csi_driver(name, preventPodSchedulingIfMissing=stop, storageCapacity=track),
        st.sampled_from(DRIVERS),
        st.booleans(),
        st.booleans(),
    ),
    st.builds(attachment, st.sampled_from(["a0", "a1"]), st.sampled_from(NODES), st.sampled_from(VOLUMES)),
)


@st.composite
def pods(draw: st.DrawFn, name: str) -> PodInfo:
    sources: list[Any] = [
        claim_volume(one) for one in draw(st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=2, unique=True))
    ]
    if draw(st.integers(0, 3)) == 0:
        sources.append({"gcePersistentDisk": {"pdName": "d", "readOnly": draw(st.booleans())}})
    if draw(st.integers(0, 3)) == 0:
        sources.append({"cinder": {"volumeID": draw(st.sampled_from(["h", "i"]))}})
    if draw(st.integers(0, 3)) == 0:
        monitors = draw(st.lists(st.sampled_from("mno"), unique=True))
        sources.append({"rbd": {"monitors": monitors, "image": "i", "readOnly": draw(st.booleans())}})
    return pod_with(*sources, name=name)


def expected(pod: PodInfo, world: loop.World) -> dict[str, dict[str, set[str]]]:
    """Return plugin -> node -> reasons, of the nodes that are refused."""
    found: dict[str, dict[str, set[str]]] = {plugin.name: {} for plugin in PLUGINS}
    for name, node in world.nodes.items():
        by_plugin = {
            "VolumeRestrictions": {loop.restrictions(pod, name, world)},
            "NodeVolumeLimits": {loop.limits(pod, name, world)},
            "VolumeBinding": loop.binding(pod, node, world).reasons,
            "VolumeZone": {"elsewhere"} if loop.is_elsewhere(pod, node, world) else set(),
        }
        for plugin, reasons in by_plugin.items():
            if reasons - {""}:
                found[plugin][name] = reasons
    return found


def told(pod: PodInfo, snapshot: Snapshot) -> dict[str, dict[str, set[str]]]:
    """Return the same as the columns say it, in the loop's words."""
    words = {reason: word for word, reason in WORDS.items()}
    found: dict[str, dict[str, set[str]]] = {}
    for plugin in PLUGINS:
        verdicts = refusals(plugin, pod, snapshot)
        found[plugin.name] = {node: {words.get(reason, reason) for _, reason in one} for node, one in verdicts.items()}
    found["VolumeZone"] = {node: {"elsewhere"} for node in found["VolumeZone"]}
    for node, reasons in found["NodeVolumeLimits"].items():
        if any(reason.endswith("CSI driver is not installed on the node") for reason in reasons):
            found["NodeVolumeLimits"][node] = {"missing"}
    return found


def goes_on(pod: PodInfo, snapshot: Snapshot) -> bool:
    """Return whether no PreFilter refuses the Pod as a whole, as most of the loop takes for granted."""
    results = [plugin.prefilter(pod, snapshot) for plugin in PLUGINS]
    return all(isinstance(one, PreFilterResult) or not one.reasons for one in results)


def compare(pod: PodInfo, state: ClusterState, world: loop.World) -> bool:
    """Compare with the loop; return whether there was anything to compare."""
    snapshot = Snapshot(state, NO_SIGNALS, 0.0)
    if not goes_on(pod, snapshot):
        return False
    assert told(pod, snapshot) == expected(pod, world)
    plugin = VolumeBinding()
    result = plugin.prefilter(pod, snapshot)
    prefiltered = result.state if isinstance(result, PreFilterResult) else None
    assert prefiltered is None or isinstance(prefiltered, VolumeState)
    (term_,) = plugin.score(prefiltered, pod, snapshot, ALL)
    for name, node in world.nodes.items():
        found = loop.binding(pod, node, world)
        row = snapshot.nodes.row_of(name)
        if not found.reasons:
            assert term_.values[row] == loop.score(found), name
        if not found.reasons and prefiltered is not None and prefiltered.plan is not None:
            plan = prefiltered.plan.on(name)
            assert [(c.metadata.name, v.metadata.name) for c, v in plan.static] == [
                (c.metadata.name, v.metadata.name) for c, v in found.static
            ]
            assert [one.metadata.name for one in plan.provision] == [one.metadata.name for one, _ in found.made]
    return True


class Walk:
    """A cluster that changes, and the plain world beside it."""

    def __init__(self) -> None:
        self.nodes = {name: make_node(name, labels={ZONE: str(1 + i % 2)}) for i, name in enumerate(NODES)}
        self.pods: dict[str, list[PodInfo]] = {}
        self.objects: dict[tuple[type, str, str], CatalogObject] = {}
        self.state = cluster_of(self.nodes.values(), (), PLUGINS)
        for item in CLASS_OBJECTS:
            self.set(item)

    def set(self, item: CatalogObject) -> None:
        key = (type(item), item.metadata.namespace, item.metadata.name)
        self.objects[key] = item
        self.state.set_object(item)

    def remove(self, number: int) -> None:
        key = sorted(self.objects, key=str)[number % len(self.objects)]
        if self.objects[key] not in CLASS_OBJECTS:
            del self.objects[key]
            self.state.remove_object(*key)

    def place(self, pod: PodInfo, node: str) -> None:
        self.pods.setdefault(node, []).append(pod)
        self.state.place(pod, self.state.nodes.ensure_row(node))

    def displace(self, node: str) -> None:
        for pod in self.pods.pop(node, ()):
            row = self.state.nodes.row_of(node)
            assert row is not None
            self.state.displace(pod, row)

    def relabel(self, node: str, zone: str) -> None:
        self.nodes[node] = make_node(node, labels={ZONE: zone} if zone else {})
        self.state.set_node(self.nodes[node])

    def lose(self, node: str) -> None:
        if self.nodes.pop(node, None) is not None:
            self.state.remove_node(node)

    def world(self) -> loop.World:
        return loop.World(self.nodes, self.pods, list(self.objects.values()))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_columns_are_those_of_a_loop_whatever_has_changed(data: st.DataObject) -> None:
    walk = Walk()
    for item in (*data.draw(beginnings), *data.draw(st.lists(objects, max_size=4))):
        walk.set(item)
    for node in NODES:
        walk.place(data.draw(pods(f"first-{node}")), node)
    for number in range(data.draw(st.integers(1, 6))):
        node = data.draw(st.sampled_from(NODES))
        match data.draw(st.sampled_from(["set", "set", "remove", "place", "place", "displace", "relabel", "lose"])):
            case "set":
                walk.set(data.draw(objects))
            case "remove":
                walk.remove(data.draw(st.integers(0, 20)))
            case "place":
                walk.place(data.draw(pods(f"placed-{number}")), node)
            case "displace":
                walk.displace(node)
            case "relabel":
                walk.relabel(node, data.draw(st.sampled_from(["", "1", "2"])))
            case "lose":
                walk.lose(node)
        compare(data.draw(pods("pod")), walk.state, walk.world())


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_a_what_if_leaves_no_trace(data: st.DataObject) -> None:
    walk = Walk()
    for item in data.draw(beginnings):
        walk.set(item)
    held = [data.draw(pods(f"placed-{number}")) for number in range(3)]
    for pod in held:
        walk.place(pod, data.draw(st.sampled_from(NODES)))
    pod, other = data.draw(pods("pod")), data.draw(pods("other"))
    before = compare(pod, walk.state, walk.world())

    snapshot = Snapshot(walk.state, NO_SIGNALS, 0.0)
    with snapshot.trial() as trial:
        trial.place(other, data.draw(st.integers(0, 3)))
        for node, placed in walk.pods.items():
            row = snapshot.nodes.row_of(node)
            assert row is not None
            trial.remove(placed[0], row)
        if before:
            told(pod, snapshot)

    assert compare(pod, walk.state, walk.world()) == before


def test_tables_that_have_missed_too_much_look_at_everything_again() -> None:
    walk = Walk()
    for item in (
        claim("c0", storage_class="static"),
        claim("c1", volume="pv1"),
        volume("pv0", storage_class="static"),
        volume("pv1", csi=csi(handle="h1")),
        volume("pv2", storage_class="static", size="7Gi", made_for="c0"),
        csi_node("n0", csi_example_com=1),
        attachment("a0", "n0", "pv1"),
    ):
        walk.set(item)
    pod = pod_with(claim_volume("c0"), claim_volume("c1"))
    assert compare(pod, walk.state, walk.world())

    for item in (csi_node("noise"), attachment("noise", "n3", "pv1"), volume("noise", phase="Released")):
        for _ in range(20_000):
            walk.state.set_object(item)
        walk.state.remove_object(type(item), "", "noise")
    walk.set(attachment("a0", "n1", "pv1"))
    walk.set(volume("pv2", storage_class="static", size="7Gi"))
    walk.relabel("n2", "2")

    assert compare(pod, walk.state, walk.world())


def test_most_walks_have_something_to_compare() -> None:
    walk = Walk()
    for item in (claim("c0", storage_class="static"), volume("pv0", storage_class="static"), csi_node("n0")):
        walk.set(item)

    assert compare(pod_with(claim_volume("c0")), walk.state, walk.world())
    assert np.count_nonzero(walk.state.nodes.alive) == len(NODES)
