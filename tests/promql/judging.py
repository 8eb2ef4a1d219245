"""Asks Prometheus' own parser, and Vane, about expressions; see tests/controlplane/prometheus/parser."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.promql.errors import PromQLError, TooLargeError
from scheduler.promql.parse import parse
from tests.promql.shape import shape


@dataclass(frozen=True)
class Verdict:
    """How an expression is read.

    shape
        The tree, as `shape.shape` writes it.
    needs
        The features that it is valid with, and not without; of an invalid one, none.
    at
        The place of the first error, in characters; 0 where there is none.
    """

    is_valid: bool
    type: str = ""
    shape: str = ""
    needs: tuple[str, ...] = ()
    error: str = ""
    at: int = 0

    @property
    def essence(self) -> tuple[bool, str, str, tuple[str, ...]]:
        """What has to be the same for both: words differ."""
        return self.is_valid, self.type, self.shape, self.needs


def by_prometheus(parser: Path, exprs: Sequence[str]) -> list[Verdict]:
    lines = "".join(json.dumps(expr) + "\n" for expr in exprs)
    done = subprocess.run([parser], input=lines.encode(), capture_output=True, check=False)
    if done.returncode:
        raise AssertionError(done.stderr.decode()[-2000:])
    answers = [json.loads(line) for line in done.stdout.decode().split("\n") if line]
    return [_verdict(expr, answer) for expr, answer in zip(exprs, answers, strict=True)]


def _verdict(expr: str, answer: dict[str, Any]) -> Verdict:
    before = expr.encode()[: answer.get("start", 0)]
    at = len(before.decode("utf-8", "replace"))
    needs = tuple(sorted(answer.get("needs", ())))
    shape = answer.get("shape", "")
    return Verdict(answer["valid"], answer.get("type", ""), shape, needs, answer.get("error", ""), at)


def by_vane(expr: str) -> Verdict | None:
    """Return None for what is larger than what Vane reads."""
    try:
        parsed = parse(expr)
    except TooLargeError:
        return None
    except PromQLError as error:
        return Verdict(False, error=error.problem, at=error.offset)
    return Verdict(True, str(parsed.root.type), shape(parsed.root), tuple(sorted(parsed.needs)))


def differences(exprs: Iterable[str], verdicts: Iterable[Verdict]) -> list[str]:
    """Return a line for each expression that the two read differently."""
    found = []
    for expr, theirs in zip(exprs, verdicts, strict=True):
        ours = by_vane(expr)
        if ours is not None and ours.essence != theirs.essence:
            found.append(f"{expr!r}: Prometheus {theirs}, Vane {ours}")
    return found
