"""What arrives: services with a latency target, batch jobs and GPU jobs, all drawn from one seed.

What a Pod asks for and what it really uses differ, as they do in real clusters: that is what requests cannot show
and live metrics can. The true use is known to the simulated nodes only, never to the scheduler.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from scheduler.sim.nodes import GPU_RESOURCE

Json = dict[str, Any]

NAMESPACE: Final = "shop"
WEB: Final = "web"
BATCH: Final = "batch"
TRAIN: Final = "train"

_KINDS: Final = (WEB, BATCH, TRAIN)
_SHARES: Final = (0.44, 0.44, 0.12)
_GIB: Final = 2.0**30


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a Pod really does, whatever it asks for."""

    cpu_cores: float
    memory_bytes: float
    requests_per_s: float = 0.0
    framebuffer_mib: float = 0.0
    gpu_util_percent: float = 0.0


@dataclass(frozen=True, slots=True)
class Arrival:
    """One Pod to come: `at_s` after the start of the tour, running for `life_s` once it is bound.

    cpu_millis, memory_mib, gpu_slices
        What it asks for.
    """

    at_s: float
    name: str
    kind: str
    cpu_millis: int
    memory_mib: int
    gpu_slices: int
    behaviour: Behaviour
    life_s: float

    @property
    def ends_by_itself(self) -> bool:
        """Whether it is a job; a service is scaled down from outside."""
        return self.kind != WEB


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """Of what a kind of workload asks; `use`: lowest and highest factor on that CPU; `life_s`: shortest and longest."""

    cpu_millis: int
    memory_mib: int
    gpu_slices: int
    use: tuple[float, float]
    life_s: tuple[float, float]


# A service is given more than it needs and jobs less: both are the rule in published traces of real clusters.
KINDS: Final = {
    WEB: WorkloadKind(cpu_millis=700, memory_mib=768, gpu_slices=0, use=(0.2, 1.3), life_s=(12.0, 30.0)),
    BATCH: WorkloadKind(cpu_millis=500, memory_mib=512, gpu_slices=0, use=(0.6, 3.6), life_s=(8.0, 22.0)),
    TRAIN: WorkloadKind(cpu_millis=500, memory_mib=1024, gpu_slices=1, use=(0.4, 1.2), life_s=(16.0, 34.0)),
}


def arrivals(seed: int, length_s: float, n_first: int, per_s: float) -> Sequence[Arrival]:
    """Return the Pods that come within `length_s`, in that order: `n_first` within a second, then so many a second.

    The same seed gives the same Pods; a longer time, more of them.
    """
    rng = random.Random(f"arrivals {seed}")  # nosec B311 # a demo that can be repeated
    counters = dict.fromkeys(_KINDS, 0)
    times = [i / n_first for i in range(n_first)] + [1.0 + i / per_s for i in range(int((length_s - 1.0) * per_s))]
    found = []
    for at_s in times:
        kind = rng.choices(_KINDS, _SHARES)[0]
        counters[kind] += 1
        found.append(_arrival(rng, f"{kind}-{counters[kind]}", kind, at_s))
    return found


def _arrival(rng: random.Random, name: str, kind: str, at_s: float) -> Arrival:
    asked = KINDS[kind]
    cores = asked.cpu_millis / 1000.0 * rng.uniform(*asked.use)
    behaviour = Behaviour(
        cpu_cores=cores,
        memory_bytes=asked.memory_mib / 1024.0 * _GIB * rng.uniform(0.5, 1.2),
        requests_per_s=rng.uniform(20.0, 80.0) if kind == WEB else 0.0,
        framebuffer_mib=rng.uniform(3_000.0, 10_000.0) if kind == TRAIN else 0.0,
        gpu_util_percent=rng.uniform(10.0, 25.0) if kind == TRAIN else 0.0,
    )
    life_s = rng.uniform(*asked.life_s)
    return Arrival(at_s, name, kind, asked.cpu_millis, asked.memory_mib, asked.gpu_slices, behaviour, life_s)


def manifest(arrival: Arrival) -> Json:
    """Return the Pod object, as a user would write it: its requests, and `schedulerName: vane`."""
    requests = {"cpu": f"{arrival.cpu_millis}m", "memory": f"{arrival.memory_mib}Mi"}
    resources: Json = {"requests": requests}
    if arrival.gpu_slices:
        # Extended resources cannot be overcommitted: the request must equal the limit.
        resources["limits"] = {GPU_RESOURCE: str(arrival.gpu_slices)}
        requests[GPU_RESOURCE] = str(arrival.gpu_slices)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": arrival.name, "namespace": NAMESPACE, "labels": {"tier": arrival.kind}},
        "spec": {
            "schedulerName": "vane",
            "containers": [{"name": "main", "image": f"example.com/{arrival.kind}:1", "resources": resources}],
        },
    }
