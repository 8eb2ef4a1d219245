"""How a rule is brought in with care: watching only, for some Pods first, and with at most a share of a decision."""

from __future__ import annotations

from typing import Final, TypedDict

from scheduler.model.rules import DEFAULT_MAX_SHARE, Canary, Mode, Unit
from scheduler.signals.format.fields import Fields, Shape, read_fields
from scheduler.signals.format.matching import read_globs
from scheduler.signals.format.report import Scope, got
from scheduler.signals.format.values import Measure, read_number, read_share, read_word
from scheduler.signals.format.yaml_nodes import Node

CARE: Final = ("mode", "canary", "max_share")
"""The fields of a rule that are read here."""

CANARY: Final = Shape(fields=("percent", "namespaces"))


class Care(TypedDict):
    """As the fields of `Rule`."""

    mode: Mode
    canary: Canary | None
    max_share: float


def read_care(fields: Fields) -> Care:
    mode = read_word(fields.get("mode"), fields.scope.inner("mode"), list(Mode))
    if mode == Mode.SHADOW and "canary" in fields:
        fields.scope.inner("canary").problem(
            fields.at("canary"), "a rule in shadow acts on no Pod at all, got both. Drop `mode: shadow`, or the canary"
        )
    max_share = read_share(fields.get("max_share"), fields.scope.inner("max_share"), "the sum of all weights")
    if "max_share" in fields and "score" not in fields:
        fields.scope.problem(
            fields.at("max_share"), "a share cap without a score does nothing. Write a `score:`, or drop the line"
        )
    return {
        "mode": Mode(mode) if mode else Mode.ENFORCE,
        "canary": _canary(fields.get("canary"), fields.scope.inner("canary")),
        "max_share": DEFAULT_MAX_SHARE if max_share is None else max_share,
    }


def _canary(node: Node | None, scope: Scope) -> Canary | None:
    fields = read_fields(node, scope, CANARY)
    if fields is None:
        return None
    namespaces = read_globs(fields.get("namespaces"), scope.inner("namespaces"))
    percent = _percent(fields.get("percent"), scope.inner("percent"))
    return Canary(100.0 if percent is None else percent, namespaces)


def _percent(node: Node | None, scope: Scope) -> float | None:
    """Return percents of all Pods; `10%` is as good as 10."""
    value = read_number(node, scope, Measure("", Unit.PERCENT))
    if value is not None and node is not None and not 0.0 < value <= 100.0:
        scope.problem(
            node, f"must be above 0 and at most 100, {got(node)}. Write percents, as 10, or `mode: shadow` for none"
        )
    return value
