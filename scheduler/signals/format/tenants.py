"""The `tenants:` part of a rule file: who may use how much of what nodes really have, and while what is measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from scheduler.model.requests import CPU, MEMORY, is_counted
from scheduler.model.rules import ByKind, FilterMissing, Rule, Tenant
from scheduler.model.tenants import bound_name
from scheduler.signals.format.filter_and_score import read_filter
from scheduler.signals.format.match import read_choices, read_globs
from scheduler.signals.format.rules import NAME
from scheduler.signals.format.signals import Declared
from scheduler.signals.format.units import Measure
from scheduler.strict_yaml.fields import Fields, Shape, read_fields, read_list
from scheduler.strict_yaml.nodes import YamlMapping, YamlNode, YamlScalar, is_broken
from scheduler.strict_yaml.report import Scope, clip, got
from scheduler.strict_yaml.values import read_text

MAX_TENANTS: Final = 100
"""Over all files."""
MAX_PER_MILLE: Final = 2000
DEFAULT_RESOURCES: Final = (CPU, MEMORY)

TENANT: Final = Shape(fields=("name", "match", "overcommit", "resources", "while"), required=("name", "overcommit"))
MATCH: Final = Shape(fields=("namespaces", "namespace_labels"))
BOUND: Final = Shape(
    fields=("signal", "max", "min", "clear", "hold"),
    required=("signal",),
    later={"missing": "overcommit without a sample (missing): without one it is 100 %"},
)
_KINDS: Final = (ByKind.NODE, ByKind.LABEL, ByKind.CLUSTER)
_WHOLE: Final = 1000
PERCENTAGE: Final = re.compile(r"((?:0|[1-9][0-9]{0,9})(?:\.[0-9]{1,9})?) ?%")


@dataclass(slots=True)
class TenantReader:
    """Reads the tenants of all files in turn; names, their number and their order count over all of them.

    `signal_of` finds the signal that a node names, and says where there is none.
    """

    signal_of: Callable[[YamlNode | None, Scope], Declared | None]
    tenants: list[Tenant] = field(default_factory=list)
    _places: dict[str, str] = field(default_factory=dict)
    _n_read: int = 0

    def read(self, node: YamlNode | None, scope: Scope) -> None:
        items = read_list(
            node, scope.inner("tenants"), "Write `- name: …` and what the tenant may use, or drop the line"
        )
        for number, item in enumerate(items or (), start=1):
            if scope.report.is_full:
                return
            self._n_read += 1
            if self._n_read == MAX_TENANTS + 1:
                scope.problem(item, f"more than {MAX_TENANTS} tenants in all files. Drop some, or combine namespaces")
            tenant = self._tenant(item, Scope(scope.report, _label(item, number)))
            if tenant is not None:
                self.tenants.append(tenant)

    def _tenant(self, node: YamlNode, scope: Scope) -> Tenant | None:
        n_problems = len(scope.report.problems)
        fields = read_fields(node, scope, TENANT)
        if fields is None:
            return None
        name = self._name(fields)
        match = read_fields(fields.get("match"), scope.inner("match"), MATCH)
        globs = read_globs(match.get("namespaces"), match.scope.inner("namespaces")) if match else ()
        labels = read_choices(match.get("namespace_labels"), match.scope.inner("namespace_labels")) if match else {}
        per_mille = _per_mille(fields.get("overcommit"), scope.inner("overcommit"))
        resources = _resources(fields.get("resources"), scope.inner("resources"))
        bounds = self._bounds(fields, name or "")
        if len(scope.report.problems) > n_problems or name is None or per_mille is None or bounds is None:
            return None
        if per_mille <= _WHOLE and "while" in fields:
            what = "`while` applies only to an overcommit above 100 %"
            scope.inner("while").problem(fields.at("while"), f"{what}. Drop the line, or write more than 100%")
            return None
        if per_mille > _WHOLE and "while" not in fields:
            scope.warning(
                fields.at("overcommit"),
                "above 100 % whatever is measured: nodes fill up even when they are busy. Write `while:`, as"
                " `while: [{signal: node_cpu_use, max: 85%}]`",
            )
        return Tenant(name, globs, labels, per_mille, resources, bounds, scope.where(node))

    def _name(self, fields: Fields) -> str | None:
        node, scope = fields.get("name"), fields.scope
        name = read_text(node, scope.inner("name"))
        if name is None or node is None:
            return None
        if not NAME.fullmatch(name):
            write = "Write lower-case letters, digits and `-`, at most 63, a letter or digit at both ends"
            scope.inner("name").problem(node, f"not a tenant's name, {got(node)}. {write}")
            return None
        if name in self._places:
            scope.problem(node, f"is defined twice, first at {self._places[name]}. Rename one of the two")
            return None
        self._places[name] = scope.where(node)
        return name

    def _bounds(self, fields: Fields, tenant: str) -> tuple[Rule, ...] | None:
        """Return the bounds, None where one is over a signal that cannot be read, or cannot be read itself."""
        scope = fields.scope.inner("while")
        bounds: dict[str, Rule] = {}
        items = read_list(fields.get("while"), scope, "Write `[{signal: …, max: …}]`, or drop the line") or ()
        for item in items:
            bound = self._bound(item, scope, tenant)
            if bound is None:
                continue
            if bound.signal in bounds:
                scope.problem(item, f"signal '{bound.signal}' is listed twice. Write its max and min together")
            bounds[bound.signal] = bound
        return tuple(bounds.values()) if len(bounds) == len(items) else None

    def _bound(self, node: YamlNode, scope: Scope, tenant: str) -> Rule | None:
        named = next((value for key, value in _entries(node) if key.value == "signal"), None)
        signal = self.signal_of(named, scope.inner("signal"))
        limits = read_filter(node, scope, signal.measure if signal else Measure("", None), BOUND)
        if signal is None or limits is None or named is None or signal.signal is None:
            return None
        if signal.by not in _KINDS or signal.signal.built_in is not None:
            what = f"signal '{signal.name}' is not measured by node, by a label of nodes or for the cluster"
            scope.inner("signal").problem(named, f"{what}. Write one that is")
            return None
        needed = replace(limits, missing=FilterMissing.REJECT)
        return Rule(bound_name(tenant, signal.name), signal.name, filter=needed, where=scope.where(node))


def _entries(node: YamlNode) -> tuple[tuple[YamlScalar, YamlNode], ...]:
    return tuple(node.entries) if isinstance(node, YamlMapping) else ()


def _label(node: YamlNode, number: int) -> str:
    """Name a tenant in messages by what it calls itself, else by its place in the list."""
    for key, value in _entries(node):
        if key.value == "name" and isinstance(value, YamlScalar) and value.value:
            return f"tenant '{clip(value.value)}'"
    return f"tenant {number}"


def _per_mille(node: YamlNode | None, scope: Scope) -> int | None:
    """Return thousandths from a percentage, `105%`, with a tenth of a percent at most."""
    if node is None or is_broken(node):
        return None
    match = PERCENTAGE.fullmatch(node.value) if isinstance(node, YamlScalar) else None
    if match is None:
        scope.problem(node, f"must be a percentage of the real allocatable, {got(node)}. Write it with `%`, as 105%")
        return None
    exact = Fraction(match[1]) * 10
    if exact.denominator != 1:
        scope.problem(node, f"must have one digit after the point at most, {got(node)}. Write 102.5%, or 105%")
        return None
    if not 0 < exact <= MAX_PER_MILLE:
        scope.problem(node, f"must be above 0% and at most 200%, {got(node)}. Write a percentage within these")
        return None
    return int(exact)


def _resources(node: YamlNode | None, scope: Scope) -> tuple[str, ...]:
    found: list[str] = []
    for item in read_list(node, scope, "Write resources, as `[cpu, memory]`, or drop the line for these two") or ():
        name = read_text(item, scope)
        if name is None:
            continue
        if not is_counted(name):
            scope.problem(item, f"not a resource that Pods request, {got(item)}. Write cpu, memory or nvidia.com/gpu")
        elif name in found:
            scope.problem(item, f"is listed twice, {got(item)}. Drop one of the two")
        found.append(name)
    return tuple(found) if node is not None else DEFAULT_RESOURCES
