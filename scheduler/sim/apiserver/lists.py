"""Gets and lists: whole objects, pages of them, and tables."""

from __future__ import annotations

import base64
from typing import Final

import msgspec

from scheduler.sim.apiserver.failures import StatusError, bad_request
from scheduler.sim.apiserver.history import Stored, place_of
from scheduler.sim.apiserver.kinds import kind_of
from scheduler.sim.apiserver.resources import Json, ServedResource
from scheduler.sim.apiserver.store import ObjectStore
from scheduler.sim.apiserver.tables import encode_table, wants_table
from scheduler.sim.apiserver.target import RequestQuery, Target

_TOO_LARGE: Final = "ResourceVersionTooLarge"


class _Token(msgspec.Struct):
    """Where a list goes on: after `start`, as it was at version `rv`."""

    v: str
    rv: int
    start: str


def read_one(store: ObjectStore, target: Target, query: RequestQuery, accept: str) -> bytes:
    stored = store.stored(target.resource, target.namespace, target.name)
    check_version(store, query.version())
    if wants_table(accept):
        return encode_table(target.resource, [stored], {"resourceVersion": str(stored.version)}, store.now())
    return encode_object(target.resource, stored)


def read_list(store: ObjectStore, target: Target, query: RequestQuery, accept: str) -> bytes:
    """Return a list, or a page of one where `limit` is given; resourceVersion 0 switches the limit off."""
    select = query.selector(target.resource)
    asked, limit = query.version(), query.number("limit") or 0
    check_version(store, asked)
    token = _read_token(query.text("continue"))
    history = store.history(target.resource)
    if token is None:
        version, objects = store.version, history.objects
        if query.text("resourceVersionMatch") == "Exact" and asked:
            version, objects = asked, history.at(asked)
    else:
        version, objects = token.rv, history.at(token.rv)
    found = sorted(
        (place_of(key), stored)
        for key, stored in objects.items()
        if target.namespace in ("", key[0]) and (token is None or place_of(key) > token.start) and select(stored.object)
    )
    metadata: Json = {"resourceVersion": str(version)}
    if 0 < limit < len(found) and not (asked == 0 and token is None):
        metadata["continue"] = _write_token(_Token("v1", version, found[limit - 1][0]))
        if select_is_plain(query):
            metadata["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    page = [stored for _, stored in found]
    if wants_table(accept):
        return encode_table(target.resource, page, metadata, store.now())
    return _encode_list(target, page, metadata)


def check_version(store: ObjectStore, asked: int | None) -> None:
    """Raise StatusError 504 where a version is asked for that there isn't yet."""
    if asked is not None and asked > store.version:
        details = {"causes": [{"reason": _TOO_LARGE, "message": "Too large resource version"}], "retryAfterSeconds": 1}
        message = f"Timeout: Too large resource version: {asked}, current: {store.version}"
        raise StatusError(504, "Timeout", message, details)


def select_is_plain(query: RequestQuery) -> bool:
    """Whether a list has no selector, so that what is left of it is known without looking."""
    return not query.text("labelSelector") and not query.text("fieldSelector")


def encode_item(resource: ServedResource, stored: Stored) -> bytes:
    """Return an object as it stands in a list: without kind and apiVersion."""
    if not resource.storage:
        return stored.encoded
    return msgspec.json.encode(kind_of(resource).from_stored(resource, stored.copy()))


def encode_object(resource: ServedResource, stored: Stored) -> bytes:
    head = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'
    return head.encode() + encode_item(resource, stored)[1:]


def _encode_list(target: Target, page: list[Stored], metadata: Json) -> bytes:
    resource = target.resource
    head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":'.encode()
    items = b",".join(encode_item(resource, stored) for stored in page)
    return head + msgspec.json.encode(metadata) + b',"items":[' + items + b"]}"


def _write_token(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _read_token(text: str) -> _Token | None:
    if not text:
        return None
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Token)
    except (ValueError, msgspec.MsgspecError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
