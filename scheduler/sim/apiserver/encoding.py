"""Stored objects as bytes of answers."""

from __future__ import annotations

import msgspec

from scheduler.sim.apiserver.history import Stored
from scheduler.sim.apiserver.kinds import kind_of
from scheduler.sim.apiserver.resources import Resource


def encode_item(resource: Resource, stored: Stored) -> bytes:
    """Return an object as it stands in a list: without kind and apiVersion."""
    if not resource.storage:
        return stored.encoded
    return msgspec.json.encode(kind_of(resource).from_stored(resource, stored.copy()))


def encode_object(resource: Resource, stored: Stored) -> bytes:
    head = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'
    return head.encode() + encode_item(resource, stored)[1:]
