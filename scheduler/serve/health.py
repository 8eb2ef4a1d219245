"""The health pages as Kubernetes asks for them: /healthz, /livez, /readyz."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from scheduler.loop.pages.pages import HealthQuery
from scheduler.serve.answered_page import AnsweredPage, OwnFigures

HEALTH_KINDS: Final = ("healthz", "livez", "readyz")


class Check(NamedTuple):
    """One question of a health page and its answer; `text` says more where it is not ok."""

    name: str
    ok: bool
    text: str


_checks = msgspec.json.Decoder(list[Check])


class HealthPage(AnsweredPage[HealthQuery, Sequence[Check]]):
    """The checks of one kind; the first is that there is an answer."""

    def __init__(self, query: HealthQuery) -> None:
        super().__init__(query)
        self._checks = [Check("ping", True, "")]

    def add(self, slice_: bytes) -> None:
        self._checks += _checks.decode(slice_)

    def body(self, own: OwnFigures) -> Sequence[Check]:
        return self._checks


def told(kind: str, checks: Sequence[Check], *, is_verbose: bool) -> tuple[str, int]:
    """Return text and status of the page."""
    passed = all(check.ok for check in checks)
    if passed and not is_verbose:
        return "ok", 200
    lines = [f"[+]{check.name} ok" if check.ok else f"[-]{check.name} failed: {check.text}" for check in checks]
    lines.append(f"{kind} check {'passed' if passed else 'failed'}")
    return "\n".join(lines) + "\n", 200 if passed else 500
