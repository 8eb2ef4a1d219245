"""ImageLocality: prefers nodes that already hold the Pod's images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.framework.plugin import MAX_NODE_SCORE, ScorePlugin
from scheduler.framework.status import ScoreTerm
from scheduler.model.arrays import Rows
from scheduler.model.objects import Pod
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot

_MEBIBYTE = 1024 * 1024
MIN_BYTES = 23 * _MEBIBYTE
MAX_BYTES_PER_IMAGE = 1000 * _MEBIBYTE


class ImageLocality(ScorePlugin):
    """Scores the bytes that a node need not fetch, each image scaled by the share of nodes that hold it.

    The share keeps one image from drawing all its Pods to the few nodes that happened to fetch it first.
    Up to 23 MiB counts as nothing; 1000 MiB for each image that the Pod names is the best there is.

    Source: kube-scheduler v1.37 imagelocality/image_locality.go (behaviour).
    """

    def score(self, state: object, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> Sequence[ScoreTerm]:
        nodes = snapshot.nodes
        names = image_names(pod.pod)
        held_bytes = np.zeros(nodes.n_rows, dtype=np.int64)
        most_bytes = MAX_BYTES_PER_IMAGE * len(names)
        for name in names:
            found = nodes.image(name)
            if found is not None:
                size_bytes, holders = found
                scaled = int(float(size_bytes) * (len(holders) / nodes.n_alive))
                # More than all images together count for makes no difference, and could wrap.
                held_bytes[holders] += max(-most_bytes, min(most_bytes, scaled))
        if not held_bytes.any():
            return (ScoreTerm(self.name, held_bytes[rows]),)
        counted = np.maximum(held_bytes[rows], MIN_BYTES)
        np.minimum(counted, most_bytes, out=counted)
        counted -= MIN_BYTES
        counted *= MAX_NODE_SCORE
        return (ScoreTerm(self.name, counted // (most_bytes - MIN_BYTES)),)


def image_names(pod: Pod) -> list[str]:
    """Return the images of all containers and image volumes, repeated as often as they are named."""
    spec = pod.spec
    containers = [*(spec.init_containers or []), *(spec.containers or [])]
    names = [container.image for container in containers]
    names += [volume.image.reference for volume in spec.volumes or [] if volume.image is not None]
    return [_with_tag(name) for name in names]


def _with_tag(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
