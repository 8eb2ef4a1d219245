from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.manifests import Json

# Bodies for what a scheduler writes and whose content decides correctness, metadata for everything else.
POLICY: Mapping[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {
            "level": "RequestResponse",
            "resources": [{"group": "", "resources": ["pods/binding", "bindings", "pods/status", "pods/eviction"]}],
        },
        {"level": "Request", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
        {"level": "RequestResponse", "verbs": ["delete"], "resources": [{"group": "", "resources": ["pods"]}]},
        {"level": "Metadata"},
    ],
}


class AuditLog:
    """The API server's audit log from a position on; the server writes an event before it answers the request."""

    def __init__(self, path: Path, position: int = 0) -> None:
        self.path = path
        self._position = position

    def from_now(self) -> AuditLog:
        return AuditLog(self.path, self.path.stat().st_size if self.path.exists() else 0)

    def events(
        self,
        verb: str | None = None,
        resource: str | None = None,
        subresource: str | None = None,
        user: str | None = None,
        name: str | None = None,
    ) -> list[Json]:
        """Return the events that have all the given attributes; subresource "" means none."""
        wanted = {"resource": resource, "subresource": subresource, "name": name}
        matching = []
        for event in self._read():
            reference = event.get("objectRef", {})
            if verb is not None and event["verb"] != verb:
                continue
            if user is not None and event["user"]["username"] != user:
                continue
            if all(value is None or reference.get(key, "") == value for key, value in wanted.items()):
                matching.append(event)
        return matching

    def _read(self) -> list[Json]:
        if not self.path.exists():
            return []
        with self.path.open("rb") as log:
            log.seek(self._position)
            # A last line without its end is still being written.
            return [json.loads(line) for line in log if line.endswith(b"\n")]
