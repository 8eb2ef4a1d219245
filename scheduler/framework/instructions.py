"""Side effects as values: what a plugin wants done, for `loop` to carry out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.model.pods import PodInfo


@dataclass(frozen=True, slots=True)
class Bind:
    """Create the `pods/binding` of a Pod; the UID keeps a recreated Pod of the same name safe.

    cluster
        The name of another API server among `clusters` in the configuration, where a Pod of the same namespace and
        name is bound instead; "" for our own.
    annotations
        Put on the Pod by the bind itself, so that neither is there without the other.
    """

    namespace: str
    name: str
    uid: str
    node_name: str
    cluster: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, pod: PodInfo, node_name: str, cluster: str = "") -> Bind:
        metadata = pod.pod.metadata
        return cls(metadata.namespace, metadata.name, metadata.uid, node_name, cluster)


@dataclass(frozen=True, slots=True)
class PatchPod:
    """Write annotations (None removes one) and, unless None, `status.nominatedNodeName` ("" removes it).

    It goes to `pods/status`, which lets metadata be changed too, so that no right to change Pods is needed.
    """

    namespace: str
    name: str
    uid: str
    annotations: Mapping[str, str | None] = field(default_factory=dict)
    nominated_node_name: str | None = None

    @classmethod
    def of(
        cls, pod: PodInfo, annotations: Mapping[str, str | None], nominated_node_name: str | None = None
    ) -> PatchPod:
        metadata = pod.pod.metadata
        return cls(metadata.namespace, metadata.name, metadata.uid, annotations, nominated_node_name)


@dataclass(frozen=True, slots=True)
class Receiver:
    """An HTTP receiver of CloudEvents; the files are read where the request is made, each time."""

    url: str
    token_file: str | None = None
    ca_file: str | None = None


@dataclass(frozen=True, slots=True)
class Notify:
    """Send a CloudEvent: `id` tells repeated deliveries apart from new events, `data` is plain JSON data."""

    receiver: Receiver
    id: str
    type: str
    subject: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PatchObject:
    """Write annotations and fields of the spec of an object of the catalog, if it is still of this version.

    Both are merged over what is there. A newer version, and none at all, end the attempt as a fault does.
    """

    kind: str
    namespace: str
    name: str
    resource_version: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Wait until the plugin's `still_awaits` names nothing any more, at most `timeout_s` seconds.

    too_late
        What the attempt fails with after that.
    """

    timeout_s: float
    too_late: str


Instruction = Bind | PatchPod | Notify
"""What PostBind may ask for; `loop` carries it out at any time."""

Preparation = PatchPod | PatchObject | WaitFor
"""What PreBind may ask for, one after the other."""
