"""Parts about other Pods: spreading over domains, affinity and anti-affinity, and what default spreading follows."""

from __future__ import annotations

from tests.conformance.generate.draw import (
    APPS,
    ARCH,
    HOST,
    NAMESPACES,
    PREFERRED,
    REGION,
    REQUIRED,
    ZONE,
    Draw,
    Fields,
    name_of,
)

_VALUES = {"tier": ("frontend", "backend"), "version": ("v1", "v2"), "app": APPS}


def selector(draw: Draw) -> Fields:
    found: Fields = {}
    if draw.often(0.7):
        found["matchLabels"] = {"app": draw.pick(APPS[:3])}
    if draw.often(0.4):
        key, operator = draw.pick(tuple(_VALUES)), draw.pick(("In", "NotIn", "Exists", "DoesNotExist"))
        values = {"values": draw.some(_VALUES[key], 1, 2)} if operator in ("In", "NotIn") else {}
        found["matchExpressions"] = [{"key": key, "operator": operator, **values}]
    return found


def neighbours(draw: Draw) -> None:
    """Add small Pods, many of which look like the target."""
    for pod in draw.add_pods(draw.count(2, 3 * len(draw.nodes)), {"cpu": "20m"}):
        if draw.often(0.4):
            pod["metadata"]["labels"]["app"] = draw.target["metadata"]["labels"]["app"]
        pod["metadata"]["namespace"] = draw.pick((*NAMESPACES, "default", "default"))


def spread(draw: Draw) -> None:
    constraints: dict[tuple[str, str], Fields] = {}
    hard = draw.often(0.5)
    for _ in range(draw.count(1, 3)):
        when = "DoNotSchedule" if hard or draw.often(0.2) else "ScheduleAnyway"
        key = draw.pick((ZONE, ZONE, HOST, "rack", REGION))
        constraints[key, when] = _constraint(draw, key, when)
    draw.target["spec"]["topologySpreadConstraints"] = list(constraints.values())
    if draw.often(0.3):
        draw.target["spec"]["nodeSelector"] = {ARCH: "amd64"}


def _constraint(draw: Draw, key: str, when: str) -> Fields:
    constraint: Fields = {"maxSkew": draw.pick((1, 1, 2, 5)), "topologyKey": key, "whenUnsatisfiable": when}
    if draw.often(0.95):
        own = {"matchLabels": {"app": draw.target["metadata"]["labels"]["app"]}}
        constraint["labelSelector"] = own if draw.often(0.7) else selector(draw)
    if when == "DoNotSchedule" and draw.often(0.3):
        constraint["minDomains"] = draw.count(1, 5)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draw.often(0.35):
            constraint[policy] = draw.pick(("Honor", "Ignore"))
    keys = _free_keys(constraint, ("version", "tier", "absent"))
    if keys and "labelSelector" in constraint and draw.often(0.25):
        constraint["matchLabelKeys"] = draw.some(keys, 1, 2)
        if draw.often(0.5):
            _merge_keys(draw.target, constraint)
    return constraint


def _free_keys(holder: Fields, keys: tuple[str, ...]) -> list[str]:
    """Return the keys that the selector does not name: those it does may not stand in matchLabelKeys."""
    found = holder.get("labelSelector") or {}
    used = {*found.get("matchLabels", {}), *(one["key"] for one in found.get("matchExpressions", []))}
    return [key for key in keys if key not in used]


def _merge_keys(pod: Fields, holder: Fields) -> None:
    """Do what the API server does with (mis)matchLabelKeys when a Pod is made."""
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in holder.get(field, ()):
            if key in pod["metadata"]["labels"]:
                values = [pod["metadata"]["labels"][key]]
                expressions = holder["labelSelector"].setdefault("matchExpressions", [])
                expressions.append({"key": key, "operator": operator, "values": values})


def namespaces(draw: Draw) -> None:
    for name in NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name}
        if draw.often(0.7):
            labels["team"] = draw.pick(("a", "b"))
        draw.add("namespaces", {"metadata": {"name": name, "labels": labels}})


def _term(draw: Draw, pod: Fields) -> Fields:
    term: Fields = {"topologyKey": draw.pick((ZONE, ZONE, HOST, "rack"))}
    if draw.often(0.3):
        return term | {"labelSelector": {"matchLabels": {"app": pod["metadata"]["labels"]["app"]}}}
    if draw.often(0.95):
        term["labelSelector"] = selector(draw)
    if draw.often(0.25):
        term["namespaces"] = draw.some(NAMESPACES, 1, 2)
    if draw.often(0.3):
        choices: tuple[Fields, ...] = (
            {}, {"matchLabels": {"team": "a"}}, {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
        )  # fmt: skip
        term["namespaceSelector"] = draw.pick(choices)
    free = _free_keys(term, ("version", "tier"))
    if len(free) == 2 and "labelSelector" in term and draw.often(0.2):
        term |= {"matchLabelKeys": free[:1], "mismatchLabelKeys": free[1:]}
        _merge_keys(pod, term)
    return term


def _terms(draw: Draw, pod: Fields, share: float, hard: float) -> Fields:
    """Return an affinity in which each of the four lists stands with a chance of `share`, the hard ones of `hard`."""
    affinity: Fields = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if draw.often(hard):
            affinity.setdefault(kind, {})[REQUIRED] = [_term(draw, pod) for _ in range(draw.count(1, 2))]
        if draw.often(share):
            weighted = [{"weight": draw.pick((1, 10, 100)), "podAffinityTerm": _term(draw, pod)} for _ in range(2)]
            affinity.setdefault(kind, {})[PREFERRED] = weighted
    return affinity


def pod_affinity(draw: Draw) -> None:
    hard = draw.pick((0.0, 0.3, 0.8))
    draw.target["spec"].setdefault("affinity", {}).update(_terms(draw, draw.target, 0.5, hard))
    for pod in draw.some(draw.placed):
        pod["spec"]["affinity"] = _terms(draw, pod, 0.4, 0.12)


def first_of_its_kind(draw: Draw) -> None:
    """Let the target ask for Pods like itself, of which there are none, or one."""
    labels = draw.target["metadata"]["labels"] = {"app": "fresh"}
    terms = [
        {"topologyKey": draw.pick((ZONE, HOST, "rack")), "labelSelector": {"matchLabels": dict(labels)}}
        for _ in range(draw.count(1, 2))
    ]
    draw.target["spec"].setdefault("affinity", {})["podAffinity"] = {REQUIRED: terms}
    if draw.placed and draw.often(0.3):
        draw.pick(draw.placed)["metadata"]["labels"] = dict(labels)


def default_spreading(draw: Draw) -> None:
    """Add services and an owner: without constraints of its own, a Pod is spread by them."""
    metadata = draw.target["metadata"]
    namespace, labels = metadata["namespace"], metadata["labels"]
    for name, chosen in (("a", {"app": labels["app"]}), ("b", {"app": "other"}), ("c", None)):
        if draw.often(0.4):
            service: Fields = {"ports": [{"port": 80}]} | ({"selector": chosen} if chosen else {})
            draw.add("services", {"metadata": {"name": f"svc-{name}", "namespace": namespace}, "spec": service})
    kinds = {
        "ReplicaSet": "replicasets",
        "StatefulSet": "statefulsets",
        "ReplicationController": "replicationcontrollers",
    }
    kind = draw.pick((*kinds, "Job"))
    versions = {"ReplicationController": "v1", "Job": "batch/v1"}
    owner = {
        "apiVersion": versions.get(kind, "apps/v1"),
        "kind": kind,
        "name": "own",
        "uid": draw.uid(),
        "controller": True,
    }
    metadata["ownerReferences"] = [owner]
    if kind in kinds and draw.often(0.9):
        chosen = {"app": labels["app"]}
        spec: Fields = {"selector": chosen if kind == "ReplicationController" else {"matchLabels": chosen}}
        template = {"metadata": {"labels": dict(labels)}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        spec |= {"template": template}
        if kind == "StatefulSet":
            spec["serviceName"] = "x"
        draw.add(kinds[kind], {"metadata": {"name": "own", "namespace": namespace}, "spec": spec})


def ghosts(draw: Draw) -> None:
    """Add Pods on a node that is gone: they count nowhere."""
    for _ in range(2):
        pod = draw.add("pods", draw.pod(node="ghost-node"))
        term = {"topologyKey": HOST, "labelSelector": {}}
        pod["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}


def unlabelled_node(draw: Draw) -> None:
    node = draw.pick(draw.nodes)
    del node["metadata"]["labels"]
    draw.tags.append(f"unlabelled {name_of(node)}")
