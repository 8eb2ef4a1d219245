"""When Pods were created and bound and their Events written, as the API server's audit log has it.

The audit log is written anyway and by the one process that knows; a watch would take CPU time from those that are
measured.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

AUDIT_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "verbs": ["create"],
            "resources": [
                {"group": "", "resources": ["pods", "pods/binding"]},
                {"group": "events.k8s.io", "resources": ["events"]},
            ],
        },
        {"level": "None"},
    ],
}
"""Only what is measured: a line for each Pod created, each bind and each Event."""


class _Reference(msgspec.Struct):
    resource: str = ""
    name: str = ""
    subresource: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Line(msgspec.Struct, rename="camel"):
    request_received_timestamp: str
    stage_timestamp: str
    object_ref: _Reference = msgspec.field(default_factory=_Reference)
    response_status: _Status = msgspec.field(default_factory=_Status)


class Timeline:
    """What was written from now on: seconds since 1970 by Pod name.

    `created_s` is when the API server received the request, `bound_s` when it had answered the bind.
    """

    def __init__(self, audit_log: Path) -> None:
        self.created_s: dict[str, float] = {}
        self.bound_s: dict[str, float] = {}
        self.event_s: list[float] = []
        self._path = audit_log
        self._position = audit_log.stat().st_size if audit_log.exists() else 0
        self._decode = msgspec.json.Decoder(_Line).decode

    def read(self) -> None:
        """Take in what has been written since the last call."""
        with self._path.open("rb") as log:
            log.seek(self._position)
            whole, newline, _ = log.read().rpartition(b"\n")
        self._position += len(whole) + len(newline)
        for line in whole.splitlines():
            self._take(self._decode(line))

    def _take(self, line: _Line) -> None:
        if not 200 <= line.response_status.code < 300:
            return
        match line.object_ref.resource, line.object_ref.subresource:
            case "pods", "":
                self.created_s[line.object_ref.name] = _seconds(line.request_received_timestamp)
            case "pods", "binding":
                self.bound_s[line.object_ref.name] = _seconds(line.stage_timestamp)
            case "events", "":
                self.event_s.append(_seconds(line.stage_timestamp))


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()
