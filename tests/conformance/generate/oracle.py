"""Asks the oracle; see tests/controlplane/oracle."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from tests.conformance.compare import in_order
from tests.conformance.generate.draw import Fields

PROCESSES = 6
"""The oracle waits more than it computes: for each case its caches have to fill."""

_BATCH = 50

_ASKINGS = 40
"""What comes out otherwise once in seven times looks the same so many times in one case of 500."""
_FEW, _FEWER_ASKINGS = 50, 8
"""Where more than a few cases are in doubt, it is not by chance, and asking so often would take long."""


class OracleError(Exception):
    """The oracle did not answer; the message is its own."""


def answered(oracle: Path, cases: Iterable[Fields]) -> Iterator[Fields]:
    """Yield the cases in order, each with `expect`.

    Raises
    ------
    OracleError
        It ended early: a case is no case, or what it did in one piece and step by step differs.
    """
    with ThreadPoolExecutor(PROCESSES) as pool:
        for found in pool.map(lambda batch: _ask(oracle, batch), _batches(cases)):
            yield from found


def stable(oracle: Path, cases: Sequence[Fields]) -> Iterator[tuple[Fields, bool]]:
    """Yield each case and whether it is answered alike again and again: some answers hang on Go's order of maps."""
    n = _ASKINGS if len(cases) <= _FEW else _FEWER_ASKINGS
    answers = answered(oracle, (case for case in cases for _ in range(n)))
    for case in cases:
        first, *others = (without_chance(one["expect"]) for one in islice(answers, n))
        yield case, all(other == first for other in others)


def _batches(cases: Iterable[Fields]) -> Iterator[list[Fields]]:
    source = iter(cases)
    while batch := list(islice(source, _BATCH)):
        yield batch


def _ask(oracle: Path, batch: Sequence[Fields]) -> list[Fields]:
    lines = "".join(json.dumps(case) + "\n" for case in batch)
    done = subprocess.run([oracle], input=lines, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OracleError(done.stderr.strip()[-2000:])
    found: list[Fields] = [json.loads(line) for line in done.stdout.splitlines()]
    return found


def without_chance(expect: Fields) -> Fields:
    """Return what has to be the same each time: not which equal was taken, nor whose faults are told in which order."""
    kept: dict[str, Any] = json.loads(json.dumps(expect))
    if kept.get("error"):
        kept |= dict.fromkeys(("error", "failure_message", "event_message"), "")
    kept.pop("suggested", None)
    outcome = kept.get("postfilter")
    if outcome and outcome["message"].startswith("preemption: ["):
        outcome["message"] = in_order(outcome["message"])
        kept |= {"failure_message": in_order(kept["failure_message"]), "event_message": ""}
    if outcome and len(outcome["acceptable_nodes"]) > 1:
        for field in ("nominated_node", "victims", "deleted", "cleared_nominations", "message"):
            outcome[field] = None
        kept |= dict.fromkeys(("failure_message", "event_message"), "")
    return kept
