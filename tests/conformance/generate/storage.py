"""Parts about storage that is seldom seen: sources built into Kubernetes, classes and claims of every form, pools."""

from __future__ import annotations

from tests.conformance.generate.draw import BETA_REGION, BETA_ZONE, HOST, REGION, ZONE, Draw, Fields, moment, name_of
from tests.conformance.generate.volumes import (
    DRIVER,
    MIGRATED,
    bound_claim,
    csi_driver,
    make_claim,
    make_volume,
    places,
    register,
    storage_class,
    use,
)

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_GCE_ZONE = "us-central1-"

_IN_TREE = {
    "kubernetes.io/aws-ebs": ("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    "kubernetes.io/gce-pd": ("pd.csi.storage.gke.io", "topology.gke.io/zone"),
    "kubernetes.io/azure-disk": ("disk.csi.azure.com", "topology.disk.csi.azure.com/zone"),
    "kubernetes.io/cinder": ("cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"),
    "kubernetes.io/portworx-volume": ("pxd.portworx.com", ""),
    "kubernetes.io/azure-file": ("file.csi.azure.com", ""),
    "kubernetes.io/vsphere-volume": ("csi.vsphere.vmware.com", "topology.csi.vmware.com/zone"),
}
"""Who took over each source, and the label by which it knows zones."""


def migrated(draw: Draw) -> None:
    """Use disks of the sources that CSI drivers took over, on nodes of which some have them taken over."""
    draw.tags.append("migrated")
    zones = draw.pick((("z1", "z2", "z3"), tuple(_GCE_ZONE + letter for letter in "abc")))
    for node in draw.nodes:
        zone = draw.pick(zones)
        node["metadata"]["labels"][draw.pick((ZONE, ZONE, BETA_ZONE))] = zone
        drivers: list[Fields] = []
        for driver, key in draw.some(sorted(_IN_TREE.values())):
            if key and draw.often(0.8):
                node["metadata"]["labels"][key] = zone
            limit = {"allocatable": {"count": draw.count(0, 2)}} if draw.often(0.6) else {}
            drivers.append({"name": driver, "nodeID": "x", "topologyKeys": None, **limit})
        if draw.often(0.85):
            register(draw, node, drivers)["metadata"]["annotations"] = {MIGRATED: ",".join(draw.some(_IN_TREE, 3))}
    for i, pod in enumerate([draw.target, *draw.some(draw.placed)]):
        _use_in_tree(draw, pod, i, zones)


def _use_in_tree(draw: Draw, pod: Fields, i: int, zones: tuple[str, ...]) -> None:
    kind = draw.pick(tuple(_IN_TREE))
    how = draw.count(0, 3)
    if how == 0:
        pod["spec"].setdefault("volumes", []).append({"name": f"disk-{i}", **_source(draw, kind, f"d{i}", "")})
        return
    if how == 1:
        storage_class(draw, f"class-{kind.rpartition('/')[2]}", kind)
        make_claim(draw, f"tree-{i}", f"class-{kind.rpartition('/')[2]}", namespace=pod["metadata"]["namespace"])
    else:
        spec: Fields = _source(draw, kind, f"d{i}", draw.pick(zones))
        if draw.often(0.4):
            values = draw.some(zones, 1, 2)
            key = draw.pick((ZONE, BETA_ZONE, _IN_TREE[kind][1] or ZONE))
            terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": values}]}]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        _, volume = bound_claim(draw, f"tree-{i}", pod["metadata"]["namespace"], **spec)
        if draw.often(0.6):
            labels = {draw.pick((ZONE, BETA_ZONE)): "__".join(draw.some(zones, 1, 2))}
            if draw.often(0.3):
                labels[draw.pick((REGION, BETA_REGION))] = draw.pick(("r1", "r2"))
            volume["metadata"]["labels"] = labels
    use(pod, f"tree-{i}")


def _source(draw: Draw, kind: str, name: str, zone: str) -> Fields:
    sources: dict[str, Fields] = {
        "kubernetes.io/aws-ebs": {
            "awsElasticBlockStore": {"volumeID": f"aws://{zone}/vol-{name}" if zone else f"vol-{name}"}
        },
        "kubernetes.io/gce-pd": {"gcePersistentDisk": {"pdName": name, "readOnly": draw.often(0.5)}},
        "kubernetes.io/azure-disk": {"azureDisk": {"diskName": name, "diskURI": f"/disks/{name}", "kind": "Managed"}},
        "kubernetes.io/cinder": {"cinder": {"volumeID": name}},
        "kubernetes.io/portworx-volume": {"portworxVolume": {"volumeID": name}},
        "kubernetes.io/azure-file": {"azureFile": {"secretName": "s", "shareName": name}},
        "kubernetes.io/vsphere-volume": {"vsphereVolume": {"volumePath": f"[ds] {name}"}},
    }
    found = sources[kind]
    if draw.often(0.15):
        # Such disks no driver took over: where the plugin counts as migrated, the attempt fails.
        odd: dict[str, Fields] = {
            "kubernetes.io/aws-ebs": {"awsElasticBlockStore": {"volumeID": f"aws://z1/{name}"}},
            "kubernetes.io/azure-disk": {"azureDisk": {"diskName": name, "diskURI": name, "kind": "Dedicated"}},
        }
        return odd.get(kind, found)
    if kind == "kubernetes.io/azure-file" and zone:
        found["azureFile"]["secretNamespace"] = "default"
    return found


def classes(draw: Draw) -> None:
    """Use claims of several classes, named in either way, whose volumes suit by mode, access, attributes or labels."""
    storage_class(draw, "first", "kubernetes.io/no-provisioner")
    storage_class(draw, "second", **_topologies(draw))
    for i in range(draw.count(2, 10)):
        kind = draw.pick(("first", "first", "second"))
        volume = make_volume(draw, f"vol-{i}", f"{draw.pick((1, 5, 10)) * 1024 + i}Mi", kind)
        if draw.often(0.6):
            volume["spec"]["nodeAffinity"] = places(draw)
        volume["spec"]["accessModes"] = draw.some(("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"), 1)
        if draw.often(0.15):
            volume["spec"]["volumeMode"] = draw.pick(("Block", "Filesystem"))
        if draw.often(0.15):
            volume["spec"]["volumeAttributesClassName"] = draw.pick(("gold", "silver"))
        if draw.often(0.1):
            volume["metadata"]["deletionTimestamp"] = moment(0)
        if draw.often(0.1):
            volume["status"]["phase"] = draw.pick(("Pending", "Failed", "Bound"))
        if draw.often(0.2):
            volume["metadata"].setdefault("annotations", {})[_CLASS_ANNOTATION] = draw.pick(("first", "second"))
        volume["metadata"]["labels"] = {"disk": draw.pick(("fast", "slow"))}
    for i in range(draw.count(1, 3)):
        # Sizes differ: of claims, and of volumes, that are alike kube-scheduler takes whichever comes first.
        claim = make_claim(draw, f"claim-{i}", draw.pick(("first", "first", "second")), f"{1 + 2 * i}Gi")
        _choose(draw, claim)
        use(draw.target, f"claim-{i}")


def _topologies(draw: Draw) -> Fields:
    if draw.often(0.4):
        return {}
    expressions: tuple[Fields, ...] = (
        {"key": ZONE, "values": draw.some(("z1", "z2", "z3"), 1)}, {"key": REGION, "values": ["r1"]},
        {"key": HOST, "values": draw.some([name_of(node) for node in draw.nodes], 1)},
    )  # fmt: skip
    terms = [{"matchLabelExpressions": draw.some(expressions, 1, 2)} for _ in range(draw.count(1, 2))]
    return {"allowedTopologies": [*terms, {}] if draw.often(0.15) else terms}


def _choose(draw: Draw, claim: Fields) -> None:
    spec = claim["spec"]
    if draw.often(0.3):
        spec["accessModes"] = draw.some(("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"), 1, 2)
    if draw.often(0.1):
        spec["volumeMode"] = draw.pick(("Block", "Filesystem"))
    if draw.often(0.15):
        spec["volumeAttributesClassName"] = draw.pick(("gold", "silver", ""))
    if draw.often(0.3):
        fast: Fields = {"matchLabels": {"disk": "fast"}}
        other: Fields = {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["fast"]}]}
        spec["selector"] = draw.pick((fast, other, {}))
    if draw.often(0.12):
        claim["metadata"]["annotations"] = {_CLASS_ANNOTATION: draw.pick(("first", "second"))}


def pools(draw: Draw) -> None:
    """Let several pools of storage be for one node: which one counts is chance where they differ."""
    storage_class(draw, "pooled")
    csi_driver(draw, DRIVER, storageCapacity=True)
    size = draw.pick(("1Gi", "10Gi", "100Gi"))
    alike = draw.often(0.6)
    for i in range(draw.count(1, 4)):
        topology = draw.pick(
            ({}, {"matchLabels": {ZONE: draw.pick(("z1", "z2", "z3"))}}, {"matchLabels": {REGION: "r1"}})
        )
        offered: Fields = {"nodeTopology": topology, "capacity": size if alike else draw.pick(("1Gi", "10Gi", "100Gi"))}
        if draw.often(0.1):
            del offered["nodeTopology"]
        if draw.often(0.2):
            offered["maximumVolumeSize"] = draw.pick(("0", "1Gi", "200Gi"))
        named = {"metadata": {"name": f"pool-{i}", "namespace": "kube-system"}, "storageClassName": "pooled"}
        draw.add("csistoragecapacities", named | offered)
    for i in range(draw.count(1, 3)):
        make_claim(draw, f"pooled-{i}", "pooled", draw.pick(("0", "1", "500Mi", "1Gi", "5Gi", "10Gi", "100Gi")))
        use(draw.target, f"pooled-{i}")


def shared(draw: Draw) -> None:
    """Let Pods use the same claims, and each a driver's last place."""
    for i in range(draw.count(1, 3)):
        bound_claim(draw, f"shared-{i}")
    for node in draw.nodes:
        driver: Fields = {"name": DRIVER, "nodeID": "x", "topologyKeys": None}
        if draw.often(0.8):
            driver["allocatable"] = {"count": draw.count(0, 2)}
        register(draw, node, [driver])
    csi_driver(draw, DRIVER, preventPodSchedulingIfMissing=draw.often(0.3))
    there = [name_of(claim) for claim in draw.objects["persistentvolumeclaims"]]
    for pod in [draw.target, *draw.some(draw.placed, 1)]:
        pod["metadata"]["namespace"] = "default"
        for name in draw.some(there, 1):
            use(pod, name)
