"""The tour's timetable: which phase begins when, what it shows, and what it changes."""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ARRIVE: Final = "arrive"
SHIFT: Final = "shift"
EDIT: Final = "edit"
DOWN: Final = "down"
BACK: Final = "back"

SHIFTED_ZONE: Final = "zone-b"
SHIFTED_BY: Final = 0.45
FIRST_PODS: Final = 30
PODS_PER_S: Final = 2.4
BEFORE: Final = "filter: {max: 80%, clear: 70%, valve: 50%}"
AFTER: Final = "filter: {max: 65%, clear: 60%, valve: 50%}"
"""The edit of the rule file."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One part of the tour, from `begins_s` to `ends_s` after its start."""

    key: str
    begins_s: float
    ends_s: float
    title: str
    look_at: str


_TEXTS: Final = (
    (
        ARRIVE,
        "Pods arrive",
        "services, batch and GPU jobs; their requests differ from what they really use. Each line: Pod, node, why.",
    ),
    (
        SHIFT,
        f"Load shifts to {SHIFTED_ZONE}",
        "requests do not show this load. A few seconds later the samples do, and the rules send Pods elsewhere.",
    ),
    (EDIT, "A rule file is edited", "no restart: the next Pods follow the new limit."),
    (
        DOWN,
        '"Prometheus" goes down',
        "its port is closed. Samples age, fade, and after 6 s no longer count; Pods go on being placed.",
    ),
    (BACK, '"Prometheus" is back', "samples are fresh, and the rules apply again."),
)
# Seconds of each phase. The long form and its start stay under a minute.
_LONG: Final = (10.0, 13.0, 10.0, 7.5, 4.5)
_FAST: Final = (4.0, 6.0, 4.0, 3.5, 2.5)


def timetable(is_fast: bool) -> Sequence[Phase]:
    phases = []
    at_s = 0.0
    for (key, title, look_at), length_s in zip(_TEXTS, _FAST if is_fast else _LONG, strict=True):
        phases.append(Phase(key, at_s, at_s + length_s, title, look_at))
        at_s += length_s
    return phases


def begin_of(phases: Sequence[Phase], key: str) -> float:
    return next(phase.begins_s for phase in phases if phase.key == key)


def edit_rules(file: Path) -> list[str]:
    """Lower the limit of the first rule, as an operator would, and return the diff.

    Raises
    ------
    ValueError
        If the file does not have that line exactly once.
    """
    before = file.read_text()
    if before.count(BEFORE) != 1:
        raise ValueError(f"{file}: {before.count(BEFORE)} lines with {BEFORE!r}")
    after = before.replace(BEFORE, AFTER)
    # Written beside it and moved over it, so that nobody reads half a file.
    new = file.with_suffix(".new")
    new.write_text(after)
    os.replace(new, file)
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), file.name, file.name, n=2, lineterm="")
    return list(diff)
