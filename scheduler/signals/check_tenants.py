"""What `vane check` says about tenants: who may use how much, while what is measured, and where all that counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from scheduler.model.real_allocatable import ANNOTATION
from scheduler.model.rules import RuleFilter, RuleSet, Tenant

HEAD: Final = ("TENANT", "NAMESPACES", "OVERCOMMIT", "RESOURCES", "WHILE")

WHERE: Final = (
    f"Tenants count on nodes with the annotation {ANNOTATION}, of whose figures OVERCOMMIT is the most that",
    "all Pods there may request together; never more than the node advertises, and 100% where WHILE does not hold.",
    "On every other node each Pod, whatever its tenant, has 100% of what the node advertises.",
)


def tenant_rows(rules: RuleSet, limits_text: Callable[[RuleFilter | None], str]) -> list[tuple[str, ...]]:
    """Return the cells of the table: a row for each tenant, and one for the Pods of none; no rows without tenants."""
    rows = [
        (
            tenant.name,
            _namespaces_text(tenant),
            f"{tenant.per_mille / 10:g}%",
            ", ".join(tenant.resources),
            _while_text(tenant, limits_text),
        )
        for tenant in rules.tenants
    ]
    return [*rows, ("-", "all others", "100%", "all", "-")] if rows else []


def _namespaces_text(tenant: Tenant) -> str:
    labels = [f"{key}={'|'.join(values)}" for key, values in tenant.namespace_labels.items()]
    return " ".join((*tenant.namespaces, *labels)) or "all"


def _while_text(tenant: Tenant, limits_text: Callable[[RuleFilter | None], str]) -> str:
    if tenant.per_mille <= 1000 or not tenant.bounds:
        return "-"
    return ", ".join(f"{bound.signal} {_limits(bound.filter, limits_text)}" for bound in tenant.bounds)


def _limits(limits: RuleFilter | None, limits_text: Callable[[RuleFilter | None], str]) -> str:
    """Return the limits without what goes without saying: that a sample is needed."""
    parts: Sequence[str] = limits_text(limits).split(", ")
    return " ".join(part for part in parts if not part.startswith("missing"))
