"""The roll call: which Pods of our schedulers had no node yet, when the lease had just become ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from scheduler.kube.api_objects import BriefMeta, ListMeta
from scheduler.kube.transport import Transport
from scheduler.kube.watch_stream import MalformedStreamError
from scheduler.model.objects import Pod
from scheduler.model.structs import MALFORMED_JSON

ONLY_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PAGE_SIZE = 500

ROLL_CALL_LIFE_S = 60.0
"""In which a watch that lags has caught up, or was found to be dead and begun anew with a list."""

_PODS_PATH = "/api/v1/pods"
_TIMEOUT_S = 60.0


class _Item(msgspec.Struct):
    metadata: BriefMeta


class _PendingPods(msgspec.Struct):
    metadata: ListMeta
    items: list[_Item] | None = None


_pages = msgspec.json.Decoder(_PendingPods)


@dataclass(frozen=True, slots=True)
class RollCall:
    """A consistent list of the pending Pods of our schedulers, taken after the lease was ours.

    The watch may lag behind what the leader before us has done. What it shows is older than the list where its
    resourceVersion is not greater (those of one API server are comparable numbers), and then only Pods on the list may
    be tried: the others have been bound or deleted, and the watch is about to say so.

    This holds for `ROLL_CALL_LIFE_S` only. Where the API server's store was restored from a backup, versions begin
    again below that of the list; and a bind that comes too early is refused by the API server.
    """

    resource_version: int
    pending: frozenset[str]

    def is_overtaken(self, pod: Pod) -> bool:
        """Return whether a Pod that the watch shows as pending is known to be bound or deleted."""
        version = pod.metadata.resource_version
        return version.isdecimal() and int(version) <= self.resource_version and pod.metadata.uid not in self.pending


EVERYONE = RollCall(0, frozenset())
"""Without leader election: there was no leader before us."""


def call_the_roll(transport: Transport, scheduler_names: Sequence[str]) -> RollCall:
    """List the pending Pods of each scheduler; all pages of a list show the same moment.

    Raises
    ------
    ApiError, TransportError
        A page did not come, or the pages took longer than their moment is kept (410): begin again.
    MalformedStreamError
        What came is not a list, or does not say of which moment.
    """
    pending: set[str] = set()
    versions = []
    for name in scheduler_names:
        versions.append(_list(transport, name, pending))
    return RollCall(min(versions), frozenset(pending))


def _list(transport: Transport, scheduler_name: str, pending: set[str]) -> int:
    params = {"fieldSelector": f"spec.nodeName=,spec.schedulerName={_escape(scheduler_name)}", "limit": str(PAGE_SIZE)}
    while True:
        body = transport.get(_PODS_PATH, params, _TIMEOUT_S, ONLY_METADATA)
        try:
            page = _pages.decode(body)
        except MALFORMED_JSON as error:
            raise MalformedStreamError(f"list of pending Pods: {error}") from error
        uids = {item.metadata.uid for item in page.items or ()}
        if "" in uids:
            raise MalformedStreamError("list of pending Pods: a Pod without a UID")
        pending |= uids
        if not page.metadata.continue_:
            break
        params = {**params, "continue": page.metadata.continue_}
    if not page.metadata.resource_version.isdecimal():
        raise MalformedStreamError(f"list of pending Pods: resourceVersion {page.metadata.resource_version!r}")
    return int(page.metadata.resource_version)


def _escape(value: str) -> str:
    """Escape a value as apimachinery's fields.EscapeValue."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
