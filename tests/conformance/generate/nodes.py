"""Parts about what nodes say of themselves: taints, labels, names, ports, images, features."""

from __future__ import annotations

from tests.conformance.generate.draw import ARCH, IMAGES, PREFERRED, REQUIRED, ZONE, Draw, Fields, name_of

_KEYS = ("dedicated", "special", "example.com/pool")
_CORDON = "node.kubernetes.io/unschedulable"
_LABELS = {
    "disktype": ("ssd", "hdd", "nvme"), "rack": ("rack-0", "rack-1", "rack-2"), ZONE: ("z1", "z2", "z9"),
    ARCH: ("amd64", "arm64"), "missing": ("x",),
}  # fmt: skip


def taints(draw: Draw) -> None:
    mostly_soft = draw.often(0.4)
    for node in draw.nodes:
        found: dict[tuple[str, str], Fields] = {}
        for _ in range(draw.count(0, 3)):
            hard = () if mostly_soft and draw.often(0.9) else ("NoSchedule", "NoExecute")
            effect = draw.pick(("PreferNoSchedule", *hard))
            taint = {"key": draw.pick(_KEYS), "effect": effect, "value": draw.pick(("", "a", "b"))}
            found[taint["key"], effect] = taint
        if found:
            node["spec"]["taints"] = list(found.values())
    draw.target["spec"]["tolerations"] = [_toleration(draw) for _ in range(draw.count(0, 4))]


def _toleration(draw: Draw) -> Fields:
    operator = draw.pick(("Exists", "Equal", ""))
    toleration: Fields = {"operator": operator} if operator else {}
    if operator != "Exists" or draw.often(0.75):
        toleration["key"] = draw.pick(_KEYS)
    if operator != "Exists":
        toleration["value"] = draw.pick(("", "a", "b"))
    if draw.often(0.6):
        toleration["effect"] = draw.pick(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return toleration


def cordons(draw: Draw) -> None:
    for node in draw.some(draw.nodes, 1):
        node["spec"]["unschedulable"] = True
        if draw.often(0.6):
            node["spec"].setdefault("taints", []).append({"key": _CORDON, "effect": "NoSchedule"})
    choices: list[list[Fields]] = [
        [], [], [{"key": _CORDON, "operator": "Exists"}], [{"operator": "Exists"}],
        [{"key": _CORDON, "operator": "Exists", "effect": "NoExecute"}],
    ]  # fmt: skip
    draw.target["spec"].setdefault("tolerations", []).extend(draw.pick(choices))
    if draw.often(0.4):
        draw.target["spec"]["priority"] = draw.pick((-5, 1000, 2_000_000_000, 2_000_001_000))


def requirement(draw: Draw) -> Fields:
    operator = draw.pick(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": draw.pick(("gen", "gen", "disktype")), "operator": operator, "values": [draw.pick(("2", "5"))]}
    key = draw.pick(tuple(_LABELS))
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": draw.some(_LABELS[key], 1, 2)}


def _term(draw: Draw) -> Fields:
    term: Fields = {}
    if draw.often(0.9):
        term["matchExpressions"] = [requirement(draw) for _ in range(draw.count(1, 2))]
    if draw.often(0.15):
        term["matchFields"] = [named(draw.pick(("In", "NotIn")), draw.node_name())]
    return term


def named(operator: str, name: str) -> Fields:
    return {"key": "metadata.name", "operator": operator, "values": [name]}


def node_affinity(draw: Draw) -> None:
    affinity: Fields = {}
    if draw.often(0.55):
        affinity[REQUIRED] = {"nodeSelectorTerms": [_term(draw) for _ in range(draw.count(1, 3))]}
    if draw.often(0.6):
        weights = [draw.pick((1, 5, 30, 50, 100)) for _ in range(draw.count(1, 4))]
        affinity[PREFERRED] = [{"weight": weight, "preference": _term(draw)} for weight in weights]
        if draw.often(0.12):
            # No value of a label is negative: the term cannot be read, which fails the whole attempt.
            unreadable = {"key": "gen", "operator": "Gt", "values": ["-1"]}
            affinity[PREFERRED][0]["preference"] = {"matchExpressions": [unreadable]}
    if affinity:
        draw.target["spec"].setdefault("affinity", {})["nodeAffinity"] = affinity
    if draw.often(0.2):
        key = draw.pick(("disktype", ARCH, ZONE))
        draw.target["spec"]["nodeSelector"] = {key: draw.pick(_LABELS[key])}


def node_names(draw: Draw) -> None:
    """Name the nodes: in the terms of an affinity, by `spec.nodeName`, by both, or a nomination beside the latter."""
    names = [name_of(node) for node in draw.nodes]
    how = draw.count(0, 4)
    if how in (0, 1, 3):
        terms = []
        for _ in range(draw.count(1, 3)):
            fields = [named("In", draw.pick([*names, "ghost"]))]
            if draw.often(0.5):
                fields.append(named(draw.pick(("In", "NotIn")), draw.pick(names)))
            terms.append({"matchFields": fields})
        draw.target["spec"].setdefault("affinity", {})["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": terms}}
    if how in (2, 3, 4):
        draw.target["spec"]["nodeName"] = draw.pick([*names, "no-such-node"])
    if how == 4:
        draw.target["status"]["nominatedNodeName"] = draw.pick(names)


def ports(draw: Draw) -> None:
    for pod in draw.some(draw.pods, 1):
        _add_ports(draw, pod)
    _add_ports(draw, draw.target)


def _add_ports(draw: Draw, pod: Fields) -> None:
    """Add ports that differ within the Pod, as the API server wants; those of plain init containers do not count."""
    seen: set[tuple[object, ...]] = set()
    containers = [pod["spec"]["containers"][0]]
    if draw.often(0.25):
        side = draw.container("side", {"cpu": "10m"})
        if draw.often(0.6):
            side["restartPolicy"] = "Always"
        pod["spec"]["initContainers"] = [side]
        containers.append(side)
    for container in containers:
        for _ in range(draw.count(1, 2)):
            port: Fields = {"containerPort": 80, "hostPort": draw.pick((80, 443, 8080))}
            port["protocol"] = draw.pick(("TCP", "TCP", "UDP", "SCTP"))
            if draw.often(0.55):
                port["hostIP"] = draw.pick(("0.0.0.0", "127.0.0.1", "10.0.0.1", "::"))
            key = (port["protocol"], port.get("hostIP"), port["hostPort"])
            if key not in seen:
                seen.add(key)
                container.setdefault("ports", []).append(port)


def images(draw: Draw) -> None:
    sizes = {image: draw.pick((1, 22, 23, 24, 300, 1000, 4000)) * 1024 * 1024 + draw.count(0, 5000) for image in IMAGES}
    for node in draw.nodes:
        node["status"]["images"] = [
            {"names": [image if ":" in image.rpartition("/")[2] else f"{image}:latest"], "sizeBytes": sizes[image]}
            for image in draw.some(IMAGES)
        ]
    spec = draw.target["spec"]
    for i, image in enumerate(draw.some((*IMAGES, "unknown:1"), 0, 2)):
        spec["containers"].append(draw.container(f"more-{i}", {"cpu": "10m"}, image))
    if draw.often(0.2):
        spec.setdefault("volumes", []).append({"name": "image", "image": {"reference": draw.pick(IMAGES)}})


def features(draw: Draw) -> None:
    known = (
        "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions", "New"
    )  # fmt: skip
    for node in draw.nodes:
        declared = draw.some(known)
        if declared:
            node["status"]["declaredFeatures"] = sorted(declared)
    spec = draw.target["spec"]
    container = spec["containers"][0]
    if draw.often(0.4):
        rule = {"action": draw.pick(("RestartAllContainers", "Restart"))}
        container |= {
            "restartPolicy": "Never",
            "restartPolicyRules": [rule | {"exitCodes": {"operator": "In", "values": [42]}}],
        }
    if draw.often(0.5):
        spec["hostNetwork"] = draw.often(0.8)
        spec |= draw.pick(({"hostUsers": False}, {"hostUsers": False}, {"hostUsers": True}, {}))
    if draw.often(0.3):
        spec.setdefault("volumes", []).append({"name": "scratch", "emptyDir": {}})
        container["volumeMounts"] = [{"name": "scratch", "mountPath": "/x", "bindMountOptions": ["noexec"]}]


def gates(draw: Draw) -> None:
    draw.target["spec"]["schedulingGates"] = [{"name": name} for name in draw.some(("a/x", "b/y", "c/z"), 0, 2)]
    if draw.often(0.5):
        draw.target["status"]["nominatedNodeName"] = draw.node_name()
