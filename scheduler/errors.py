"""Every error of Vane, as a tree.

VaneError
├── ConfigError            a user's mistake in configuration, kubeconfig or a flag: exit 1, one message
│   └── RuleFilesError     every problem of every rule file at once
├── InvalidObjectError     an API object that cannot be read or has an impossible value: fails that Pod only
├── UnsupportedPodError    a Pod needs what is not built: refused by name until the Pod changes
├── NotComingError         what a Pod waits for before its bind will not come: it is tried again
├── PluginError            a plugin raised or returned what its contract forbids: fails that Pod's cycle only
├── StaleSnapshotError     a Snapshot used after the world moved on: a bug in the caller
└── CacheCorruptedError    the cache contradicts itself: ends the process, a restart is the recovery
"""

from __future__ import annotations

from dataclasses import dataclass


class VaneError(Exception):
    """Base of all errors that Vane raises on purpose."""


class ConfigError(VaneError):
    """A user's mistake; the message says where, what was found and what to write instead."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake in one rule file; `line` and `column` count from 1."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class RuleFilesError(ConfigError):
    """All problems of all rule files of one load."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        noun = "problem" if len(self.problems) == 1 else "problems"
        super().__init__("\n".join([f"{len(self.problems)} {noun} in rule files:", *map(str, self.problems)]))


class InvalidObjectError(VaneError):
    """An API object that cannot be read, or a value in it that no API server would let pass."""


class UnsupportedPodError(VaneError):
    """A Pod needs something that Vane does not implement; `needs` says what, one text per item."""

    def __init__(self, needs: tuple[str, ...]) -> None:
        self.needs = needs
        super().__init__("; ".join(needs))


class NotComingError(VaneError):
    """What a Pod waits for before its bind will not come; the message says what has become of it."""


class PluginError(VaneError):
    """A plugin broke its contract or raised; `plugin` and `point` say which and where."""

    def __init__(self, plugin: str, point: str, message: str) -> None:
        self.plugin = plugin
        self.point = point
        super().__init__(message)


class StaleSnapshotError(VaneError):
    """A Snapshot was used after the next message had been applied."""


class CacheCorruptedError(VaneError):
    """The cache and the API server's events contradict each other."""
