"""The client's side of TLS: the one place that makes contexts to check servers with, so that all trust alike."""

from __future__ import annotations

import logging
import os
import ssl
import threading
from dataclasses import dataclass, replace

from scheduler.errors import VaneError

log = logging.getLogger(__name__)


class TlsFilesError(VaneError):
    """A file of authorities, a client certificate or its key cannot be read or does not fit; the message names it."""


_Stamp = tuple[tuple[int, int, int] | None, ...]

_OPENSSL = ssl.get_default_verify_paths()


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Whom a client trusts and with what it presents itself, in PEM.

    `ca` is a file or folder of authorities, None for those of the system: the file that SSL_CERT_FILE names, else the
    one that OpenSSL was built with, and the folder of SSL_CERT_DIR likewise.
    """

    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def paths(self) -> list[str]:
        """Return the files that are read."""
        system = os.environ.get(_OPENSSL.openssl_cafile_env) or _OPENSSL.openssl_cafile
        return [path for path in (self.ca or system, self.cert, self.key) if path is not None]


def client_context(files: TlsFiles = TlsFiles(), *, verify: bool = True) -> ssl.SSLContext:
    """Return a context to connect with.

    It trusts as Go's crypto/x509 does, which the other components of a cluster go by, and alike on every Python:
    authorities need no key identifiers, and a certificate in the file need not be a root. From 3.13 on Python asks for
    the first by default (VERIFY_X509_STRICT), which the authorities of many clusters do not have.

    Raises
    ------
    TlsFilesError
        A file cannot be used.
    """
    context = _trusting(files.ca)
    context.verify_flags = context.verify_flags & ~ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if files.cert is not None:
        _present(context, files.cert, files.key)
    return context


class ClientTls:
    """Contexts to connect with, which follow their files; any thread may use it.

    A connection is to be opened with what `context` gives then. Those already open keep what they began with.

    Raises
    ------
    TlsFilesError
        A file cannot be used.
    """

    def __init__(self, files: TlsFiles = TlsFiles(), *, verify: bool = True) -> None:
        self._verify = verify
        self._lock = threading.Lock()
        self._files = files
        self._stamp = _stamp(files)
        self._context = client_context(files, verify=verify)

    def context(self) -> ssl.SSLContext:
        """Return the context in force: another one than last time where a file has changed.

        Files that cannot be used any more are told once, and what was read before stays in force: a rotation may write
        one after the other.
        """
        if _stamp(self._files) != self._stamp:
            with self._lock:
                self._read_again()
        return self._context

    def present(self, cert: str | None, key: str | None) -> None:
        """Present another client certificate from now on, such as a fresh one from an exec plugin.

        Raises
        ------
        TlsFilesError
            It cannot be used; the one before stays in force.
        """
        with self._lock:
            files = replace(self._files, cert=cert, key=key)
            if files != self._files:
                stamp = _stamp(files)
                self._context = client_context(files, verify=self._verify)
                self._files, self._stamp = files, stamp

    def _read_again(self) -> None:
        stamp = _stamp(self._files)
        if stamp == self._stamp:
            return  # another thread was first
        try:
            self._context = client_context(self._files, verify=self._verify)
        except TlsFilesError as error:
            log.warning("%s; what was read before stays in force", error)
        else:
            log.info("TLS files read again: %s", ", ".join(self._files.paths()))
        self._stamp = stamp


def _stamp(files: TlsFiles) -> _Stamp:
    """Return what changes when a file does, also behind the links of a mounted Secret."""
    return tuple(_stamp_of(path) for path in files.paths())


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    if ca_file is None:
        return ssl.create_default_context()
    what = f"certificate authority {ca_file}"
    _check_readable(what, ca_file)
    try:
        if os.path.isdir(ca_file):
            return ssl.create_default_context(capath=ca_file)
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:  # ssl.SSLError is one too
        raise TlsFilesError(f"{what} cannot be used: {error}") from error


def _present(context: ssl.SSLContext, cert_file: str, key_file: str | None) -> None:
    _check_readable(f"client certificate {cert_file}", cert_file)
    if key_file is not None:
        _check_readable(f"client key {key_file}", key_file)
    try:
        context.load_cert_chain(cert_file, key_file, password=_no_password)
    except (OSError, ValueError) as error:
        key = "" if key_file is None else f" with key {key_file}"
        raise TlsFilesError(f"client certificate {cert_file}{key} cannot be used: {error}") from error


def _check_readable(what: str, path: str) -> None:
    """Say which file it is: OpenSSL's errors do not."""
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        raise TlsFilesError(f"{what} cannot be read: {error.strerror}") from error


def _no_password() -> str:
    """Refuse an encrypted key, for which OpenSSL would ask at the terminal."""
    raise ValueError("the key is encrypted")
