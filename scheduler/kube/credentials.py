"""The Authorization header, fetched rarely and by one thread at a time.

The `kubernetes` package asks for credentials on every request: 35 µs, an exec plugin run each time near expiry (and
by every thread at once), and a kubeconfig's tokenFile read only once. A request here costs one comparison.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from scheduler.errors import VaneError

TOKEN_FILE_LIFETIME_S = 30.0
"""How old a token read from a file may get; kubelet swaps the file long before the old token ends."""

_RETRY_FAILED_S = 10.0
_PRINTABLE = re.compile(r"[ -~]*[!-~]")


class CredentialsError(VaneError):
    """There are no credentials now: the token file cannot be read, or the exec plugin failed."""


@dataclass(frozen=True, slots=True)
class Token:
    """What proves who we are, and for how many seconds it may be used without asking again.

    `header` is the whole Authorization header, None for anonymous or certificate-only users.
    """

    header: str | None = field(repr=False)
    lifetime_s: float = math.inf
    cert_file: str | None = None
    key_file: str | None = None


class Credentials:
    """Caches a token; any thread may ask, one at a time fetches, the others wait for its result."""

    def __init__(self, fetch: Callable[[], Token], clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._cached: tuple[Token, float] | None = None
        self._last: Token | None = None

    def token(self) -> Token:
        """Return a token that is good now.

        Raises
        ------
        CredentialsError
            None could be fetched and no earlier one is left to try.
        """
        cached = self._cached
        if cached is not None and self._clock() < cached[1]:
            return cached[0]
        with self._lock:
            cached = self._cached
            if cached is not None and self._clock() < cached[1]:
                return cached[0]
            return self._refresh()

    def invalidate(self, header: str | None) -> None:
        """Forget the token whose header the API server refused; a newer one is kept."""
        with self._lock:
            if self._cached is not None and self._cached[0].header == header:
                self._cached = None
                self._last = None

    def _refresh(self) -> Token:
        try:
            token = _checked(self._fetch())
        except CredentialsError:
            # What was good until now may still be accepted; an exec plugin that is down should not end every watch.
            if self._last is None:
                raise
            self._cached = (self._last, self._clock() + _RETRY_FAILED_S)
            return self._last
        self._cached = (token, self._clock() + token.lifetime_s)
        self._last = token
        return token


def _checked(token: Token) -> Token:
    """Refuse what HTTP cannot carry, such as a second line: the HTTP libraries would show the token in their errors."""
    if token.header is not None and not _PRINTABLE.fullmatch(token.header):
        raise CredentialsError("the token must be one word of plain characters; look for a line break in it")
    return token


def token_from_file(path: str, lifetime_s: float = TOKEN_FILE_LIFETIME_S) -> Token:
    """Read a bearer token from a file, as service account tokens and a kubeconfig's tokenFile are given."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialsError(f"token file {path}: {error}") from error
    if not text:
        raise CredentialsError(f"token file {path}: the file is empty")
    return Token(header=f"Bearer {text}", lifetime_s=lifetime_s)
