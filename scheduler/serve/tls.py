"""The server's TLS context: given certificate and key, loaded again when the files change, or a self-signed one."""

from __future__ import annotations

import datetime
import ipaddress
import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from scheduler.errors import ConfigError

_SELF_SIGNED_LIFE: Final = datetime.timedelta(days=365)
_RENEWED_BEFORE_END: Final = datetime.timedelta(days=30)
"""So much of its life is left when a self-signed certificate gives way to the next."""
_CLOCK_SKEW: Final = datetime.timedelta(hours=1)

_log = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int, int], ...]


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class ServingCertificate:
    """Gives the TLS context to listen with; every handshake uses the certificate that was loaded last."""

    def __init__(
        self, certificate: Path | None, key: Path | None, address: str, now: Callable[[], datetime.datetime] = utc_now
    ) -> None:
        self._files = (certificate, key) if certificate and key else None
        self._stamp: _Stamp | None = None
        self._address = address
        self._now = now
        self._made_at = now()
        if self._files is None:
            self._current = _self_signed_context(address, self._made_at)
        else:
            self._stamp = _stamp(*self._files)
            self._current = _file_context(*self._files)
        # The listening context stays the same object; it only passes each handshake on to the current one.
        self.context = self._current
        self.context.sni_callback = self._choose

    def renew(self) -> bool:
        """Load the files again if they are others than last time, or sign the next one before the old one ends.

        What cannot be used leaves the old in force. A rotation writes two files, so a pair that does not match is
        looked at again, not given up.
        """
        if self._files is None:
            return self._sign_again()
        stamp = _stamp(*self._files)
        if stamp == self._stamp:
            return False
        try:
            self._current = _file_context(*self._files)
        except ConfigError as error:
            _log.warning("the serving certificate cannot be loaded; the old one stays", extra={"reason": str(error)})
            return False
        self._stamp = stamp
        _log.info("serving certificate loaded", extra={"file": str(self._files[0])})
        return True

    def _sign_again(self) -> bool:
        """Make another certificate near the end of the old one, or where a clock set back says it is not valid yet."""
        now = self._now()
        if self._made_at - _CLOCK_SKEW <= now < self._made_at + _SELF_SIGNED_LIFE - _RENEWED_BEFORE_END:
            return False
        self._current = _self_signed_context(self._address, now)
        self._made_at = now
        _log.info("another self-signed serving certificate is in use")
        return True

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current


def _stamp(*files: Path) -> _Stamp | None:
    """Return what changes when a file does, also behind the links of a mounted Secret; None while one is missing."""
    try:
        stats = [file.stat() for file in files]
    except OSError:
        return None
    return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _file_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = _new_context()
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        message = (
            f"--tls-cert-file {certificate}, --tls-private-key-file {key}: must be a certificate and its key (PEM)"
        )
        raise ConfigError(
            f"{message}, got {error}. Fix the files, or drop both for a self-signed certificate"
        ) from error
    return context


def _no_password() -> str:
    """Refuse an encrypted key, for which OpenSSL would ask at the terminal."""
    raise ValueError("an encrypted key")


def _self_signed_context(address: str, now: datetime.datetime) -> ssl.SSLContext:
    context = _new_context()
    pem = _self_signed(address, now)
    if hasattr(os, "memfd_create"):  # Linux: the key never reaches a disk, and no folder has to be writable
        handle = os.memfd_create("vane-serving")
        try:
            os.write(handle, pem)
            context.load_cert_chain(f"/proc/self/fd/{handle}")
        finally:
            os.close(handle)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def _self_signed(address: str, now: datetime.datetime) -> bytes:
    """Return a new key and a certificate of its own for this host, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "vane")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _SELF_SIGNED_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_names(address)), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _names(address: str) -> list[x509.GeneralName]:
    hosts = {"localhost"} | ({socket.gethostname()} if socket.gethostname().isascii() else set())
    addresses = {"127.0.0.1", "::1"} | (set() if address == "localhost" else {address})
    return [
        *(x509.DNSName(host) for host in sorted(hosts)),
        *(x509.IPAddress(ipaddress.ip_address(text.partition("%")[0])) for text in sorted(addresses)),
    ]
