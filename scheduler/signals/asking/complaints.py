"""What is wrong with the answers to a signal, said once and not with every answer."""

from __future__ import annotations

import logging

from scheduler.model.rules import ByKind, Signal
from scheduler.signals.answers import SignalAnswer

_LOG = logging.getLogger(__name__)

_N_BYTES = 8


class Complaints:
    """Remembers what has been said of each signal; one thread at a time speaks of the same one."""

    def __init__(self) -> None:
        self._said: dict[str, set[str]] = {}

    def forget(self, signal: str) -> None:
        """Begin anew with a signal that is gone or has changed."""
        self._said.pop(signal, None)

    def note(self, signal: Signal, answer: SignalAnswer) -> None:
        """Log a complaint that is new since the signal was well, and each time that it becomes well."""
        name, complaint, covered = signal.name, complaint_of(answer), coverage_of(signal, answer)
        details = {"signal": name, "error": answer.error, "warnings": answer.warnings, "n_series": answer.n_series}
        said = self._said.get(name)
        if complaint:
            if said is None or complaint not in said:
                self._said[name] = {complaint} if said is None else said | {complaint}
                _LOG.warning("signal %s: %s%s", name, complaint, covered, extra=details)
        elif said is None or said:
            self._said[name] = set()
            _LOG.info("signal %s is well%s%s", name, " again" if said else "", covered, extra=details)


def complaint_of(answer: SignalAnswer) -> str:
    """Return what is wrong with an answer in a few words without changing numbers, empty if nothing is."""
    if answer.error:
        return f"no answer ({answer.error_kind})"
    if answer.warnings:
        return "warnings in the answer"
    if not answer.n_series:
        return "no series; does Prometheus have these metrics?"
    if answer.is_suspect:
        return "far fewer nodes than before"
    if answer.drops.duplicate:
        return "several series of one node; write `reduce`, or aggregate in the query"
    if not answer.n_mapped:
        return "series, but none of a known node or domain" if answer.drops.unmapped else "series, but no usable value"
    return ""


def coverage_of(signal: Signal, answer: SignalAnswer) -> str:
    """Return how much of the cluster an answer speaks of, to be put behind a message; empty where that says nothing."""
    if answer.error or signal.by is ByKind.CLUSTER:
        return ""
    if signal.by is ByKind.LABEL:
        return f" ({answer.n_mapped} values of {signal.label} covered)"
    return f" ({answer.n_mapped} of {len(answer.values) // _N_BYTES} nodes covered)"
