"""Parts about volumes: claims in every state, volumes with places, storage to be provisioned, drivers' limits."""

from __future__ import annotations

from typing import Any

from tests.conformance.generate.draw import (
    BETA_ZONE,
    HOST,
    REGION,
    ZONE,
    Draw,
    Fields,
    moment,
    name_of,
)
from tests.conformance.generate.nodes import requirement

DRIVER = "csi.example.com"
_AWS = "ebs.csi.aws.com"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_GROUND = "default"


def storage_class(draw: Draw, name: str, provisioner: str = DRIVER, **more: Any) -> None:
    if all(name_of(found) != name for found in draw.objects.get("storageclasses", [])):
        mode = {"volumeBindingMode": "WaitForFirstConsumer"}
        draw.add("storageclasses", {"metadata": {"name": name}, "provisioner": provisioner, **mode, **more})


def make_volume(draw: Draw, name: str, size: str = "10Gi", kind: str = "std", **spec: Any) -> Fields:
    source = (
        {}
        if any(key in spec for key in ("awsElasticBlockStore", "nfs"))
        else {"csi": {"driver": DRIVER, "volumeHandle": name}}
    )
    fields = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": kind}
    metadata = {"metadata": {"name": name}}
    return draw.add("persistentvolumes", metadata | {"spec": fields | source | spec, "status": {"phase": "Available"}})


def make_claim(draw: Draw, name: str, kind: str | None, size: str = "5Gi", namespace: str = _GROUND) -> Fields:
    spec: Fields = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    if kind is not None:
        spec["storageClassName"] = kind
    metadata = {"name": name, "namespace": namespace}
    return draw.add("persistentvolumeclaims", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})


def bound_claim(draw: Draw, name: str, namespace: str = _GROUND, **spec: Any) -> tuple[Fields, Fields]:
    """Return a claim and the volume that it is bound to."""
    claim = make_claim(draw, name, "std", namespace=namespace)
    done = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    claim["metadata"]["annotations"] = done
    claim["spec"]["volumeName"] = f"pv-{name}"
    claim["status"]["phase"] = "Bound"
    holder = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": name, "uid": claim["metadata"]["uid"]}
    volume = make_volume(draw, f"pv-{name}", claimRef=holder, **spec)
    volume["status"]["phase"] = "Bound"
    return claim, volume


def use(pod: Fields, claim: str) -> None:
    volumes = pod["spec"].setdefault("volumes", [])
    volumes.append({"name": f"v{len(volumes)}", "persistentVolumeClaim": {"claimName": claim}})


def csi_driver(draw: Draw, name: str, **spec: Any) -> None:
    """Add a driver, or to what is known of it what it lacks."""
    known = [found for found in draw.objects.get("csidrivers", []) if name_of(found) == name]
    found = known[0] if known else draw.add("csidrivers", {"metadata": {"name": name}, "spec": {}})
    found["spec"] = spec | found["spec"]


def register(draw: Draw, node: Fields, drivers: list[Fields]) -> Fields:
    """Return the CSINode of a node, to which the drivers have been added that were not there."""
    known = [found for found in draw.objects.get("csinodes", []) if name_of(found) == name_of(node)]
    found = known[0] if known else draw.add("csinodes", {"metadata": {"name": name_of(node)}, "spec": {"drivers": []}})
    there = {driver["name"] for driver in found["spec"]["drivers"]}
    found["spec"]["drivers"] += [driver for driver in drivers if driver["name"] not in there]
    return found


def places(draw: Draw) -> Fields:
    """Return a node affinity of a volume."""
    zones = {"key": ZONE, "operator": "In", "values": draw.some(("z1", "z2", "z3"), 1, 2)}
    hosts = {"key": HOST, "operator": "In", "values": draw.some([name_of(node) for node in draw.nodes], 1, 3)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [draw.pick((zones, hosts, requirement(draw)))]}]}}


def bound(draw: Draw) -> None:
    """Use bound claims whose volumes have a place, by affinity or by labels; some volumes are gone."""
    for i in range(draw.count(1, 3)):
        place: Fields = {"nodeAffinity": places(draw)} if draw.often(0.5) else {}
        _, volume = bound_claim(draw, f"bound-{i}", **place)
        if draw.often(0.5):
            key = draw.pick((ZONE, ZONE, BETA_ZONE, REGION))
            volume["metadata"]["labels"] = {key: draw.pick(("z1", "z2", "z1__z2", "z1__", "__z2", "r1", "z3"))}
        if draw.often(0.07):
            draw.objects["persistentvolumes"].remove(volume)
        use(draw.target, f"bound-{i}")


def gone(draw: Draw) -> None:
    """Use a bound claim whose volume is gone, in a profile whose VolumeZone does not stop at that."""
    _, volume = bound_claim(draw, "gone")
    draw.objects["persistentvolumes"].remove(volume)
    use(draw.target, "gone")
    draw.profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"disabled": [{"name": "VolumeZone"}]}},
    }


def broken(draw: Draw) -> None:
    """Use a claim that nothing can be done with: missing, lost, going, of no class, or to be bound at once."""
    how = draw.count(0, 8)
    if how == 1:
        bound_claim(draw, "odd")[0]["status"]["phase"] = "Lost"
    elif how == 2:
        bound_claim(draw, "odd")[0]["metadata"]["deletionTimestamp"] = moment(0)
    elif how == 3:
        make_claim(draw, "odd", draw.pick((None, "", "no-such-class")))
    elif how == 4:
        storage_class(draw, "at-once", volumeBindingMode="Immediate")
        make_claim(draw, "odd", "at-once")
    elif how == 5:
        storage_class(draw, "late")
        make_claim(draw, "odd", "late")["spec"]["volumeName"] = "pv-chosen"
        make_volume(draw, "pv-chosen", kind="late")
    elif how >= 6:
        ephemeral_claim(draw, draw.target, draw.pick(("missing", "foreign")))
        return
    use(draw.target, "odd")


def local(draw: Draw) -> None:
    """Use claims that wait for their first consumer, and find their volumes among those that are there."""
    storage_class(draw, "local", "kubernetes.io/no-provisioner")
    for i in range(draw.count(2, 8)):
        size = f"{draw.pick((1, 5, 10)) * 1024 + i}Mi"
        volume = make_volume(draw, f"pv-{i}", size, "local", nodeAffinity=places(draw))
        if draw.often(0.15):
            volume["status"]["phase"] = "Released"
        if draw.often(0.15):
            holder = {"namespace": _GROUND, "name": draw.pick(("local-0", "someone-else"))}
            volume["spec"]["claimRef"] = holder
        if draw.often(0.2):
            volume["spec"]["volumeMode"] = "Block"
        if draw.often(0.3):
            volume["metadata"]["labels"] = {"disk": "fast"}
    for i in range(draw.count(1, 2)):
        claim = make_claim(draw, f"local-{i}", "local", draw.pick(("1Gi", "4Gi", "8Gi")))
        if draw.often(0.2):
            claim["spec"]["selector"] = {"matchLabels": {"disk": "fast"}}
        use(draw.target, f"local-{i}")


def provisioned(draw: Draw) -> None:
    """Use claims for which storage is to be made, where there is some.

    No two capacities are for one node: kube-scheduler scores by whichever a Go map holds first.
    """
    more: Fields = {}
    if draw.often(0.5):
        values = draw.some(("z1", "z2", "z3"), 1, 2)
        more["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": values}]}]
    storage_class(draw, "made", **more)
    if draw.often(0.7):
        csi_driver(draw, DRIVER, storageCapacity=draw.often(0.85))
        everywhere: list[Fields] = [{}]
        zones: list[Fields] = [{"matchLabels": {ZONE: zone}} for zone in draw.some(("z1", "z2", "z3"), 1)]
        for i, topology in enumerate(draw.pick((everywhere, zones, zones))):
            capacity: Fields = {"nodeTopology": topology, "capacity": draw.pick(("1Gi", "10Gi", "100Gi"))}
            if draw.often(0.3):
                capacity["maximumVolumeSize"] = draw.pick(("1Gi", "10Gi"))
            named = {"metadata": {"name": f"cap-{i}", "namespace": "kube-system"}, "storageClassName": "made"}
            draw.add("csistoragecapacities", named | capacity)
    for i in range(draw.count(1, 2)):
        claim = make_claim(draw, f"made-{i}", "made", draw.pick(("500Mi", "5Gi", "50Gi")))
        if draw.often(0.2):
            claim["metadata"]["annotations"] = {"volume.kubernetes.io/selected-node": draw.node_name()}
        use(draw.target, f"made-{i}")


def crashes(draw: Draw) -> None:
    """Let capacity objects tell only the largest volume: kube-scheduler 1.37.1 crashes where it comes to score it."""
    for capacity in draw.objects.get("csistoragecapacities", []):
        if draw.often(0.5):
            del capacity["capacity"]
            capacity["maximumVolumeSize"] = "100Gi"


def one_pod_only(draw: Draw) -> None:
    claim, volume = bound_claim(draw, "single")
    for fields in (claim, volume):
        fields["spec"]["accessModes"] = ["ReadWriteOncePod"]
    use(draw.target, "single")
    if draw.placed and draw.often(0.8):
        pod = draw.pick(draw.placed)
        use(pod, "single")
        pod["metadata"]["namespace"] = _GROUND
        pod["spec"]["priority"] = draw.pick((-10, 0))


def disks(draw: Draw) -> None:
    for pod in [draw.target, *draw.some(draw.placed, 1)]:
        disk: Fields = draw.pick(
            (
                {"gcePersistentDisk": {"pdName": draw.pick(("d1", "d2")), "readOnly": draw.often(0.4)}},
                {"awsElasticBlockStore": {"volumeID": draw.pick(("v1", "v2"))}},
                {
                    "iscsi": {
                        "targetPortal": "1.2.3.4",
                        "iqn": "iqn.2024-01.com.example:d",
                        "lun": 0,
                        "readOnly": draw.often(0.4),
                    }
                },
                {
                    "rbd": {
                        "monitors": draw.some(("m1", "m2", "m3"), 1, 2),
                        "image": "i",
                        "pool": "p",
                        "readOnly": draw.often(0.4),
                    }
                },
            )
        )
        pod["spec"].setdefault("volumes", []).append({"name": "disk", **disk})


def limits(draw: Draw) -> None:
    """Limit what drivers attach; some nodes lack a driver, which `preventPodSchedulingIfMissing` makes matter."""
    draw.tags.append("limits")
    for driver in (DRIVER, _AWS):
        if draw.often(0.6):
            csi_driver(draw, driver, preventPodSchedulingIfMissing=draw.often(0.7))
    for node in draw.nodes:
        if draw.often(0.85):
            drivers: list[Fields] = []
            for driver in draw.some((DRIVER, _AWS), 1):
                limit = {"allocatable": {"count": draw.count(0, 3)}} if draw.often(0.85) else {}
                drivers.append({"name": driver, "nodeID": "x", "topologyKeys": None, **limit})
            metadata = register(draw, node, drivers)["metadata"]
            if draw.often(0.7):
                metadata["annotations"] = {MIGRATED: draw.pick(("kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", ""))}
    for i, pod in enumerate(draw.some(draw.placed, 1)):
        _use_limited(draw, pod, f"held-{i}")
    _use_limited(draw, draw.target, "wanted")
    for i in range(draw.count(0, 2)):
        make_volume(draw, f"pv-att{i}")
        attached = {"attacher": DRIVER, "nodeName": draw.node_name(), "source": {"persistentVolumeName": f"pv-att{i}"}}
        draw.add("volumeattachments", {"metadata": {"name": f"att{i}"}, "spec": attached, "status": {"attached": True}})


def _use_limited(draw: Draw, pod: Fields, name: str) -> None:
    if draw.often(0.04):
        ephemeral_claim(draw, pod, "foreign")
        return
    how = draw.count(0, 3)
    if how == 0:
        pod["spec"].setdefault("volumes", []).append(
            {"name": "inline", "awsElasticBlockStore": {"volumeID": f"vol-{name}"}}
        )
        return
    if how == 1:
        storage_class(draw, "limited", draw.pick((DRIVER, "kubernetes.io/aws-ebs")))
        make_claim(draw, name, "limited", namespace=pod["metadata"]["namespace"])
    else:
        inline = {"awsElasticBlockStore": {"volumeID": f"aws://us-east-1a/vol-{name}"}} if how == 3 else {}
        bound_claim(draw, name, pod["metadata"]["namespace"], **inline)
    use(pod, name)


def ephemeral(draw: Draw) -> None:
    for pod in [draw.target, *draw.some(draw.placed, 0, 3)]:
        ephemeral_claim(draw, pod, draw.pick(("unbound", "bound", "bound")))


def ephemeral_claim(draw: Draw, pod: Fields, state: str) -> None:
    """Let a Pod have a claim of its own that is bound, unbound, missing, or was made for another (foreign)."""
    storage_class(draw, "late")
    template = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "late",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": template}}}
    pod["spec"].setdefault("volumes", []).append(volume)
    if state == "missing":
        return
    name, namespace = f"{name_of(pod)}-scratch", pod["metadata"]["namespace"]
    if state == "bound":
        claim, _ = bound_claim(draw, name, namespace, **({"nodeAffinity": places(draw)} if draw.often(0.5) else {}))
    else:
        claim = make_claim(draw, name, "late", namespace=namespace)
    if state != "foreign":
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": name_of(pod),
            "uid": pod["metadata"]["uid"],
            "controller": True,
        }
        claim["metadata"]["ownerReferences"] = [owner]
