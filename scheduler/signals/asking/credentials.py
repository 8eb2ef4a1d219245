"""With what we present ourselves to a Prometheus, in files that others rotate: token, password, certificate.

What is read here is never logged, and stands in no `repr`.
"""

from __future__ import annotations

import base64
import os
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from urllib3 import HTTPConnectionPool, PoolManager

from scheduler.signals.asking.query_errors import CertificateRefused, CredentialsUnreadable
from scheduler.tls import ClientTls, TlsFiles, TlsFilesError

REREAD_S: Final = 60.0
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_PASSWORD: Final = re.compile(r"[^\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Access:
    """The credentials that we send, and which authorities to trust; `ca_file` replaces the system's authorities.

    A user has a password file, a certificate its key; a token and a user exclude each other.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    bearer_token_file: Path | None = None
    ca_file: Path | None = None
    username: str = ""
    password_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


class SecretFile:
    """A secret that others rotate: read again after a minute, or when a server refuses it."""

    def __init__(self, path: Path, clock: Callable[[], float], kind: str, form: re.Pattern[str]) -> None:
        self._path = path
        self._clock = clock
        self._kind = kind
        self._form = form
        self._text = ""
        self._read_at_s = -REREAD_S

    @classmethod
    def of_token(cls, path: Path, clock: Callable[[], float]) -> SecretFile:
        return cls(path, clock, "token", _TOKEN)

    @classmethod
    def of_password(cls, path: Path, clock: Callable[[], float]) -> SecretFile:
        return cls(path, clock, "password", _PASSWORD)

    def text(self) -> str:
        if not self._text or self._clock() - self._read_at_s >= REREAD_S:
            self.reread()
        return self._text

    def reread(self) -> bool:
        """Read now; return whether the secret is another one.

        Raises
        ------
        CredentialsUnreadable
            No such file, or nothing in it that could be one; its content is not shown.
        """
        try:
            text = self._path.read_bytes().decode()
        except OSError as error:
            raise CredentialsUnreadable(f"{self._kind} file {self._path} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError:
            text = ""
        text = text.strip() if self._form is _TOKEN else text.rstrip("\r\n")
        if not self._form.fullmatch(text):
            raise CredentialsUnreadable(f"{self._kind} file {self._path} must hold one {self._kind} on one line")
        is_new = text != self._text
        self._text, self._read_at_s = text, self._clock()
        return is_new


class Authorization:
    """The header of that name, by a token or by a user with a password."""

    def __init__(self, access: Access, clock: Callable[[], float]) -> None:
        self._username = access.username
        self._secret: SecretFile | None = None
        if access.bearer_token_file is not None:
            self._secret = SecretFile.of_token(access.bearer_token_file, clock)
        elif access.password_file is not None:
            self._secret = SecretFile.of_password(access.password_file, clock)

    def header(self) -> dict[str, str]:
        """Return the header, or nothing where neither is set."""
        if self._secret is None:
            return {}
        secret = self._secret.text()
        if not self._username:
            return {"Authorization": f"Bearer {secret}"}
        # RFC 7617, with UTF-8, which Prometheus expects.
        pair = base64.b64encode(f"{self._username}:{secret}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}

    def reread(self) -> bool:
        """Read the file again, after a refusal; return whether another header comes of it."""
        return self._secret is not None and self._secret.reread()


class PrometheusConnections:
    """Kept connections, made anew once a file of certificates has changed: a connection keeps what it began with.

    Where no file of authorities is named, REQUESTS_CA_BUNDLE names one, as for all that asks with `requests`.
    """

    def __init__(self, access: Access, n_connections: int, environ: Mapping[str, str] = os.environ) -> None:
        ca = _text(access.ca_file) or environ.get("REQUESTS_CA_BUNDLE") or None
        self._files = TlsFiles(ca, _text(access.cert_file), _text(access.key_file))
        self._n_connections = n_connections
        self._lock = threading.Lock()
        self._tls: ClientTls | None = None
        self._context: ssl.SSLContext | None = None
        self._manager: PoolManager | None = None

    def pool(self, url: str) -> HTTPConnectionPool:
        """Return the connections to the server of `url`; queries under way on older ones are not disturbed.

        Raises
        ------
        CredentialsUnreadable
            A file is missing.
        CertificateRefused
            What is in one cannot be used.
        """
        with self._lock:
            context = self._current() if url.startswith("https:") else None
            if self._manager is None or context is not self._context:
                self._manager = PoolManager(num_pools=1, maxsize=self._n_connections, block=True, ssl_context=context)
                self._context = context
            return self._manager.connection_from_url(url)

    def close(self) -> None:
        if self._manager is not None:
            self._manager.clear()

    def _current(self) -> ssl.SSLContext:
        try:
            if self._tls is None:
                self._tls = ClientTls(self._files)
        except TlsFilesError as error:
            kind = CertificateRefused if isinstance(error.__cause__, ssl.SSLError) else CredentialsUnreadable
            raise kind(str(error)) from error
        return self._tls.context()


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
