"""How a rule is rolled out: watching only, for some Pods first, with a share of a decision, on fresh data only."""

from __future__ import annotations

from typing import Final, TypedDict

from scheduler.model.rules import DEFAULT_MAX_SHARE, Canary, Mode, Signal, Unit
from scheduler.signals.format.match import read_globs
from scheduler.signals.format.units import Measure, read_amount, read_share
from scheduler.strict_yaml.fields import Fields, Shape, read_fields
from scheduler.strict_yaml.nodes import YamlNode
from scheduler.strict_yaml.report import Scope, got
from scheduler.strict_yaml.values import read_duration, read_word

ROLLOUT: Final = ("mode", "canary", "max_share", "max_age")
"""The fields of a rule that are read here."""

CANARY: Final = Shape(fields=("percent", "namespaces"))


class Rollout(TypedDict):
    """As the fields of `Rule`."""

    mode: Mode
    canary: Canary | None
    max_share: float
    max_age_s: float


def read_rollout(fields: Fields, signal: Signal | None) -> Rollout:
    """Read the fields; `signal` is the rule's, None where it has none or that cannot be read."""
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
        "max_age_s": _max_age(fields, signal),
    }


def _max_age(fields: Fields, signal: Signal | None) -> float:
    """Return seconds, 0 where samples end when the signal says."""
    node, scope = fields.get("max_age"), fields.scope.inner("max_age")
    seconds = read_duration(node, scope)
    if "max_age" in fields and "label_match" in fields:
        scope.problem(fields.at("max_age"), "labels have no age, and no sample is read, got both. Drop the line")
    if node is None or seconds is None or signal is None:
        return 0.0
    if signal.built_in is not None:
        what = f"signal '{signal.name}' is built in, exact at each moment"
        scope.problem(fields.at("max_age"), f"{what}, so that `max_age` means nothing. Drop the line")
    elif not signal.fresh_s <= seconds <= signal.max_age_s:
        lowest, highest = f"{signal.fresh_s:g}s, two intervals", f"{signal.max_age_s:g}s, the max_age"
        what = f"must be from {lowest}, to {highest} of signal '{signal.name}', {got(node)}"
        scope.problem(node, f"{what}. Write a duration within these, or drop the line")
    return seconds


def _canary(node: YamlNode | None, scope: Scope) -> Canary | None:
    fields = read_fields(node, scope, CANARY)
    if fields is None:
        return None
    namespaces = read_globs(fields.get("namespaces"), scope.inner("namespaces"))
    percent = _percent(fields.get("percent"), scope.inner("percent"))
    return Canary(100.0 if percent is None else percent, namespaces)


def _percent(node: YamlNode | None, scope: Scope) -> float | None:
    """Return percents of all Pods; `10%` is as good as 10."""
    value = read_amount(node, scope, Measure("", Unit.PERCENT))
    if value is not None and node is not None and not 0.0 < value <= 100.0:
        scope.problem(
            node, f"must be above 0 and at most 100, {got(node)}. Write a percentage, as 10, or `mode: shadow` for none"
        )
    return value
