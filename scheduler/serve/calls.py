"""Calls that set a Pod free which waits at Permit: `POST /permit/NAMESPACE/NAME` with `{"allow": true}`, or
`{"allow": false, "message": "why"}`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from aiohttp import web

from scheduler.loop.messages import PermitCall
from scheduler.model.structs import MALFORMED_JSON

PATH: Final = "/permit/{namespace}/{name}"
MAX_MESSAGE: Final = 1_000

_EXAMPLE: Final = 'Write {"allow": true}, or {"allow": false, "message": "why"}'


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    allow: bool
    message: str = ""


_bodies = msgspec.json.Decoder(_Body)


async def read_call(request: web.Request) -> PermitCall | web.Response:
    """Return the call, or what is wrong with it: 415 or 400.

    The content type is required because a web page in a browser cannot send it without asking first.
    """
    if request.content_type != "application/json":
        found = f"got Content-Type {request.content_type!r}. Write application/json"
        return _refusal(415, f"must be JSON, {found}")
    try:
        body = _bodies.decode(await request.read())
    except MALFORMED_JSON as error:
        return _refusal(400, f"{error}. {_EXAMPLE}")
    if body.allow and body.message:
        return _refusal(400, f"message: goes with allow false only. {_EXAMPLE}")
    if len(body.message) > MAX_MESSAGE:
        return _refusal(400, f"message: must have at most {MAX_MESSAGE} characters, got {len(body.message)}")
    place = request.match_info
    return PermitCall(place["namespace"], place["name"], body.allow, body.message)


def answer(call: PermitCall, waiting: bool) -> web.Response:
    """Return 200 where the Pod was waiting, 404 where not."""
    if waiting:
        return _json(200, {"waiting": True})
    text = f"no Pod {call.namespace}/{call.name} waits here; of all replicas only the leader knows the Pods that wait"
    return _json(404, {"waiting": False, "message": text})


def _refusal(status: int, message: str) -> web.Response:
    return _json(status, {"message": message})


def _json(status: int, body: dict[str, Any]) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body) + b"\n", content_type="application/json")
