from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One fault put into the code on purpose: `old`, which a file of the package has once, becomes `new`.

    `tests` are the files and folders of which one test at least has to fail then, below `tests/`.
    """

    bug: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
