"""What is wrong with the answers to a signal, said once and not with every answer."""

from __future__ import annotations

import logging
from typing import Any

from scheduler.model.rules import Signal
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.groupings import grouping_of
from scheduler.signals.problems import SignalProblem, is_grave, problems_of, words_of

_LOG = logging.getLogger(__name__)


class Complaints:
    """Remembers what has been logged of each signal; one thread at a time notes answers to the same one."""

    def __init__(self) -> None:
        self._said: dict[str, set[str]] = {}
        self._last: dict[str, SignalAnswer] = {}
        self._noted: dict[str, set[SignalProblem]] = {}

    def forget(self, signal: str) -> None:
        """Begin anew with a signal that is gone or has changed."""
        self._said.pop(signal, None)
        self._noted.pop(signal, None)
        self._last.pop(signal, None)

    def last(self, signal: str) -> SignalAnswer | None:
        """Return the last answer or failure; None before the first."""
        return self._last.get(signal)

    def note(self, signal: Signal, answer: SignalAnswer) -> None:
        """Log a complaint that is new since the signal was healthy, and each time that it becomes healthy.

        What concerns some nodes only is said once: it may come and go with every answer.
        """
        name, complaint = signal.name, complaint_of(answer)
        covered = "" if answer.error else grouping_of(signal).coverage(answer)
        details = {"signal": name, "error": answer.error, "warnings": answer.warnings, "n_series": answer.n_series}
        title = f"{name} of Prometheus {signal.server}" if signal.server else name
        self._last[name] = answer
        self._note_some_nodes(name, answer, details)
        said = self._said.get(name)
        if complaint:
            if said is None or complaint not in said:
                self._said[name] = {complaint} if said is None else said | {complaint}
                _LOG.warning("signal %s: %s%s", title, complaint, covered, extra=details)
        elif said is None or said:
            self._said[name] = set()
            _LOG.info("signal %s is healthy%s%s", title, " again" if said else "", covered, extra=details)

    def _note_some_nodes(self, name: str, answer: SignalAnswer, details: dict[str, Any]) -> None:
        noted = self._noted.setdefault(name, set())
        for problem in problems_of(answer):
            if problem not in noted and not is_grave(problem, answer):
                noted.add(problem)
                _LOG.warning("signal %s, in part: %s", name, words_of(problem), extra={**details, "problem": problem})


def complaint_of(answer: SignalAnswer) -> str:
    """Return what is wrong with an answer in a few words without changing numbers, empty if nothing is."""
    grave = next((problem for problem in problems_of(answer) if is_grave(problem, answer)), None)
    if grave is None:
        return ""
    is_without_value = bool(answer.n_series) and not answer.n_mapped and grave is not SignalProblem.UNMAPPED
    return f"series, but no usable value: {words_of(grave)}" if is_without_value else words_of(grave)
