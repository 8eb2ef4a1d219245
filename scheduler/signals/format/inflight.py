"""The `inflight:` of a signal: what a placed Pod adds until the samples show it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Final

from scheduler.errors import InvalidObjectError
from scheduler.model.quantity import parse_quantity
from scheduler.model.requests import CPU, MEMORY, is_counted
from scheduler.model.rules import ByKind, Effect, EffectKind, Unit, effect_scale
from scheduler.signals.format.units import Measure, read_amount
from scheduler.strict_yaml.fields import read_mapping
from scheduler.strict_yaml.nodes import YamlNode, YamlScalar, is_broken
from scheduler.strict_yaml.report import Scope, clip, did_you_mean, got

WITHOUT_REQUEST: Final = "without_request"
"""The key beside a resource for what a Pod adds that requests nothing of it."""
VALUE: Final = "value"
"""The key for an amount in the signal's own unit."""

_ADVICE: Final = "Write `{cpu: request}`, `{memory: 512Mi}`, `{cpu: learned}` or `{value: …}`"
_WORDS: Final = (EffectKind.REQUEST.value, EffectKind.LEARNED.value)
_MAX_AMOUNT: Final = 1 << 43
"""So that the sum over the Pods of a node stays within 63 bits."""


def read_inflight(node: YamlNode | None, scope: Scope, measure: Measure, by: ByKind | None) -> Effect | None:
    mapping = read_mapping(node, scope, _ADVICE)
    if mapping is None or node is None:
        return None
    if by not in (ByKind.NODE, ByKind.LABEL, None):
        what = f"Pods add to what is measured by node or by node label, got a signal by: {by.value}"
        scope.problem(node, f"{what}. Drop the line, or write another `by`")
        return None
    entries = [entry for entry in mapping.entries if entry[0].value != WITHOUT_REQUEST]
    floors = [entry for entry in mapping.entries if entry[0].value == WITHOUT_REQUEST]
    if len(entries) != 1:
        scope.problem(node, f"must be one resource, or `value`, got {len(entries)}. {_ADVICE}")
        return None
    effect = _effect(*entries[0], scope, measure)
    return _with_floor(effect, *floors[0], scope) if floors and effect is not None else effect


def _with_floor(effect: Effect, key: YamlScalar, value: YamlNode, scope: Scope) -> Effect | None:
    inner = scope.inner(WITHOUT_REQUEST)
    if effect.kind is EffectKind.CONSTANT or not effect.resource:
        what = "every Pod adds the same, whatever it requests" if effect.kind is EffectKind.CONSTANT else "no resource"
        inner.problem(key, f"{what}. Drop it, or write `{{cpu: request, {WITHOUT_REQUEST}: 500m}}`")
        return None
    floor = _of_quantity(effect.resource, value, inner, "an amount", ())
    return None if floor is None else replace(effect, without_request=floor.amount)


def _effect(key: YamlScalar, value: YamlNode, scope: Scope, measure: Measure) -> Effect | None:
    inner = scope.inner(clip(key.value))
    if is_broken(value):
        return None
    if key.value == VALUE:
        return _of_value(value, inner, measure)
    if not is_counted(key.value):
        scope.problem(key, f"not a resource, {got(key)}{did_you_mean(key.value, (CPU, MEMORY, VALUE))}. {_ADVICE}")
        return None
    if measure.unit is not None and not _has_unit_of(key.value, measure.unit):
        units = "`unit: ratio`, `percent` or `bytes`" if key.value != CPU else "`unit: ratio` or `percent`"
        what = f"what a Pod adds to '{measure.signal}' does not follow from {key.value}: its unit is {measure.unit}"
        scope.problem(key, f"{what}. Write {units} to the signal, or `{{value: …}}`")
        return None
    return _of_resource(key.value, value, inner)


def _of_value(node: YamlNode, scope: Scope, measure: Measure) -> Effect | None:
    word = node.value if isinstance(node, YamlScalar) else ""
    if word == EffectKind.LEARNED.value:
        return Effect(EffectKind.LEARNED)
    if word == EffectKind.REQUEST.value:
        scope.problem(node, f"`request` needs a resource, {got(node)}. Write `{{cpu: request}}`, or a number here")
        return None
    amount = read_amount(node, scope, measure)
    if amount is None or measure.unit is None:
        return None
    whole = round(amount * effect_scale(measure.unit))
    return _constant(node, scope, "", whole)


def _of_resource(resource: str, node: YamlNode, scope: Scope) -> Effect | None:
    word = node.value if isinstance(node, YamlScalar) else ""
    if word in _WORDS:
        return Effect(EffectKind(word), resource)
    return _of_quantity(resource, node, scope, "`request`, `learned` or an amount", _WORDS)


def _of_quantity(resource: str, node: YamlNode, scope: Scope, expected: str, words: tuple[str, ...]) -> Effect | None:
    word = node.value if isinstance(node, YamlScalar) else ""
    try:
        quantity = parse_quantity(word)
    except InvalidObjectError:
        hint = "200m" if resource == CPU else "512Mi"
        scope.problem(node, f"must be {expected}, {got(node)}{did_you_mean(word, words)}. Write one, as `{hint}`")
        return None
    return _constant(node, scope, resource, round(quantity * (1000 if resource == CPU else Fraction(1))))


def _constant(node: YamlNode, scope: Scope, resource: str, whole: int) -> Effect | None:
    if whole == 0 or abs(whole) > _MAX_AMOUNT or (resource and whole < 0):
        scope.problem(node, f"not an amount that a Pod can add, {got(node)}. Write one that is neither zero nor huge")
        return None
    return Effect(EffectKind.CONSTANT, resource, float(whole))


def _has_unit_of(resource: str, unit: Unit) -> bool:
    """Whether an amount of the resource can be said in the unit: as a share of the node's, or as it is."""
    return unit in (Unit.RATIO, Unit.PERCENT) or (unit is Unit.BYTES and resource != CPU)
