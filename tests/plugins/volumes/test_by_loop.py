"""The volume plugins' columns against a plain loop, while Pods, nodes and objects come, change and go.

The tables that the plugins keep from one question to the next are brought up to date step by step; the loop, and a
cluster built afresh, know nothing of the steps before.
"""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from scheduler.framework.status import PreFilterResult
from scheduler.model.catalog import CatalogObject
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.state import ClusterState
from scheduler.model.volumes import StorageClass
from scheduler.plugins.volumes.node_volume_limits.plugin import REASON as FULL
from scheduler.plugins.volumes.node_volume_limits.plugin import NodeVolumeLimits
from scheduler.plugins.volumes.volume_binding.bound_claims import VolumeState
from scheduler.plugins.volumes.volume_binding.plugin import (
    REASON_AFFINITY,
    REASON_GONE,
    REASON_NO_SPACE,
    REASON_NO_VOLUME,
    VolumeBinding,
)
from scheduler.plugins.volumes.volume_restrictions import REASON_DISK, REASON_ONE_POD, VolumeRestrictions
from scheduler.plugins.volumes.volume_zone import VolumeZone
from tests.builders import NO_SIGNALS, cluster_of, make_node
from tests.plugins.run import refusals
from tests.plugins.volumes import plain_loop as loop
from tests.plugins.volumes.objects import (
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
from tests.worlds import each_seed, is_so

ALL = slice(None)
PLUGINS = (VolumeRestrictions(), NodeVolumeLimits(), VolumeBinding(), VolumeZone())
NODES = ("n0", "n1", "n2", "n3")
CLAIMS = ("c0", "c1", "c2", "c3", "c4")
VOLUMES = ("pv0", "pv1", "pv2", "pv3", "pv4", "pv5")
CLASSES = ("static", "made", "pooled")
DRIVERS = ("csi.example.com", "csi.pool")
WORDS = {
    "affinity": REASON_AFFINITY,
    "gone": REASON_GONE,
    "no volume": REASON_NO_VOLUME,
    "no space": REASON_NO_SPACE,
    "disk": REASON_DISK,
    "one-pod": REASON_ONE_POD,
    "full": FULL,
}

AFFINITIES = (
    None, None, [term(ZONE, "1")], [term(ZONE, "2")], [term("kubernetes.io/hostname", "n1")], [term(ZONE, "1", "2")]
)  # fmt: skip


def random_volume(random: Random, name: str = "") -> CatalogObject:
    # Sizes differ by name: which of two equal volumes is taken is nobody's business.
    number = VOLUMES.index(name) if name else random.randrange(len(VOLUMES))
    source = random.choice([{"csi": csi(handle=f"h{number % 3}")}, {"cinder": {"volumeID": "h"}}, {}])
    return volume(
        VOLUMES[number],
        storage_class=random.choice(CLASSES),
        size=f"{6 + number}Gi",
        modes=random.choice([["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"]]),
        labels={ZONE: random.choice(["1", "2", "1__2"])} if is_so(random) else {},
        affinity=random.choice(AFFINITIES),
        made_for=random.choice(["", "", "", *CLAIMS]),
        phase=random.choice(["Available", "Available", "Released"]),
        **source,
    )


def random_claim(random: Random, name: str = "") -> CatalogObject:
    return claim(
        name or random.choice(CLAIMS),
        volume=random.choice([*[""] * 6, *VOLUMES]),
        storage_class=random.choice(CLASSES),
        size=random.choice(["1Gi", "7Gi", "9Gi"]),
        modes=[random.choice(["ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"])],
    )


def random_pool(random: Random) -> CatalogObject:
    # One pool for each zone at most: which of several is taken is nobody's business.
    zone = random.choice("12")
    sizes = {"capacity": random.choice(["1Gi", "8Gi", "100Gi"])} if is_so(random) else {}
    if is_so(random):
        sizes["maximumVolumeSize"] = random.choice(["2Gi", "50Gi"])
    return pool(f"pool{zone}", storage_class="pooled", selector={"matchLabels": {ZONE: zone}}, **sizes)


def random_csi_node(random: Random) -> CatalogObject:
    return csi_node(
        random.choice(NODES),
        csi_example_com=random.choice([None, 0, 1, 2]),
        cinder_csi_openstack_org=random.choice([None, 1, 2]),
    )


def random_object(random: Random) -> CatalogObject:
    match random.randrange(9):
        case 0 | 1:
            return random_volume(random)
        case 2 | 3:
            return random_claim(random)
        case 4:
            return random_pool(random)
        case 5:
            return random_csi_node(random)
        case 6:
            return csi_driver(
                random.choice(DRIVERS), preventPodSchedulingIfMissing=is_so(random), storageCapacity=is_so(random)
            )
        case 7:
            return storage_class(random.choice(["made", "pooled"]), provisioner=random.choice(DRIVERS))
        case _:
            return attachment(random.choice(["a0", "a1"]), random.choice(NODES), random.choice(VOLUMES))


def beginning(random: Random) -> list[CatalogObject]:
    """Return every claim and every volume, so that there is much to decide, and some of what is around them."""
    return [
        *(random_claim(random, name) for name in CLAIMS),
        *(random_volume(random, name) for name in VOLUMES),
        *(random_csi_node(random) for _ in range(2)),
        *(random_pool(random) for _ in range(2)),
    ]


def random_pod(random: Random, name: str) -> PodInfo:
    sources: list[Any] = [claim_volume(one) for one in random.sample(CLAIMS, random.randint(1, 2))]
    if random.randrange(4) == 0:
        sources.append({"gcePersistentDisk": {"pdName": "d", "readOnly": is_so(random)}})
    if random.randrange(4) == 0:
        sources.append({"cinder": {"volumeID": random.choice("hi")}})
    if random.randrange(4) == 0:
        monitors = random.sample("mno", random.randint(0, 3))
        sources.append({"rbd": {"monitors": monitors, "image": "i", "readOnly": is_so(random)}})
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
        self.set(storage_class("static", provisioner="kubernetes.io/no-provisioner"))
        self.set(storage_class("made"))
        self.set(storage_class("pooled", provisioner="csi.pool"))

    def set(self, item: CatalogObject) -> None:
        key = (type(item), item.metadata.namespace, item.metadata.name)
        self.objects[key] = item
        self.state.set_object(item)

    def remove(self, number: int) -> None:
        key = sorted(self.objects, key=str)[number % len(self.objects)]
        if key[0] is not StorageClass:
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

    def follow(self) -> None:
        for plugin in PLUGINS:
            plugin.follow(Snapshot(self.state, NO_SIGNALS, 0.0))

    def step(self, random: Random, name: str) -> None:
        """Change one thing; a Pod that is placed has this name."""
        node = random.choice(NODES)
        match random.choice(["set", "set", "remove", "place", "place", "displace", "relabel", "lose", "follow"]):
            case "set":
                self.set(random_object(random))
            case "remove":
                self.remove(random.randint(0, 20))
            case "place":
                self.place(random_pod(random, name), node)
            case "displace":
                self.displace(node)
            case "relabel":
                self.relabel(node, random.choice(["", "1", "2"]))
            case "lose":
                self.lose(node)
            case "follow":
                self.follow()

    def world(self) -> loop.World:
        return loop.World(self.nodes, self.pods, list(self.objects.values()))


@each_seed(250)
def test_columns_are_those_of_a_loop_whatever_has_changed(random: Random) -> None:
    walk = Walk()
    for item in (*beginning(random), *(random_object(random) for _ in range(random.randint(0, 4)))):
        walk.set(item)
    for node in NODES:
        walk.place(random_pod(random, f"first-{node}"), node)
    for number in range(random.randint(1, 6)):
        walk.step(random, f"placed-{number}")
        if is_so(random):
            compare(random_pod(random, "pod"), walk.state, walk.world())


@each_seed(80)
def test_a_what_if_leaves_no_trace(random: Random) -> None:
    walk = Walk()
    for item in beginning(random):
        walk.set(item)
    for number in range(3):
        walk.place(random_pod(random, f"placed-{number}"), random.choice(NODES))
    pod, other = random_pod(random, "pod"), random_pod(random, "other")
    before = compare(pod, walk.state, walk.world())

    snapshot = Snapshot(walk.state, NO_SIGNALS, 0.0)
    with snapshot.trial() as trial:
        trial.place(other, random.randint(0, 3))
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


def test_a_row_that_another_node_takes_is_looked_at_anew() -> None:
    walk = Walk()
    for item in (
        claim("c0", volume="pv0"),
        volume("pv0", csi=csi()),
        volume("pv1", csi=csi(handle="h1")),
        csi_node("n0", csi_example_com=3),
        csi_node("late", csi_example_com=1),
        attachment("a0", "late", "pv1"),
    ):
        walk.set(item)
    pod = pod_with(claim_volume("c0"))
    assert compare(pod, walk.state, walk.world())

    row = walk.state.nodes.row_of("n0")
    walk.lose("n0")
    walk.follow()
    walk.relabel("late", "1")

    assert walk.state.nodes.row_of("late") == row
    assert compare(pod, walk.state, walk.world())
    assert told(pod, Snapshot(walk.state, NO_SIGNALS, 0.0))["NodeVolumeLimits"] == {"late": {"full"}}


def test_a_class_with_another_provisioner_counts_for_another_driver() -> None:
    walk = Walk()
    for item in (
        claim("c0", storage_class="made"),
        claim("c1", volume="pv1"),
        volume("pv1", csi=csi(handle="h1")),
        csi_node("n0", csi_example_com=1),
    ):
        walk.set(item)
    walk.place(pod_with(claim_volume("c0"), name="first"), "n0")
    pod = pod_with(claim_volume("c1"))
    assert told(pod, Snapshot(walk.state, NO_SIGNALS, 0.0))["NodeVolumeLimits"] == {"n0": {"full"}}

    walk.set(storage_class("made", provisioner="csi.pool"))

    assert told(pod, Snapshot(walk.state, NO_SIGNALS, 0.0))["NodeVolumeLimits"] == {}
    assert compare(pod, walk.state, walk.world())


def test_most_walks_have_something_to_compare() -> None:
    walk = Walk()
    for item in (claim("c0", storage_class="static"), volume("pv0", storage_class="static"), csi_node("n0")):
        walk.set(item)

    assert compare(pod_with(claim_volume("c0")), walk.state, walk.world())
    assert np.count_nonzero(walk.state.nodes.alive) == len(NODES)
