"""Parts at the edges of what the API takes: amounts, names, weights, selectors and keys that are seldom seen."""

from __future__ import annotations

from tests.conformance.generate.draw import (
    HOST,
    IMAGES,
    NAMESPACES,
    PREFERRED,
    REQUIRED,
    ZONE,
    Draw,
    Fields,
    name_of,
)
from tests.conformance.generate.nodes import named

_FAR = 2**31 - 1
_CPU = ("0", "1m", "100u", "0.1", "999m", "1000m", "1e1", "12", "100k")
_MEMORY = ("0", "1", "1500m", "64Mi", "128974848", "129e6", "200Mi", "1Ti", "7Pi", "1.5Gi")
_NAMES = (
    "nvidia.com/gpu", "example.com/none", "hugepages-1Gi", "hugepages-2Mi", "attachable-volumes-aws-ebs",
    "thing.kubernetes.io/part", "requests.example.com/x", "bogus",
)  # fmt: skip
_KEYS = ("dedicated", "special", "example.com/pool")
_MEBIBYTE = 1024 * 1024


def amounts(draw: Draw) -> None:
    """Let nodes offer nothing, next to nothing, or more than there is; Pods ask the like, in odd spellings."""
    for node in draw.nodes:
        offered = node["status"]["allocatable"]
        for resource, values in (("cpu", _CPU), ("memory", _MEMORY), ("ephemeral-storage", _MEMORY)):
            if draw.often(0.3):
                offered[resource] = draw.pick(values)
            elif draw.often(0.05):
                del offered[resource]
        if draw.often(0.15):
            offered["pods"] = draw.pick(("0", "1", "2", "3"))
        elif draw.often(0.03):
            del offered["pods"]
    for pod in [draw.target, *draw.some(draw.placed)]:
        pod["spec"]["containers"][0]["resources"] = {"requests": _odd_requests(draw)}


def _odd_requests(draw: Draw) -> Fields:
    kinds = (("cpu", _CPU[:-2]), ("memory", _MEMORY[:-2]), ("ephemeral-storage", _MEMORY[:-2]))
    return {resource: draw.pick(values) for resource, values in draw.some(kinds, 0)}


def names(draw: Draw) -> None:
    """Ask for resources of every kind of name, those that count as scalars and those that do not count at all."""
    for node in draw.nodes:
        for name in draw.some(_NAMES):
            node["status"]["allocatable"][name] = draw.pick(("0", "1", "2", "4Gi"))
    for pod in [draw.target, *draw.some(draw.placed)]:
        requests = pod["spec"]["containers"][0].setdefault("resources", {}).setdefault("requests", {})
        for name in draw.some(_NAMES, 0, 2):
            requests[name] = draw.pick(("0", "1", "1", "2"))


def layered(draw: Draw) -> None:
    """Give Pods, placed ones too, containers of every kind, overhead, and requests of the whole Pod."""
    for pod in [draw.target, *draw.some(draw.placed)]:
        spec = pod["spec"]
        if draw.often(0.6):
            spec["initContainers"] = [draw.container(f"i{i}", draw.requests(big=True)) for i in range(draw.count(1, 4))]
            for container in spec["initContainers"]:
                if draw.often(0.5):
                    container["restartPolicy"] = "Always"
        if draw.often(0.3):
            spec["containers"] += [draw.container(f"c{i}", draw.requests()) for i in range(draw.count(1, 2))]
        if draw.often(0.3):
            spec["overhead"] = {"cpu": draw.pick(("0", "250m")), "memory": draw.pick(("0", "120Mi"))}
            spec["runtimeClassName"] = "kata"
        if draw.often(0.3):
            whole = {"cpu": "2", "memory": "3Gi", "hugepages-2Mi": "64Mi"}
            spec["resources"] = {"requests": {key: whole[key] for key in draw.some(sorted(whole), 1)}}
    for node in draw.nodes:
        if draw.often(0.5):
            node["status"]["allocatable"]["hugepages-2Mi"] = draw.pick(("0", "64Mi", "256Mi"))


def images(draw: Draw) -> None:
    """Let images be far too big or of no size, have several names, and be on all nodes, on one, or of two sizes."""
    wanted = [one["image"] for one in draw.target["spec"]["containers"]]
    for image in {*wanted, *draw.some(IMAGES, 1, 3)}:
        name = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
        sizes = [draw.pick((0, 23, 1000, 1001, 200_000)) * _MEBIBYTE + draw.count(0, 1) for _ in range(2)]
        for node in draw.some(draw.nodes, draw.pick((1, len(draw.nodes)))):
            size = sizes[0] if draw.often(0.9) else sizes[1]
            held = {"names": [name, f"{name}-alias"] if draw.often(0.3) else [name], "sizeBytes": size}
            node["status"].setdefault("images", []).append(held)
    spec = draw.target["spec"]
    for i in range(draw.count(0, 3)):
        spec["containers"].append(draw.container(f"again-{i}", {}, draw.pick((*wanted, f"{wanted[0]}-alias"))))
    if draw.often(0.5):
        spec["initContainers"] = [draw.container("first", {}, draw.pick((*wanted, *IMAGES)))]


def spread(draw: Draw) -> None:
    """Spread with the extremes of every field: skews, domains, policies, selectors of all or none, keys of nobody."""
    constraints: dict[tuple[str, str], Fields] = {}
    for _ in range(draw.count(1, 4)):
        when = draw.pick(("DoNotSchedule", "ScheduleAnyway"))
        key = draw.pick((ZONE, HOST, "rack", "gen", "nobody-has-this"))
        constraint: Fields = {
            "topologyKey": key, "whenUnsatisfiable": when, "maxSkew": draw.pick((1, 1, 1, 2, 3, 100, _FAR)),
            "nodeAffinityPolicy": draw.pick(("Honor", "Ignore")), "nodeTaintsPolicy": draw.pick(("Honor", "Ignore")),
        }  # fmt: skip
        if when == "DoNotSchedule" and draw.often(0.5):
            constraint["minDomains"] = draw.pick((1, 2, 3, 4, 12, 13, _FAR))
        if draw.often(0.9):
            constraint["labelSelector"] = _selector(draw)
            if draw.often(0.3):
                constraint["matchLabelKeys"] = draw.some(("absent", "other-absent"), 1)
        constraints[key, when] = constraint
    draw.target["spec"]["topologySpreadConstraints"] = list(constraints.values())
    for node in draw.some(draw.nodes, 0, 2):
        node["metadata"]["labels"].pop(draw.pick((ZONE, HOST)), None)


def _selector(draw: Draw) -> Fields:
    app = draw.target["metadata"]["labels"].get("app", "web")
    choices: tuple[Fields, ...] = (
        {}, {"matchLabels": {"app": app}}, {"matchLabels": {"app": app}}, {"matchLabels": {"app": "nobody"}},
        {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        {"matchExpressions": [{"key": "nothing", "operator": "DoesNotExist"}]},
        {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["frontend"]}]},
    )  # fmt: skip
    return draw.pick(choices)


def pod_affinity(draw: Draw) -> None:
    """Ask for neighbours with selectors of all or none, of Pods and of namespaces, at the extremes of weight."""
    for pod in [draw.target, *draw.some(draw.placed)]:
        affinity: Fields = {}
        for kind in draw.some(("podAffinity", "podAntiAffinity"), 1):
            share = 0.5 if pod is draw.target else 0.15
            if draw.often(share):
                affinity.setdefault(kind, {})[REQUIRED] = [_term(draw) for _ in range(draw.count(1, 3))]
            if draw.often(0.6):
                weighted = [{"weight": draw.pick((1, 99, 100)), "podAffinityTerm": _term(draw)} for _ in range(3)]
                affinity.setdefault(kind, {})[PREFERRED] = weighted
        pod["spec"]["affinity"] = affinity


def _term(draw: Draw) -> Fields:
    term: Fields = {"topologyKey": draw.pick((ZONE, HOST, "rack", "gen", "nobody-has-this"))}
    if draw.often(0.9):
        term["labelSelector"] = _selector(draw)
    if draw.often(0.3):
        term["namespaces"] = draw.some((*NAMESPACES, "no-such-namespace"), 1)
    if draw.often(0.5):
        choices: tuple[Fields, ...] = (
            {}, {"matchLabels": {"team": "nobody"}}, {"matchLabels": {"team": "a"}},
            {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["a"]}]},
        )  # fmt: skip
        term["namespaceSelector"] = draw.pick(choices)
    return term


def node_affinity(draw: Draw) -> None:
    """Choose nodes by terms of all kinds: empty, of names only, of numbers at the edge, with the extremes of weight."""
    for node in draw.nodes:
        if draw.often(0.4):
            node["metadata"]["labels"]["gen"] = draw.pick(("0", "007", "9223372036854775807", "x", ""))
    affinity: Fields = {}
    if draw.often(0.5):
        affinity[REQUIRED] = {"nodeSelectorTerms": [_node_term(draw) for _ in range(draw.count(1, 3))]}
    if draw.often(0.7):
        affinity[PREFERRED] = [
            {"weight": draw.pick((1, 2, 99, 100)), "preference": _node_term(draw)} for _ in range(draw.count(1, 6))
        ]
    if affinity:
        draw.target["spec"].setdefault("affinity", {})["nodeAffinity"] = affinity
    if draw.often(0.3):
        draw.target["spec"]["nodeSelector"] = draw.pick(
            ({"disktype": "ssd", "gen": "0"}, {"gen": ""}, {HOST: draw.node_name()}, {"gen": "007"})
        )


def _node_term(draw: Draw) -> Fields:
    term: Fields = {}
    if draw.often(0.75):
        choices: tuple[Fields, ...] = (
            {"key": "gen", "operator": "Gt", "values": [draw.pick(("0", "6", "7", "9223372036854775806"))]},
            {"key": "gen", "operator": "Lt", "values": [draw.pick(("1", "7", "8", "9223372036854775807"))]},
            {"key": "gen", "operator": "In", "values": draw.some(("", "0", "007", "x", "3"), 1)},
            {"key": "gen", "operator": "NotIn", "values": draw.some(("", "0", "007", "x", "3"), 1)},
            {"key": draw.pick(("gen", "nobody-has-this")), "operator": draw.pick(("Exists", "DoesNotExist"))},
        )
        term["matchExpressions"] = draw.some(choices, 1, 3)
    if draw.often(0.3):
        term["matchFields"] = [named(draw.pick(("In", "NotIn")), draw.pick((draw.node_name(), "ghost")))]
    return term


def tolerations(draw: Draw) -> None:
    """Taint with and without values and tolerate by every form that the API takes."""
    for node in draw.nodes:
        node["spec"]["taints"] = [
            {"key": key, "effect": draw.pick(("PreferNoSchedule", "PreferNoSchedule", "NoSchedule", "NoExecute"))}
            | ({"value": draw.pick(("", "a", "b"))} if draw.often(0.7) else {})
            for key in draw.some(_KEYS)
        ]
    forms: tuple[Fields, ...] = (
        {"operator": "Exists"}, {"operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Exists", "effect": "PreferNoSchedule"}, {"key": _KEYS[0], "operator": "Exists"},
        {"key": _KEYS[0]}, {"key": _KEYS[1], "value": "a"}, {"key": _KEYS[1], "operator": "Equal"},
        {"key": _KEYS[2], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
        {"key": _KEYS[2], "value": "b", "effect": "PreferNoSchedule"},
    )  # fmt: skip
    draw.target["spec"]["tolerations"] = draw.some(forms, 0, 5)


def other_schedulers(draw: Draw) -> None:
    """Let Pods of other schedulers run among ours: they count like any."""
    for pod in draw.some(draw.placed):
        pod["spec"]["schedulerName"] = draw.pick(("another", "my-scheduler"))
    draw.tags.append(f"beside others {name_of(draw.target)}")
