"""Draw: one case in the making, with a source of chance that depends on seed, family and number alone."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

T = TypeVar("T")
Fields = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
HOST = "kubernetes.io/hostname"
ARCH = "kubernetes.io/arch"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
GPU = "nvidia.com/gpu"

NAMESPACES = ("default", "team-a", "team-b")
APPS = ("web", "db", "cache", "api")
IMAGES = (
    "nginx:1.25", "redis:7", "postgres", "registry.example.com/ml/train:v3", "registry.example.com:5000/base",
    "quay.io/a/b@sha256:" + "0" * 64, "big/model:1",
)  # fmt: skip
_EPOCH_S = 1_770_000_000


class Draw:
    """`objects` are by the API's plural names; `target` is the Pod to place.

    Names sort as they are made, and objects are sorted by namespace and name at the end, as an API server lists them.
    """

    def __init__(self, seed: int, family: str, number: int) -> None:
        self.family = family
        self.number = number
        self.name = f"{seed}-{family}-{number:05d}"
        self.chance = random.Random(f"{seed}/{family}/{number}")
        self.objects: dict[str, list[Fields]] = {}
        self.profile: Fields | None = None
        self.tags: list[str] = []
        self._pods = 0
        self._uids = random.Random(f"uid/{seed}/{family}/{number}")
        self.target = self.pod("target", namespace="default")

    # Chance

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def pick(self, choices: Sequence[T]) -> T:
        return self.chance.choice(choices)

    def some(self, choices: Iterable[T], least: int = 0, most: int | None = None) -> list[T]:
        """Return a few of the choices in any order, none twice."""
        pool = list(choices)
        most = len(pool) if most is None else min(most, len(pool))
        return self.chance.sample(pool, self.chance.randint(min(least, most), most))

    def count(self, least: int, most: int) -> int:
        return self.chance.randint(least, most)

    def uid(self) -> str:
        digits = f"{self._uids.getrandbits(128):032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    # Objects

    @property
    def nodes(self) -> list[Fields]:
        return self.objects.get("nodes", [])

    @property
    def pods(self) -> list[Fields]:
        return self.objects.get("pods", [])

    @property
    def placed(self) -> list[Fields]:
        return [pod for pod in self.pods if "nodeName" in pod["spec"]]

    def node_name(self) -> str:
        return name_of(self.pick(self.nodes))

    def add(self, plural: str, fields: Fields) -> Fields:
        fields["metadata"].setdefault("uid", self.uid())
        self.objects.setdefault(plural, []).append(fields)
        return fields

    def add_nodes(self, least: int = 4, most: int = 12) -> None:
        n_zones = self.count(2, 3)
        for i in range(self.count(least, most)):
            self.add("nodes", self._node(f"node-{i:03d}", n_zones))

    def _node(self, name: str, n_zones: int) -> Fields:
        labels = {HOST: name, ARCH: self.pick(("amd64", "amd64", "arm64"))}
        if self.often(0.93):
            labels[ZONE] = f"z{self.count(1, n_zones)}"
        if self.often(0.3):
            labels[REGION] = self.pick(("r1", "r2"))
        if self.often(0.6):
            labels["disktype"] = self.pick(("ssd", "hdd", "nvme"))
        if self.often(0.5):
            labels["rack"] = f"rack-{self.count(0, 3)}"
        if self.often(0.5):
            labels["gen"] = str(self.count(1, 8))
        allocatable = {
            "cpu": self.pick(("2", "4", "8", "16", "3900m")),
            "memory": self.pick(("4Gi", "8Gi", "16Gi", "32Gi")),
            "ephemeral-storage": self.pick(("20Gi", "50Gi", "100Gi")),
            "pods": self.pick(("110", "110", "30", "12")),
        }
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": {},
            "status": {"allocatable": allocatable, "capacity": dict(allocatable)},
        }

    def pod(
        self,
        name: str = "",
        *,
        namespace: str = "",
        node: str = "",
        priority: int | None = 0,
        requests: Fields | None = None,
    ) -> Fields:
        """Make a Pod, which is not added; with a node it runs there, each with another start."""
        self._pods += 1
        fields: Fields = {
            "metadata": {
                "name": name or f"p{self._pods:04d}",
                "namespace": namespace or self.pick(NAMESPACES[:2]),
                "uid": self.uid(),
                "creationTimestamp": moment(self._pods),
                "labels": self.labels(),
            },
            "spec": {
                "schedulerName": "default-scheduler",
                "restartPolicy": "Always",
                "preemptionPolicy": "PreemptLowerPriority",
                "containers": [self.container("main", self.requests() if requests is None else requests)],
            },
            "status": {"phase": "Pending"},
        }
        if priority is not None:
            fields["spec"]["priority"] = priority
        if node:
            fields["spec"]["nodeName"] = node
            fields["status"] = {"phase": "Running", "startTime": moment(-(self._pods * 7919) % 100_003 - 200_000)}
        return fields

    def add_pods(self, n: int, requests: Fields | None = None, priorities: Sequence[int] = (0,)) -> list[Fields]:
        """Add running Pods on any nodes; some are terminating, some have ended."""
        pods = []
        for _ in range(n):
            given = None if requests is None else dict(requests)
            pod = self.pod(node=self.node_name(), priority=self.pick(priorities), requests=given)
            if self.often(0.05):
                pod["metadata"] |= {"deletionTimestamp": moment(0), "deletionGracePeriodSeconds": 30}
            if self.often(0.03):
                pod["status"]["phase"] = self.pick(("Succeeded", "Failed"))
            pods.append(self.add("pods", pod))
        return pods

    def labels(self) -> dict[str, str]:
        labels = {"app": self.pick(APPS)}
        if self.often(0.6):
            labels["tier"] = self.pick(("frontend", "backend"))
        if self.often(0.5):
            labels["version"] = self.pick(("v1", "v2"))
        return labels

    def container(self, name: str, requests: Fields, image: str = "") -> Fields:
        resources = {"requests": requests} if requests else {}
        return {"name": name, "image": image or self.pick(IMAGES), "resources": resources}

    def requests(self, big: bool = False) -> Fields:
        requests: Fields = {}
        if self.often(0.8):
            small: tuple[str, ...] = ("0", "50m", "100m", "333m", "0.5", "1", "1500m")
            requests["cpu"] = self.pick((*small, "2", "3", "4") if big else small)
        if self.often(0.8):
            small = ("64Mi", "200Mi", "300M", "1Gi", "1.5Gi", "1e9")
            requests["memory"] = self.pick((*small, "3Gi", "6Gi", "8Gi") if big else small)
        if self.often(0.12):
            requests["ephemeral-storage"] = self.pick(("1Gi", "5Gi", "500M"))
        return requests

    # The result

    def case(self) -> Fields:
        for items in self.objects.values():
            items.sort(key=lambda item: (item["metadata"].get("namespace", ""), item["metadata"]["name"]))
        case = {
            "name": self.name, "family": self.family, "tags": self.tags, "objects": self.objects, "pod": self.target
        }  # fmt: skip
        return case if self.profile is None else case | {"profile": self.profile}


def name_of(fields: Fields) -> str:
    return str(fields["metadata"]["name"])


def moment(seconds: int) -> str:
    return datetime.fromtimestamp(_EPOCH_S + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
