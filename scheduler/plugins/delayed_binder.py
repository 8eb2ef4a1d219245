"""DelayedBinder: proposes a node, and binds the Pod once the node is confirmed."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.framework.args import PluginArgs
from scheduler.framework.events import Action, ClusterEvent, EventInterest, QueueingHint, Resource
from scheduler.framework.instructions import Bind, PatchPod
from scheduler.framework.plugin import BindPlugin, PermitPlugin
from scheduler.framework.status import Code, Status, Wait
from scheduler.model.pods import PodInfo
from scheduler.model.quantity import parse_duration
from scheduler.plugins.shared.pod_selection import EVERY_POD, PodSelection, annotations_of

PROPOSED = "vane.dev/proposed-node"
CONFIRMED = "vane.dev/confirmed-node"
NO_NODE = "none"
"""The confirmation that refuses the proposal; a node of this name could not be confirmed."""

LONGEST_WAIT_S = 900.0
"""What kube-scheduler lets a Pod wait at Permit at most."""

_REFUSED = Status(Code.UNSCHEDULABLE, (f'annotation {CONFIRMED} is "{NO_NODE}"',))


class DelayedBinderArgs(PluginArgs, frozen=True):
    """`timeout` is how long a proposal stands; other Pods than `pods` go on at once, to the next Bind plugin."""

    timeout: str = "10m"
    pods: PodSelection = EVERY_POD

    def __post_init__(self) -> None:
        try:
            seconds = parse_duration(self.timeout)
        except ValueError as error:
            raise ValueError(f"timeout: {error}") from error
        if not 0 < seconds <= LONGEST_WAIT_S:
            raise ValueError(
                f"timeout: must be more than 0 and at most 15m, got {self.timeout!r}. Write for example 5m"
            )


class DelayedBinder(PermitPlugin, BindPlugin):
    """Lets a Pod wait at Permit, with its room taken, until the annotation CONFIRMED names the node in PROPOSED.

    "none" sends it back; any other value was meant for another proposal, so it counts for nothing. A call to
    `/permit/<namespace>/<name>` of Vane decides too. What was refused is tried again when the confirmation changes.
    """

    Args = DelayedBinderArgs

    def __init__(self, args: DelayedBinderArgs) -> None:
        self._pods = args.pods
        self._timeout_s = parse_duration(args.timeout)

    def permit(self, state: object, pod: PodInfo, node_name: str) -> Status | Wait | None:
        if not self._pods.takes(pod):
            return None
        confirmed = annotations_of(pod).get(CONFIRMED)
        if confirmed == node_name:
            return None
        if confirmed == NO_NODE:
            return _REFUSED
        return Wait(self._timeout_s, (PatchPod.of(pod, {PROPOSED: node_name}),))

    def reconsider(self, state: object, pod: PodInfo, node_name: str) -> Status | Wait | None:
        return self.permit(state, pod, node_name)

    def bind(self, state: object, pod: PodInfo, node_name: str) -> Bind | None:
        return Bind.of(pod, node_name) if self._pods.takes(pod) else None

    def events(self) -> Sequence[EventInterest]:
        return (EventInterest(Resource.TARGET_POD, Action.UPDATE, _is_confirmed_anew),)


def _is_confirmed_anew(pod: PodInfo, event: ClusterEvent) -> QueueingHint:
    """Not for every update: our own proposal is one too."""
    old, new = event.old, event.new
    if not isinstance(old, PodInfo) or not isinstance(new, PodInfo) or new.uid != pod.uid:
        return QueueingHint.SKIP
    before, after = annotations_of(old).get(CONFIRMED), annotations_of(new).get(CONFIRMED)
    return QueueingHint.QUEUE if before != after and after != NO_NODE else QueueingHint.SKIP
