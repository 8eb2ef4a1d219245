"""ApiServer: an ObjectStore over HTTP/1.1, in the caller's event loop.

It speaks plain HTTP on loopback and ignores credentials.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from aiohttp import web

from scheduler.errors import ConfigError
from scheduler.sim.apiserver.discovery import discover
from scheduler.sim.apiserver.failures import StatusError
from scheduler.sim.apiserver.lists import read_list, read_one
from scheduler.sim.apiserver.store import ObjectStore
from scheduler.sim.apiserver.target import RequestQuery, find_target, not_served, verb_of
from scheduler.sim.apiserver.watches import BOOKMARK_S, Ending, follow
from scheduler.sim.apiserver.writes import write

MAX_BODY_BYTES: Final = 3 * 1024 * 1024
"""The real API server's limit of a request."""

_log = logging.getLogger(__name__)


class ApiServer:
    """Serves a store from `start` to `stop`; watches get a bookmark every `bookmark_s` where they allow it."""

    def __init__(self, store: ObjectStore, bookmark_s: float = BOOKMARK_S) -> None:
        self._store = store
        self._bookmark_s = bookmark_s
        self._ending = Ending()
        self._runner: web.AppRunner | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Open the port, 0 for any that is free, and return the URL.

        Raises
        ------
        ConfigError
            The port cannot be had.
        """
        if self._runner is not None:
            raise RuntimeError("the server was started already")
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._answer)
        # With cancellation, so that a watch whose client has gone ends at once and not with its time.
        runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=1.0, handler_cancellation=True
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, port)
            await site.start()
        except OSError as error:
            await runner.cleanup()
            found = error.strerror or str(error)
            raise ConfigError(
                f"embedded API server: cannot listen on {host}:{port}, got {found}; write another port, or 0 for any"
            ) from error
        self._runner = runner
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{runner.addresses[0][1]}"

    async def stop(self) -> None:
        """End all watches and close the port; a second call does nothing."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self._ending.set()
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._serve(request)
        except StatusError as error:
            return web.json_response(error.status, status=error.code, headers=_retry_after(error))
        except web.HTTPRequestEntityTooLarge as error:
            too_large = StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {error.text}", {})
            return web.json_response(too_large.status, status=413)
        except ConnectionError:
            raise
        except Exception as error:  # noqa: BLE001 - as the real API server: a fault fails its own request only
            _log.exception("embedded API server: %s %s", request.method, request.path_qs)
            fault = StatusError(500, "InternalError", f"Internal error occurred: {error!r}", {})
            return web.json_response(fault.status, status=500)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        target = find_target(request.path)
        query = RequestQuery(request.query)
        accept = request.headers.get("Accept", "")
        if target is None:
            page = discover(request.path, accept) if request.method in ("GET", "HEAD") else None
            if page is None:
                raise not_served(request.path)
            return web.Response(body=page.body, headers={"Content-Type": page.content_type})
        verb = verb_of(request.method, target, query)
        if verb == "watch":
            return await follow(request, self._store, target, query, self._ending, self._bookmark_s)
        if verb == "list":
            return _json(read_list(self._store, target, query, accept))
        if verb == "get":
            return _json(read_one(self._store, target, query, accept))
        code, answer = write(self._store, verb, target, query, await request.read(), request.content_type)
        return _json(msgspec.json.encode(answer), code)


def kubeconfig(url: str) -> str:
    """Return a kubeconfig for the server at `url`, as YAML, for `vane run --kubeconfig` and kubectl."""
    return (
        "apiVersion: v1\nkind: Config\ncurrent-context: vane-demo\n"
        f'clusters:\n- name: vane-demo\n  cluster: {{server: "{url}"}}\n'
        "contexts:\n- name: vane-demo\n  context: {cluster: vane-demo, user: vane-demo}\n"
        "users:\n- name: vane-demo\n  user: {}\n"
    )


def _json(body: bytes, code: int = 200) -> web.Response:
    return web.Response(body=body, status=code, content_type="application/json")


def _retry_after(error: StatusError) -> dict[str, str]:
    seconds = error.status.get("details", {}).get("retryAfterSeconds")
    return {} if seconds is None else {"Retry-After": str(seconds)}
