"""Watches the API server for the checker: a connection of its own, past all fault proxies."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence

import urllib3

from tests.faults.checker.history import EVENT, NODE, POD, Change, History, change_of
from tests.support.kubeapi import ApiError, KubeApi, Watch
from tests.support.manifests import Json

_PATHS = {POD: "/api/v1/pods", NODE: "/api/v1/nodes", EVENT: "/api/v1/events"}
_RETRY_S = 0.1
_GONE = 410
_FAULTS = (urllib3.exceptions.HTTPError, OSError, ApiError, ValueError)


class Watcher:
    """Writes a History; where a server ends, it goes on at the next one from the revision that it had reached."""

    def __init__(self, servers: Sequence[KubeApi]) -> None:
        self.history = History()
        self.bound: set[str] = set()
        """The names of all Pods that have or had a node."""
        self._servers = servers
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._watches: dict[str, Watch] = {}
        self._reached: dict[str, int] = {}
        self._threads = [threading.Thread(target=self._run, args=(kind,), daemon=True) for kind in _PATHS]

    def start(self) -> None:
        for kind in _PATHS:
            self._list(kind, self._servers[0])
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._ended.set()
        with self._lock:
            for watch in self._watches.values():
                with contextlib.suppress(ValueError):  # it has ended
                    watch.close()
        for thread in self._threads:
            thread.join(10)

    def reached(self, revision: int) -> bool:
        """Whether the Pods of that revision have been seen; the other kinds come with them within moments."""
        return self._reached.get(POD, 0) >= revision

    def _list(self, kind: str, server: KubeApi) -> None:
        """Take everything as it is; what has gone since is found by being missing."""
        answer = server.get(_PATHS[kind])
        present = {item["metadata"]["uid"] for item in answer["items"]}
        revision = int(answer["metadata"]["resourceVersion"])
        with self._lock:
            if kind in self._reached:
                self.history.n_gaps += 1
                self._note_gone(kind, present, revision)
            for item in answer["items"]:
                self.history.add(change_of(kind, {"type": "ADDED", "object": item}))
            self._reached[kind] = revision

    def _note_gone(self, kind: str, present: set[str], revision: int) -> None:
        last: dict[str, Change] = {change.uid: change for change in self.history.ordered() if change.kind == kind}
        for uid, change in last.items():
            if uid not in present and not change.is_gone:
                metadata = {**change.content["metadata"], "resourceVersion": str(revision)}
                content: Json = {**change.content, "metadata": metadata}
                self.history.add(change_of(kind, {"type": "DELETED", "object": content}))

    def _run(self, kind: str) -> None:
        turn = n_expired = 0
        while not self._ended.is_set():
            server = self._servers[turn % len(self._servers)]
            turn += 1
            try:
                # A server that has just started does not go back as far as the other may.
                n_expired = 0 if self._watch(kind, server) else n_expired + 1
                if n_expired >= len(self._servers):
                    self._list(kind, server)
            except _FAULTS:
                self._ended.wait(_RETRY_S)

    def _watch(self, kind: str, server: KubeApi) -> bool:
        """Watch until the stream ends; return False if the revision is no longer to be had."""
        try:
            watch = server.watch(_PATHS[kind], str(self._reached[kind]), allowWatchBookmarks="true")
        except ApiError as error:
            if error.status == _GONE:
                return False
            raise
        with self._lock:
            self._watches[kind] = watch
        if self._ended.is_set():
            return True
        for event in watch:
            if event["type"] == "ERROR":
                return bool(event["object"].get("code") != _GONE)
            with self._lock:
                self._reached[kind] = int(event["object"]["metadata"]["resourceVersion"])
                if event["type"] != "BOOKMARK":
                    self.history.add(change_of(kind, event))
                if kind == POD and event["object"].get("spec", {}).get("nodeName"):
                    self.bound.add(event["object"]["metadata"]["name"])
        return True
