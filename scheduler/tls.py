"""The client's side of TLS: the one place that makes contexts to check servers with, so that all trust alike."""

from __future__ import annotations

import os
import ssl

from scheduler.errors import VaneError


class TlsFilesError(VaneError):
    """A file of authorities, a client certificate or its key cannot be read or does not fit; the message names it."""


def client_context(
    ca_file: str | None = None, cert_file: str | None = None, key_file: str | None = None, *, verify: bool = True
) -> ssl.SSLContext:
    """Return a context that trusts the authorities of a file or folder, else those of the system.

    It trusts as Go's crypto/x509 does, which the other components of a cluster go by, and alike on every Python:
    authorities need no key identifiers, and a certificate in the file need not be a root. From 3.13 on Python asks for
    the first by default (VERIFY_X509_STRICT), which the authorities of many clusters do not have.

    Raises
    ------
    TlsFilesError
        A file cannot be used.
    """
    context = _trusting(ca_file)
    context.verify_flags = context.verify_flags & ~ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if cert_file is not None:
        _present(context, cert_file, key_file)
    return context


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
