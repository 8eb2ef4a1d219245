"""RemoteBinder: binds the Pod of the same namespace and name at another cluster's API server."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from scheduler.framework.args import PluginArgs
from scheduler.framework.instructions import Bind, PatchPod
from scheduler.framework.plugin import BindPlugin, PostBindPlugin
from scheduler.model.pods import PodInfo
from scheduler.plugins.shared.pod_selection import EVERY_POD, PodSelection

CLUSTER = "vane.dev/cluster"
NODE = "vane.dev/node"


class RemoteBinderArgs(PluginArgs, frozen=True):
    """`cluster` is a name in the setting `clusters`; other Pods than `pods` are left to the next Bind plugin."""

    cluster: str
    pods: PodSelection = EVERY_POD

    def __post_init__(self) -> None:
        if not self.cluster:
            raise ValueError("cluster: got ''. Write a name that `clusters` gives to a kubeconfig")


class RemoteBinder(BindPlugin, PostBindPlugin):
    """Decides on the nodes and Pods of this cluster, and binds there.

    The Pod here stays unbound. It shows the decision in the annotations CLUSTER and NODE and in
    `status.nominatedNodeName`, which also keeps its room through a restart of Vane.
    """

    Args = RemoteBinderArgs

    def __init__(self, args: RemoteBinderArgs) -> None:
        self._args = args

    def clusters(self) -> Collection[str]:
        return (self._args.cluster,)

    def bind(self, state: object, pod: PodInfo, node_name: str) -> Bind | None:
        return Bind.of(pod, node_name, self._args.cluster) if self._args.pods.takes(pod) else None

    def postbind(self, state: object, pod: PodInfo, node_name: str) -> Sequence[PatchPod]:
        if not self._args.pods.takes(pod):
            return ()
        annotations = {CLUSTER: self._args.cluster, NODE: node_name}
        return (PatchPod.of(pod, annotations, nominated_node_name=node_name),)
