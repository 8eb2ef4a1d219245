"""Reading /signals of a running Vane: whom to trust, and what to do where there is no answer.

A server on this machine mostly has made its certificate itself. It is taken as it is where its address is a loopback
one and nothing is sent that another program could steal by listening there first: no token. Everywhere else, and with
a token, the certificate has to be signed by an authority that is trusted.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import socket
import ssl
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from scheduler.errors import VaneError
from scheduler.tls import ClientTls, TlsFiles, TlsFilesError

DEFAULT_URL: Final = "https://127.0.0.1:10259"
SELF_SIGNED_NOTE: Final = "the certificate is not verified: self-signed, on this machine"

_TIMEOUT_S: Final = 12.0
_SELF_SIGNED: Final = (18, 19)
"""OpenSSL's X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT and X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN."""
_MAX_BYTES: Final = 256 << 20
_SHOWN: Final = 300


class TopError(VaneError):
    """No page; says what to do about it."""


class UnknownNameError(TopError):
    """The server knows no such signal or node."""


class Way(Protocol):
    """Another way to a server than a connection of one's own: through the API server, to the Pod that leads."""

    @property
    def name(self) -> str:
        """As users know it, for messages; the certificate behind it is not verified, the way itself is trusted."""

    def connect(self) -> socket.socket:
        """Return a new connection; a VaneError where there is none."""

    def problem(self) -> str:
        """Return what the other end says is wrong with the last connection; empty where it says nothing."""

    def token(self) -> str:
        """Return a token for a server that requires one; a VaneError where there is none."""


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """Where to read, and how to be let in; with a `way` the URL says nothing."""

    url: str = DEFAULT_URL
    token_file: Path | None = None
    ca_file: Path | None = None
    skips_verification: bool = False
    way: Way | None = None


class SignalsReader:
    """Reads the page again and again; `note` says what a user should know of the connection, empty before the first."""

    def __init__(self, server: ServerAccess) -> None:
        self._server = server
        try:
            parts = urllib.parse.urlsplit(server.url)
            self._host, self._port = parts.hostname or "", parts.port or 10259
        except ValueError as error:
            raise TopError(f"--url {server.url!r}: {error}. Write it as {DEFAULT_URL}") from error
        if parts.scheme != "https" or not self._host or parts.query or parts.username:
            raise TopError(f"--url: must be https and a host, got {server.url!r}. Write it as {DEFAULT_URL}")
        self._prefix = parts.path.rstrip("/")
        self._tls = _tls(server)
        self._token: str | None = None
        self._connected: http.client.HTTPSConnection | None = None
        self.note = "the certificate is not verified" if server.skips_verification else ""

    def read(self, **asked: str) -> dict[str, Any]:
        """Return the page.

        Raises
        ------
        TopError
            There is none; UnknownNameError where what is asked for is not known.
        """
        if self._server.way is not None:
            return self._read_through(self._server.way, asked)
        try:
            return self._read(asked)
        except ssl.SSLCertVerificationError as error:
            if error.verify_code not in _SELF_SIGNED or not self._may_be_self_signed:
                raise TopError(self._untrusted(error)) from error
            self._tls = ClientTls(verify=False)
            self.note = SELF_SIGNED_NOTE
            return self._read(asked)

    @property
    def _may_be_self_signed(self) -> bool:
        return self._server.ca_file is None and self._server.token_file is None and is_loopback(self._host)

    def close(self) -> None:
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    def _read(self, asked: dict[str, str]) -> dict[str, Any]:
        connection = http.client.HTTPSConnection(
            self._host, self._port, timeout=_TIMEOUT_S, context=self._tls.context()
        )
        try:
            status, body = self._answer(connection, asked)
        except ssl.SSLCertVerificationError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise TopError(self._unreachable(error)) from error
        finally:
            connection.close()
        return self._page(status, body)

    def _read_through(self, way: Way, asked: dict[str, str]) -> dict[str, Any]:
        """Read over the connection that is open, or over a new one: the leader may be another by now."""
        is_new = self._connected is None
        try:
            if self._connected is None:
                self._connected = _ThroughConnection(way, self._tls.context())
            status, body = self._answer(self._connected, asked)
            if status == http.client.UNAUTHORIZED and self._server.token_file is None:
                self._token = way.token()  # the first, or the one before has ended
                status, body = self._answer(self._connected, asked)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if is_new:
                raise TopError(f"{way.name}: {way.problem() or error or type(error).__name__}") from error
            return self._read_through(way, asked)
        except TopError:
            raise
        except VaneError as error:
            self.close()
            raise TopError(str(error)) from error
        return self._page(status, body)

    def _answer(self, connection: http.client.HTTPSConnection, asked: dict[str, str]) -> tuple[int, bytes]:
        page = f"{self._prefix}/signals?{urllib.parse.urlencode(asked)}"
        connection.request("GET", page, headers=self._headers())
        response = connection.getresponse()
        return response.status, response.read(_MAX_BYTES)

    def _headers(self) -> dict[str, str]:
        path = self._server.token_file
        if path is None:
            return {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            token = path.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise TopError(f"--token-file {path}: cannot be read: {error}") from error
        if not token or not token.isprintable() or " " in token:
            raise TopError(f"--token-file {path}: holds no token; it must be one word on one line")
        return {"Authorization": f"Bearer {token}"}

    def _page(self, status: int, body: bytes) -> dict[str, Any]:
        text = body[:_SHOWN].decode(errors="replace").strip()
        url = self._server.url if self._server.way is None else self._server.way.name
        if status == http.client.UNAUTHORIZED:
            has_token = self._server.token_file or self._server.way
            what = "refuses this token" if has_token else "requires a token"
            raise TopError(
                f"{url} {what}: {text}. Write --token-file FILE, with a token of an account that may get /signals: "
                "only a Vane that listens only on loopback needs none"
            )
        if status == http.client.FORBIDDEN:
            raise TopError(f"{url} does not allow this token to get /signals: {text}")
        if status == http.client.NOT_FOUND and text.startswith("/signals: "):
            raise UnknownNameError(text.removeprefix("/signals: "))
        if status != http.client.OK:
            raise TopError(f"{url} has no page /signals: HTTP {status}, {text!r}. Is that Vane, of this version?")
        try:
            page = json.loads(body)
        except ValueError as error:
            raise TopError(f"{url}/signals is not JSON: {error}. Is that Vane?") from error
        if not isinstance(page, dict) or not page.keys() >= {"signals", "rules", "nodes"}:
            raise TopError(f"{url}/signals is not the page of Vane, it begins {text[:60]!r}")
        return page

    def _unreachable(self, error: Exception) -> str:
        url = self._server.url
        if isinstance(error, ConnectionRefusedError):
            return (
                f"nothing listens at {url}. Is `vane run` up there, with this --secure-port? For one in the cluster: "
                "kubectl vane top"
            )
        if isinstance(error, TimeoutError):
            return f"{url} does not answer within {_TIMEOUT_S:g} s"
        if isinstance(error, ssl.SSLError):
            return f"{url} does not speak TLS as expected: {error.reason or error}. Is that the --secure-port of Vane?"
        return f"{url} cannot be read: {error or type(error).__name__}"

    def _untrusted(self, error: ssl.SSLCertVerificationError) -> str:
        why = error.verify_message or str(error)
        if is_loopback(self._host) and self._server.token_file is not None and error.verify_code in _SELF_SIGNED:
            why += "; a token is not sent to a server that is not trusted (Vane only on loopback needs none)"
        return (
            f"the certificate of {self._server.url} is not trusted: {why}. Write --ca-file FILE with the authority "
            "that signed it, or --insecure-skip-tls-verify to connect anyway"
        )


class _ThroughConnection(http.client.HTTPSConnection):
    """HTTPS over a connection that a `Way` opens."""

    def __init__(self, way: Way, context: ssl.SSLContext) -> None:
        super().__init__("localhost", timeout=_TIMEOUT_S, context=context)
        self._way = way
        self._trust = context

    def connect(self) -> None:
        plain = self._way.connect()
        plain.settimeout(_TIMEOUT_S)
        self.sock = self._trust.wrap_socket(plain, server_hostname="localhost")


def is_loopback(host: str) -> bool:
    """Whether only this machine can be behind an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(server: ServerAccess) -> ClientTls:
    if server.skips_verification or server.way is not None:
        return ClientTls(verify=False)
    try:
        return ClientTls(TlsFiles(None if server.ca_file is None else str(server.ca_file)))
    except TlsFilesError as error:
        raise TopError(f"--ca-file: {error}") from error
