"""`vane rules export --prometheus`: the signals as recording rules for Prometheus, and alerts for those without series.

The text is YAML that `promtool check rules` takes. Prometheus then works out each expression once, for whoever reads
it, and a signal whose `expr` is the recorded name costs it next to nothing.

Matchers of a server stand in each expression, and as labels on what is recorded: so a recorded series is found by the
matchers with which Vane asks for it, and those that several clusters record in one place stay apart.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.errors import RuleFilesError
from scheduler.model.rules import Dialect, FilterMissing, Rule, RuleSet, Signal, Unit, WeightSignal
from scheduler.signals.files import read_rule_files
from scheduler.signals.format.promql_matchers import NO_MATCHERS, Matchers, narrowed
from scheduler.signals.format.rule_files import describe_by, lint_rule_files
from scheduler.signals.format.units import duration_text

PREFIX: Final = "vane:"
ALERT: Final = "VaneSignalWithoutSeries"

_HEADER: Final = """\
# Recording rules for Vane's signals, written by `vane rules export --prometheus`. Don't edit: export again.
#
# Name this file under `rule_files` of your Prometheus. Then set each signal's `expr` to the recorded name:
#
#   {name}: {{expr: {record}, …}}
#
# A recorded name does not show how far back it looks. So also write the `window` that is noted at each record: pending
# load, which Pods add until samples show it, depends on it.
#
# Recorded samples have the time of the recording. A dead exporter is noticed only when its samples have left
# Prometheus' lookback (5 minutes), or the range of the expression.
"""
_NOTHING: Final = "# No signal that Prometheus could record.\n"


@dataclass(frozen=True, slots=True)
class _Left:
    """A signal that no recording rule can say, and why."""

    name: str
    reason: str


def export_rules(
    paths: Iterable[str | os.PathLike[str]],
    server: str | None = None,
    matchers: Mapping[str, Matchers] = NO_MATCHERS,
) -> str:
    """Return the rule file for the signals of all paths; with `server`, only for those that it is asked for.

    `matchers` are what every selector gets, by the name of the server.

    Raises
    ------
    ConfigError
        A path cannot be read; RuleFilesError with every problem of the files.
    """
    reading = lint_rule_files(read_rule_files(paths), matchers=matchers)
    if reading.problems:
        raise RuleFilesError(list(reading.problems))
    return export_text(reading.rules, server, matchers)


def export_text(rules: RuleSet, server: str | None = None, matchers: Mapping[str, Matchers] = NO_MATCHERS) -> str:
    recorded: list[Signal] = []
    left: list[_Left] = []
    for signal in rules.signals.values():
        if reason := _why_not(signal, rules, server):
            left.append(_Left(signal.name, reason))
        else:
            recorded.append(signal)
    comments = [f"# Left out: {one.name}, {one.reason}.\n" for one in left]
    if not recorded:
        return "".join([_NOTHING, *comments, "groups: []\n"])
    first = recorded[0].name
    parts = [_HEADER.format(name=first, record=f"{PREFIX}{first}")]
    parts += ["#\n", *comments] if comments else []
    parts.append("groups:\n")
    groups: dict[tuple[str, float], list[Signal]] = {}
    for signal in recorded:
        groups.setdefault((signal.server, signal.interval_s), []).append(signal)
    parts += [
        _group(asked, interval_s, signals, matchers.get(asked, ())) for (asked, interval_s), signals in groups.items()
    ]
    alerts = [text for signal in recorded if (text := _alert(signal, rules.rules, matchers.get(signal.server, ())))]
    if alerts:
        parts += ["  - name: vane-signals\n", "    rules:\n", *alerts]
    return "".join(parts)


def _why_not(signal: Signal, rules: RuleSet, server: str | None) -> str:
    if signal.name not in rules.asked:
        return "a signal that Vane reads from the cluster itself"
    if signal.dialect is not Dialect.PROMETHEUS:
        return "MetricsQL"
    if server is not None and signal.server != server:
        return f"a query to {f'server {signal.server}' if signal.server else 'the server without a name'}"
    return ""


def _group(server: str, interval_s: float, signals: Sequence[Signal], matchers: Matchers) -> str:
    interval = duration_text(interval_s)
    lines = [f"  - name: vane-{f'{server}-' if server else ''}{interval}"]
    if server:
        lines.append(f"    # For the Prometheus that the settings call {server}.")
    lines += [f"    interval: {interval}", "    rules:"]
    for signal in signals:
        lines += [
            f"      # {_described(signal)}",
            f"      - record: {PREFIX}{signal.name}",
            *_field("expr", narrowed(signal.expr, matchers)),
            *_labels(matchers),
        ]
    return "\n".join([*lines, ""])


def _described(signal: Signal) -> str:
    unit = f", in {signal.unit}" if signal.unit is not Unit.NONE else ""
    window = f"; window: {duration_text(signal.window_s)}" if signal.window_s else ""
    return f"By {describe_by(signal)}{unit}{window}"


def _labels(matchers: Matchers) -> list[str]:
    if not matchers:
        return []
    return ["        labels:", *(f"          {_quoted(name)}: {_quoted(value)}" for name, value in matchers)]


def _alert(signal: Signal, rules: Sequence[Rule], matchers: Matchers) -> str:
    """Return an alert for a signal that rules look at; without series it stops all Pods, or nothing any more."""
    users = [rule for rule in rules if rule.signal == signal.name or _weighs_by(rule, signal)]
    if not users:
        return ""
    stopped = [rule.name for rule in users if rule.signal == signal.name and _rejects_missing(rule)]
    names = ", ".join(stopped or [rule.name for rule in users])
    effect = f"refused by {names}" if stopped else f"no longer rated by {names}"
    text = f"Signal {signal.name} of Vane has no series: every node is {effect}."
    lines = [
        f"      - alert: {ALERT}",
        *_field("expr", narrowed(f"absent({PREFIX}{signal.name})", matchers)),
        f"        for: {duration_text(signal.max_age_s)}",
        "        labels:",
        f"          severity: {'critical' if stopped else 'warning'}",
        f"          signal: {signal.name}",
        "        annotations:",
        f"          summary: {json.dumps(text)}",
    ]
    return "\n".join([*lines, ""])


def _weighs_by(rule: Rule, signal: Signal) -> bool:
    return isinstance(rule.weight, WeightSignal) and rule.weight.signal == signal.name


def _rejects_missing(rule: Rule) -> bool:
    return rule.filter is not None and rule.filter.missing is FilterMissing.REJECT


def _field(name: str, expr: str) -> list[str]:
    """Return a field with PromQL: lines as a block, but in quotes where white space may belong to a text."""
    text = expr.strip()
    if "\n" not in text or "`" in text:
        return [f"        {name}: {_quoted(text)}"]
    return [f"        {name}: |", *(f"          {line}".rstrip() for line in text.splitlines())]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
