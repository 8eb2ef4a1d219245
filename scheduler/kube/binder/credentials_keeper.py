"""CredentialsKeeper: keeps the credentials that the binder process uses for one API server fresh."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from scheduler.kube.binder.messages import BinderConnection, CredentialsRefused, NewCredentials
from scheduler.kube.config import Connection
from scheduler.kube.credentials import CredentialsError, Token

log = logging.getLogger(__name__)


class CredentialsKeeper:
    """Hands the header over when it changes, and at once when the API server has refused it.

    Each has a thread of its own: a credentials plugin of one cluster that hangs must not starve another cluster.
    """

    def __init__(
        self, cluster: str, connection: Connection, hand_over: Callable[[NewCredentials], None], check_s: float
    ) -> None:
        self._cluster = cluster
        self._connection = connection
        self._hand_over = hand_over
        self._check_s = check_s
        self._stopping = threading.Event()
        self._renew = threading.Event()
        self._refused: deque[str | None] = deque()
        self._token: Token | None = None

    def first(self) -> BinderConnection:
        """Return what the process begins with; what differs from it later is handed over."""
        self._token = self._connection.credentials.token()
        return self._connection.binder_connection(self._cluster)

    def refused(self, message: CredentialsRefused) -> None:
        self._refused.append(message.header)
        self._renew.set()

    def stop(self) -> None:
        self._stopping.set()
        self._renew.set()

    def run(self) -> None:
        """Look after the credentials until `stop`."""
        while not self._stopping.is_set():
            self._renew.wait(self._check_s)
            self._renew.clear()
            refused = False
            while self._refused:
                refused = True
                self._connection.invalidate(self._refused.popleft())
            try:
                token = self._connection.credentials.token()
            except CredentialsError as error:
                log.error("binder: no credentials: %s", error)
                continue
            except Exception:  # a fault of ours; the next try may get credentials
                log.exception("binder: no credentials")
                continue
            if refused or token != self._token:
                self._token = token
                self._hand_over(
                    NewCredentials(
                        header=token.header,
                        cert_file=token.cert_file,
                        key_file=token.key_file,
                        cluster=self._cluster,
                    )
                )
