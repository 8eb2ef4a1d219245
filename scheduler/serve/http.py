"""The HTTPS server: an event loop in a thread of its own, beside the refresher's threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
import time
from typing import Final

from aiohttp import web

from scheduler.errors import ConfigError
from scheduler.serve.access import Gate, Reviews
from scheduler.serve.pages import PageSource, create_app
from scheduler.serve.tls import ServingCertificate
from scheduler.settings.settings import ServingSettings

CERTIFICATE_LOOK_S: Final = 10.0
"""How often the certificate's files are looked at; kubelet brings a new Secret within a minute or so."""

_START_LIMIT_S: Final = 30.0
_STOP_LIMIT_S: Final = 5.0

_log = logging.getLogger(__name__)


class Server:
    """Serves the pages from `start` to `stop`; with `secure_port` 0 it serves nothing, as kube-scheduler."""

    def __init__(
        self,
        settings: ServingSettings,
        source: PageSource,
        reviews: Reviews | None = None,
        certificate_look_s: float = CERTIFICATE_LOOK_S,
    ) -> None:
        self._settings = settings
        self._source = source
        self._gate = Gate(reviews, settings.unauthenticated_metrics, time.monotonic)
        self._certificate_look_s = certificate_look_s
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None

    @property
    def url(self) -> str:
        host = self._settings.bind_address
        return f"https://{f'[{host}]' if ':' in host else host}:{self._settings.secure_port}"

    def start(self) -> None:
        """Return once the port is open.

        Raises
        ------
        ConfigError
            Where the port cannot be had or the certificate not be used.
        """
        if self._thread is not None:
            raise RuntimeError("the server was started already")
        if not self._settings.secure_port:
            _log.info("no pages are served: the secure port is 0")
            return
        settings = self._settings
        certificate = ServingCertificate(settings.tls_cert_file, settings.tls_private_key_file, settings.bind_address)
        opened: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._run, args=(certificate, opened), name="serve", daemon=True)
        self._thread.start()
        opened.result(_START_LIMIT_S)
        _log.info("serving health and metrics", extra={"url": self.url})

    def stop(self) -> None:
        """Close the port, give running answers a moment, and end the thread; a second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None or self._ended is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._ended.set)
        thread.join(_STOP_LIMIT_S)

    def _run(self, certificate: ServingCertificate, opened: concurrent.futures.Future[None]) -> None:
        try:
            asyncio.run(self._serve(certificate, opened))
        except Exception as error:  # noqa: BLE001 - whoever waits in `start` gets it, or else the log
            if opened.done():
                _log.critical("the server of health and metrics ended", exc_info=error)
            else:
                opened.set_exception(error)

    async def _serve(self, certificate: ServingCertificate, opened: concurrent.futures.Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        settings = self._settings
        runner = web.AppRunner(
            create_app(self._source, self._gate),
            handle_signals=False,
            access_log=None,
            shutdown_timeout=1.0,
            keepalive_timeout=75.0,
        )
        await runner.setup()
        try:
            site = web.TCPSite(runner, settings.bind_address, settings.secure_port, ssl_context=certificate.context)
            try:
                await site.start()
            except OSError as error:
                found = f"got {error.strerror or error}. Write another address or port, or --secure-port 0 for no pages"
                place = f"--bind-address {settings.bind_address}, --secure-port {settings.secure_port}"
                raise ConfigError(f"{place}: cannot listen there, {found}") from error
            opened.set_result(None)
            await self._until_ended(self._ended, certificate)
        finally:
            self._gate.close()
            await runner.cleanup()

    async def _until_ended(self, ended: asyncio.Event, certificate: ServingCertificate) -> None:
        while True:
            try:
                await asyncio.wait_for(ended.wait(), self._certificate_look_s)
            except TimeoutError:
                certificate.reload_if_changed()
            else:
                return
