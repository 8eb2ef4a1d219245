"""The names of tenants in refusals, metrics and changes of rules."""

from __future__ import annotations

from dataclasses import replace

from scheduler.model.rules import Rule, RuleSet, Tenant

NO_TENANT = "no tenant"
"""Stands for Pods without a tenant, which have 100 % of what is real."""


def key_of(tenant: Tenant | None) -> str:
    """Return what stands in the place of a rule's name, which no rule can have."""
    return NO_TENANT if tenant is None else f"tenant {tenant.name}"


def names_of_tenants(rules: RuleSet) -> list[str]:
    """Return the names of all tenants that may be named in a refusal; none without tenants."""
    return [NO_TENANT, *map(key_of, rules.tenants)] if rules.tenants else []


def bound_name(tenant: str, signal: str) -> str:
    """Return the name of the rule that bounds a tenant by a signal."""
    return f"tenant {tenant}, {signal}"


def concerned(rules: RuleSet, changed: frozenset[str]) -> frozenset[str]:
    """Return the names of rules whose verdict has changed with the tenants in place of their bounds."""
    keys = {bound.name: key_of(tenant) for tenant in rules.tenants for bound in tenant.bounds}
    return frozenset(keys.get(name, name) for name in changed)


def reassigned(old: RuleSet, new: RuleSet) -> frozenset[str]:
    """Return whom a new list of tenants affects: all, as the first match counts; none if the list is the same."""
    if [_meaning(tenant) for tenant in old.tenants] == [_meaning(tenant) for tenant in new.tenants]:
        return frozenset()
    return frozenset({NO_TENANT, *map(key_of, old.tenants), *map(key_of, new.tenants)})


def _meaning(tenant: Tenant) -> tuple[Tenant, tuple[Rule, ...]]:
    bounds = tuple(replace(bound, where="") for bound in tenant.bounds)
    return replace(tenant, bounds=(), where=""), bounds
