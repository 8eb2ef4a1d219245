"""The roll call: a consistent list of the Pods of our schedulers that have no node, taken once the lease is ours."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from scheduler.kube.roll_call import RollCall
from scheduler.kube.transport import Transport
from scheduler.kube.watch_stream import MalformedStreamError
from scheduler.model.structs import MALFORMED_JSON

ONLY_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PAGE_SIZE = 500

_PODS_PATH = "/api/v1/pods"
_TIMEOUT_S = 60.0


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Metadata(msgspec.Struct):
    uid: str


class _Item(msgspec.Struct):
    metadata: _Metadata


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[_Item] | None = None


_pages = msgspec.json.Decoder(_Page)


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
        pending.update(item.metadata.uid for item in page.items or ())
        if not page.metadata.continue_:
            break
        params = {**params, "continue": page.metadata.continue_}
    if not page.metadata.resource_version.isdecimal():
        raise MalformedStreamError(f"list of pending Pods: resourceVersion {page.metadata.resource_version!r}")
    return int(page.metadata.resource_version)


def _escape(value: str) -> str:
    """Escape a value as apimachinery's fields.EscapeValue."""
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
