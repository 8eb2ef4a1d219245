"""AnnotationBinder: writes the decision into an annotation, for another component to bind the Pod."""

from __future__ import annotations

from scheduler.framework.args import PluginArgs
from scheduler.framework.instructions import PatchPod
from scheduler.framework.plugin import BindPlugin
from scheduler.model.pods import PodInfo
from scheduler.plugins.shared.pod_selection import EVERY_POD, PodSelection, check_key


class AnnotationBinderArgs(PluginArgs, frozen=True):
    """`annotation` gets the node's name; other Pods than `pods` are left to the next Bind plugin."""

    annotation: str = "vane.dev/node"
    pods: PodSelection = EVERY_POD

    def __post_init__(self) -> None:
        check_key("annotation", self.annotation)


class AnnotationBinder(BindPlugin):
    """Writes the node into an annotation and into `status.nominatedNodeName`; the Pod stays unbound.

    Its room stays taken until the Pod is seen bound or deleted. The nomination keeps the promise where all schedulers
    look: a Vane that starts anew counts the room before it tries the Pod again, and tries the same node first.
    """

    Args = AnnotationBinderArgs

    def __init__(self, args: AnnotationBinderArgs) -> None:
        self._args = args

    def bind(self, state: object, pod: PodInfo, node_name: str) -> PatchPod | None:
        if not self._args.pods.takes(pod):
            return None
        return PatchPod.of(pod, {self._args.annotation: node_name}, nominated_node_name=node_name)
