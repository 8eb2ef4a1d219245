"""What `vane check` has found, for eyes and for machines: text, JSON, annotations of GitHub, SARIF."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from scheduler import __version__
from scheduler.errors import Problem

_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


class Output(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


class Severity(enum.StrEnum):
    """As GitHub and SARIF call it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    problem: Problem

    @property
    def line(self) -> str:
        problem = self.problem
        said = problem.message if self.severity is Severity.ERROR else f"warning: {problem.message}"
        return f"{problem.file}:{problem.line}:{problem.column}: {said}"


def findings_of(problems: Iterable[Problem], warnings: Iterable[Problem]) -> list[Finding]:
    found = [Finding(Severity.ERROR, one) for one in problems]
    return found + [Finding(Severity.WARNING, one) for one in warnings]


def for_machines(output: Output, findings: Sequence[Finding], counts: Mapping[str, int]) -> str:
    """Return findings as one text; `counts` are what there is besides, by plural noun."""
    if output is Output.GITHUB:
        return "\n".join(map(_annotation, findings))
    document = _json(findings, counts) if output is Output.JSON else _sarif(findings)
    return json.dumps(document, indent=2, ensure_ascii=False)


def _json(findings: Sequence[Finding], counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "findings": [
            {
                "severity": one.severity,
                "file": one.problem.file,
                "line": one.problem.line,
                "column": one.problem.column,
                "message": one.problem.message,
            }
            for one in findings
        ],
        "counts": dict(counts),
    }


def _annotation(finding: Finding) -> str:
    """Return a workflow command, escaped as GitHub's toolkit does."""
    problem = finding.problem
    file = _escaped(problem.file).replace(":", "%3A").replace(",", "%2C")
    place = f"file={file},line={problem.line},col={problem.column},title=vane check"
    return f"::{finding.severity} {place}::{_escaped(problem.message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    rules = [
        {"id": "error", "shortDescription": {"text": "A mistake in a rule file: none of the files is taken"}},
        {"id": "warning", "shortDescription": {"text": "What is allowed, and seldom meant"}},
    ]
    driver = {"name": "vane check", "version": __version__, "rules": rules}
    return {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": [_result(one) for one in findings]}],
    }


def _result(finding: Finding) -> dict[str, Any]:
    problem = finding.problem
    place = {
        "artifactLocation": {"uri": quote(problem.file)},
        "region": {"startLine": problem.line, "startColumn": problem.column},
    }
    return {
        "ruleId": finding.severity,
        "level": finding.severity,
        "message": {"text": problem.message},
        "locations": [{"physicalLocation": place}],
    }
