"""The rule file format: bytes in, a checked RuleSet out, or every mistake of every file at once.

Pure: no file is opened here (`signals.files` does that) and nothing of the set in force is known, so a caller
that gets RuleFilesError keeps what it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Final

from scheduler.errors import Problem, RuleFilesError
from scheduler.model.rules import ByKind, Rule, RuleSet, Signal
from scheduler.signals.format.promql_matchers import NO_MATCHERS, Matchers
from scheduler.signals.format.query import NO_FEATURES, Asked, Features, read_dialect
from scheduler.signals.format.rules import RuleReader
from scheduler.signals.format.signals import Declared, read_signals
from scheduler.signals.format.tenants import TenantReader
from scheduler.strict_yaml.fields import Fields, Shape, read_document
from scheduler.strict_yaml.nodes import is_broken
from scheduler.strict_yaml.report import Report, Scope, problem_at

API_VERSION: Final = "vane.dev/v1"
KIND: Final = "Rules"

FILE: Final = Shape(
    fields=("apiVersion", "kind", "signals", "rules", "tenants", "dialect"),
    required=("apiVersion", "kind"),
    later={"defaults": "defaults for a whole file (defaults)", "tests": "tests inside a rule file (tests)"},
)


@dataclass(frozen=True, slots=True)
class LintResult:
    """What was read and what was found; with problems, `rules` holds only what has none."""

    rules: RuleSet
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def parse_rule_files(
    files: Mapping[str, bytes],
    generation: int = 0,
    servers: Set[str] | None = None,
    features: Features = NO_FEATURES,
    matchers: Mapping[str, Matchers] = NO_MATCHERS,
) -> RuleSet:
    """Return the signals and rules of all files together.

    Parameters
    ----------
    files
        Content by name; the name is what messages show.
    servers
        The names that a signal's `server` may have; None where they are not known, and any is taken.
    features
        What each server has switched on, by its name; an expression that needs more is a warning.
    matchers
        What every selector gets, by the name of the server; an expression that cannot take them is a problem.

    Raises
    ------
    RuleFilesError
        With every problem of every file; what was in force before stays so.
    """
    result = lint_rule_files(files, generation, servers, features, matchers)
    if result.problems:
        raise RuleFilesError(list(result.problems))
    return result.rules


def lint_rule_files(
    files: Mapping[str, bytes],
    generation: int = 0,
    servers: Set[str] | None = None,
    features: Features = NO_FEATURES,
    matchers: Mapping[str, Matchers] = NO_MATCHERS,
) -> LintResult:
    """Read all files and return what they hold along with problems and warnings; no exception for any content."""
    reports = {name: Report(name) for name in files}
    opened = {name: _open(data, reports[name]) for name, data in files.items()}
    signals: dict[str, Declared] = {}
    for fields in opened.values():
        if fields is not None:
            dialect = read_dialect(fields.get("dialect"), fields.scope.inner("dialect"))
            asked = Asked(dialect, servers, features, matchers)
            read_signals(fields.get("signals"), fields.scope.inner("signals"), asked, signals)
    is_complete = not any(fields is None or _hides_signals(fields) for fields in opened.values())
    is_complete = is_complete and not any(report.is_full for report in reports.values())
    reader = RuleReader(signals, is_complete)
    tenants = TenantReader(reader.signal_of)
    for name, fields in opened.items():
        if fields is not None:
            reader.read(fields.get("rules"), Scope(reports[name]))
            tenants.read(fields.get("tenants"), Scope(reports[name]))
    good = {name: declared.signal for name, declared in signals.items() if declared.signal is not None}
    rules = RuleSet(good, tuple(reader.rules), generation, tuple(tenants.tenants))
    _warn_of_limits(rules.judged, good, reports)
    return LintResult(
        rules=rules,
        problems=tuple(sorted(problem for report in reports.values() for problem in report.problems)),
        warnings=tuple(sorted(warning for report in reports.values() for warning in report.warnings)),
    )


def _open(data: bytes, report: Report) -> Fields | None:
    """Return the top fields of a file, or None where nothing in it can be read."""
    fields = read_document(data, report, FILE, API_VERSION, KIND)
    if fields is None:
        return None
    if not {"signals", "rules", "tenants"} & fields.found.keys() and not report.problems:
        what = "neither signals nor rules nor tenants: the file says nothing"
        fields.scope.problem(fields.node, f"{what}. Write at least one of the three")
    return fields


def _hides_signals(fields: Fields) -> bool:
    return "signals" in fields and is_broken(fields.get("signals"))


def _warn_of_limits(rules: Iterable[Rule], signals: Mapping[str, Signal], reports: Mapping[str, Report]) -> None:
    """Warn of a limit that no valid sample can reach, most often 80 where 0.8 or 80% is meant."""
    for rule in rules:
        span = signals[rule.signal].range if rule.signal else None
        if span is None or rule.filter is None:
            continue
        for name, limit in (("max", rule.filter.max), ("min", rule.filter.min)):
            if limit is not None and not span[0] <= limit <= span[1]:
                what = f"{name} {limit:g} is outside the signal's range [{span[0]:g}, {span[1]:g}]: all nodes or none"
                message = f"rule '{rule.name}', filter: {what}. Write a limit within the range"
                warning = problem_at(rule.where, message)
                reports[warning.file].warnings.append(warning)


def unused_signals(rules: RuleSet) -> list[str]:
    """Return the names of signals that no rule looks at; they are asked for all the same."""
    used = {rule.signal for rule in rules.judged}
    used |= {rule.weight.signal for rule in rules.rules if not isinstance(rule.weight, float)}
    return [name for name in rules.signals if name not in used]


def describe_by(signal: Signal) -> str:
    return signal.label if signal.by is ByKind.LABEL else signal.by.value
