"""With what we present ourselves to a Prometheus, in files that others rotate: token, password, certificate.

What is read here is never logged, and stands in no `repr`.
"""

from __future__ import annotations

import base64
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3 import HTTPConnectionPool, PoolManager

from scheduler.signals.asking.query_errors import CertificateRefused, CredentialsUnreadable
from scheduler.tls import TlsFilesError, client_context

REREAD_S: Final = 60.0
_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_PASSWORD: Final = re.compile(r"[^\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Access:
    """With what to present ourselves, and whom to trust; `ca_file` replaces the system's authorities.

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
    """Kept connections, made anew once a file of certificates has changed: a connection keeps what it began with."""

    def __init__(self, access: Access, n_connections: int) -> None:
        self._files = tuple(file for file in (access.ca_file, access.cert_file, access.key_file) if file is not None)
        self._access = access
        self._n_connections = n_connections
        self._lock = threading.Lock()
        self._stamp: tuple[tuple[int, int, int], ...] | None = None
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
        stamp = tuple(_stamp(file) for file in self._files)
        with self._lock:
            if self._manager is None or stamp != self._stamp:
                self._manager = PoolManager(
                    num_pools=1, maxsize=self._n_connections, block=True, ssl_context=_context(self._access)
                )
                self._stamp = stamp
            return self._manager.connection_from_url(url)

    def close(self) -> None:
        if self._manager is not None:
            self._manager.clear()


def _context(access: Access) -> ssl.SSLContext:
    cert_file, key_file = (None if file is None else str(file) for file in (access.cert_file, access.key_file))
    try:
        return client_context(str(access.ca_file or DEFAULT_CA_BUNDLE_PATH), cert_file, key_file)
    except TlsFilesError as error:
        raise CertificateRefused(str(error)) from error


def _stamp(file: Path) -> tuple[int, int, int]:
    """Return what changes when a file does, also behind the links of a mounted Secret."""
    try:
        status = file.stat()
    except OSError as error:
        raise CredentialsUnreadable(f"certificate file {file} cannot be read: {error.strerror}") from error
    return status.st_mtime_ns, status.st_ino, status.st_size
