"""Objects that use every field Vane reads, and what a hostile hand puts in place of a part of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

Json = Any
Path = tuple[str | int, ...]

_SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a"]}]}
_EXPRESSIONS = [
    {"key": "zone", "operator": "In", "values": ["a", "b"]},
    {"key": "gen", "operator": "Gt", "values": ["1"]},
]
_TERM = {"topologyKey": "zone", "labelSelector": _SELECTOR, "namespaces": ["evil"], "namespaceSelector": {}}
_NODE_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0", "n1"]}]},
        ]
    },
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 7, "preference": {"matchExpressions": _EXPRESSIONS}}
    ],
}
_POD_AFFINITY = {
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "podAffinityTerm": _TERM}],
}
_AMOUNTS = {"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1Gi", "example.com/x": "1", "hugepages-2Mi": "2Mi"}
_CONTAINER = {
    "name": "c",
    "image": "app:1",
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1"}},
    "ports": [{"hostPort": 8080, "hostIP": "0.0.0.0", "protocol": "TCP"}],
    "restartPolicy": "Always",
    "volumeMounts": [{"name": "v", "bindMountOptions": ["rw"]}],
}
POD: Json = {
    "metadata": {
        "name": "bad",
        "namespace": "evil",
        "uid": "uid-bad",
        "resourceVersion": "7",
        "generation": 1,
        "labels": {"app": "web", "pod-template-hash": "5"},
        "annotations": {"a": "b"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5", "uid": "o", "controller": True}],
        "deletionTimestamp": None,
    },
    "spec": {
        "nodeName": "",
        "schedulerName": "vane",
        "containers": [_CONTAINER],
        "initContainers": [_CONTAINER],
        "nodeSelector": {"zone": "a"},
        "affinity": {"nodeAffinity": _NODE_AFFINITY, "podAffinity": _POD_AFFINITY},
        "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
        "priority": 5,
        "preemptionPolicy": "PreemptLowerPriority",
        "overhead": {"cpu": "10m"},
        "resources": {"requests": {"cpu": "200m"}},
        "schedulingGates": [],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": _SELECTOR,
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Ignore",
                "matchLabelKeys": ["app"],
            }
        ],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data", "readOnly": False}}],
        "hostNetwork": False,
        "hostUsers": True,
    },
    "status": {
        "phase": "Pending",
        "nominatedNodeName": "n1",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        "containerStatuses": [
            {
                "name": "c",
                "restartCount": 0,
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                "allocatedResources": {"cpu": "1"},
                "resources": {"requests": {"cpu": "1"}},
            }
        ],
        "allocatedResources": {"cpu": "1"},
        "resources": {"requests": {"cpu": "1"}},
    },
}
NODE: Json = {
    "metadata": {
        "name": "n0",
        "uid": "uid-n0",
        "resourceVersion": "8",
        "labels": {"zone": "a", "kubernetes.io/hostname": "n0", "gen": "3"},
        "annotations": {"vane.dev/real-allocatable": '{"cpu": "2"}'},
    },
    "spec": {
        "unschedulable": False,
        "taints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}],
        "providerID": "p",
    },
    "status": {
        "allocatable": {**_AMOUNTS, "cpu": "4", "memory": "8Gi", "pods": "110"},
        "images": [{"names": ["app:1"], "sizeBytes": 1_000_000}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True"}],
        "declaredFeatures": ["F"],
    },
}
VOLUME: Json = {
    "metadata": {"name": "pv", "uid": "uid-pv", "resourceVersion": "3", "labels": {"zone": "a"}, "annotations": {}},
    "spec": {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "wait",
        "volumeMode": "Filesystem",
        "claimRef": {"namespace": "evil", "name": "data", "uid": "uid-data"},
        "csi": {"driver": "csi.example.com", "volumeHandle": "h"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": _EXPRESSIONS}]}},
    },
    "status": {"phase": "Available"},
}
CLAIM: Json = {
    "metadata": {"name": "data", "namespace": "evil", "uid": "uid-data", "resourceVersion": "3", "annotations": {}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
        "storageClassName": "wait",
        "volumeName": "pv",
        "selector": _SELECTOR,
    },
    "status": {"phase": "Bound"},
}
BUDGET: Json = {
    "metadata": {"name": "pdb", "namespace": "evil", "resourceVersion": "3"},
    "spec": {"selector": _SELECTOR},
    "status": {"disruptionsAllowed": 1, "disruptedPods": {"a": "2026-01-01T00:00:00Z"}},
}
DOCUMENTS: Mapping[str, Json] = {
    "Pod": POD,
    "Node": NODE,
    "PersistentVolume": VOLUME,
    "PersistentVolumeClaim": CLAIM,
    "PodDisruptionBudget": BUDGET,
}

IDENTITY = ("name", "namespace", "uid", "resourceVersion")
"""Of the metadata; the API server gives and checks these."""

HOSTILE: tuple[Json, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, -(2**31), 2**63 - 1, 2**63, 2**64, 10**30, 1.5, -0.0, 1e300),
    *(
        "",
        "0",
        "-1",
        "9E",
        "9223372036854775807",
        "1e999",
        "1e-999",
        "100E",
        "-9E",
        "1n",
        "0.5",
        "9" * 900,
        "many",
        "NaN",
    ),
    *("0000-12-31T19:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "99999-01-01T00:00:00Z", "now"),
    *(
        "\x00\x1b[31m\r\n",
        "\u202e\ufeff",
        "\U0001f4a3" * 30,
        "x" * 5_000,
        "a/b/c",
        "/",
        "Gt",
        "In",
        "evil",
        "n0",
        "Always",
    ),
    *([], {}, [None], [{}], {"": ""}, {"a": None}, ["a", "b"] * 20, {f"example.com/{i}": "9E" for i in range(60)}),
    *({f"k{i}": "v" for i in range(300)}, [{"key": "zone", "operator": "Gt", "values": ["9" * 30]}], {"cpu": "9E"}),
)


def paths(document: Json, at: Path = ()) -> Iterator[Path]:
    """Yield every place in a document but the whole and an object's identity."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in items:
        if at == ("metadata",) and key in IDENTITY:
            continue
        if (*at, key) != ("metadata",):
            yield (*at, key)
        yield from paths(value, (*at, key))


PATHS: Mapping[str, list[Path]] = {kind: list(paths(document)) for kind, document in DOCUMENTS.items()}


def put(document: Json, path: Path, value: Json) -> None:
    """Put a value in its place, if the place is still there; a value that is a path's absence takes it out."""
    for key in path[:-1]:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return
    try:
        if value is ABSENT:
            del document[path[-1]]
        else:
            document[path[-1]] = copy.deepcopy(value)
    except (KeyError, IndexError, TypeError):
        return


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


@st.composite
def spoilt(draw: st.DrawFn, kind: str) -> Json:
    """Draw an object of a kind with one to three places changed."""
    document = copy.deepcopy(DOCUMENTS[kind])
    if kind == "Pod" and draw(st.booleans()):
        document["spec"]["nodeName"] = "n0"
    for _ in range(draw(st.integers(1, 3))):
        put(document, draw(st.sampled_from(PATHS[kind])), draw(st.sampled_from((ABSENT, *HOSTILE))))
    return document
