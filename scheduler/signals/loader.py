"""Rule files from disk, again whenever they change; what cannot be read leaves the previous set in force."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Final, NamedTuple

from scheduler.errors import ConfigError, Problem, RuleFilesError
from scheduler.model.rules import RuleSet
from scheduler.signals.files import Fingerprint, fingerprint, read_rule_files
from scheduler.signals.format.promql_matchers import NO_MATCHERS, Matchers
from scheduler.signals.format.query import NO_FEATURES, Features
from scheduler.signals.format.rule_files import lint_rule_files

_LOG = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 0.25


class LoaderState(NamedTuple):
    """The generation of the rules in force, and the files they were read from."""

    generation: int
    fingerprint: Fingerprint


class RuleLoader:
    """Loads once, then looks when polled; the caller owns the thread.

    Parameters
    ----------
    paths
        Rule files, and folders of them.
    on_load
        Takes each rule set after the first; `generation` is one more than before.
    on_error
        Takes the text with every problem of every file, once per state of the files.
    servers
        The names that a signal's `server` may have; None where they are not known.
    features
        What each server has switched on, by its name.
    matchers
        What every selector gets, by the name of the server.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        on_load: Callable[[RuleSet], None],
        on_error: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        servers: Set[str] | None = None,
        features: Features = NO_FEATURES,
        matchers: Mapping[str, Matchers] = NO_MATCHERS,
    ) -> None:
        self._paths: Sequence[str | os.PathLike[str]] = list(paths)
        self._on_load = on_load
        self._on_error = on_error
        self._clock = clock
        self._servers = servers
        self._matchers = matchers
        self._features = features
        self._warnings: tuple[Problem, ...] = ()
        self._generation = 0
        self._loaded = self._last_look = fingerprint(self._paths)
        self._looked_at_s = clock()

    @property
    def state(self) -> LoaderState:
        """What another process needs to go on looking where this one stopped."""
        return LoaderState(self._generation, self._loaded)

    def resume(self, state: LoaderState) -> None:
        """Take for loaded what another loader has; a change since then is found by the next polls."""
        self._generation, self._loaded = state

    def load(self) -> RuleSet:
        """Read all files now.

        Raises
        ------
        ConfigError
            With every problem of every file, or the path that cannot be read.
        """
        # Taken before reading: what is written meanwhile counts as a change.
        self._loaded = self._last_look = fingerprint(self._paths)
        files = read_rule_files(self._paths)
        result = lint_rule_files(files, self._generation + 1, self._servers, self._features, self._matchers)
        if result.problems:
            raise RuleFilesError(list(result.problems))
        self._generation, self._warnings = result.rules.generation, result.warnings
        return result.rules

    def log_warnings(self) -> None:
        """Log what `vane check` would warn of in the files loaded last."""
        for warning in self._warnings:
            _LOG.warning("rule files: %s", warning)

    def poll(self) -> bool:
        """Look at the files, at most every 250 ms, and load them if they have changed; return whether it did.

        A file is read once two looks agree, so that a file half written is not taken for a bad one.
        """
        now_s = self._clock()
        if now_s - self._looked_at_s < LOOK_EVERY_S:
            return False
        self._looked_at_s = now_s
        seen = fingerprint(self._paths)
        is_settled = seen == self._last_look
        self._last_look = seen
        if seen == self._loaded or not is_settled:
            return False
        try:
            rules = self.load()
        except ConfigError as error:
            _LOG.error("rule files not loaded, the previous rules stay in force", extra={"error": str(error)})
            self._on_error(str(error))
            return False
        _LOG.info("rules loaded", extra={"generation": rules.generation, "n_rules": len(rules.rules)})
        self.log_warnings()
        self._on_load(rules)
        return True
