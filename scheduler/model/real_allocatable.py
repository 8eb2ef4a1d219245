"""What a node really has, where its owner advertises more: the annotation `vane.dev/real-allocatable`.

The kubelet refuses Pods above `status.allocatable`, so overcommit needs an owner who has raised it, and who says here
what is real: `{"cpu": "8", "memory": "32Gi"}`. A resource that is not named is as advertised, and so is one of which
more is named than is advertised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from scheduler.errors import InvalidObjectError
from scheduler.model.objects import Node
from scheduler.model.quantity import parse_quantity
from scheduler.model.requests import CPU, Amounts, is_counted
from scheduler.model.structs import MALFORMED_JSON, ResourceList

ANNOTATION: Final = "vane.dev/real-allocatable"

_decoder: Final = msgspec.json.Decoder(ResourceList)


@dataclass(frozen=True, slots=True)
class RealFigures:
    """What a node publishes.

    withheld
        Resource -> how much more is advertised than is real, above 0, in millicores and whole units.
    problem
        Why the annotation cannot be read, "" where it can: then all is as advertised, beyond which no tenant gets.
    """

    is_published: bool = False
    withheld: Amounts = field(default_factory=dict)
    problem: str = ""


_NOTHING: Final = RealFigures()


def real_figures(node: Node, advertised: Mapping[str, int]) -> RealFigures:
    """Return what the annotation says beside what the node advertises, in millicores and whole units."""
    text = (node.metadata.annotations or {}).get(ANNOTATION)
    if text is None:
        return _NOTHING
    try:
        real = _amounts(text)
    except InvalidObjectError as error:
        return RealFigures(is_published=True, problem=str(error))
    withheld = {name: advertised.get(name, 0) - amount for name, amount in real.items()}
    return RealFigures(True, {name: amount for name, amount in withheld.items() if amount > 0})


def _amounts(text: str) -> Amounts:
    """Return millicores and whole units, rounded down: half a unit is none."""
    try:
        listed = _decoder.decode(text)
    except MALFORMED_JSON as error:
        advice = """Write JSON, as {"cpu": "8", "memory": "32Gi"}"""
        raise InvalidObjectError(f"annotation {ANNOTATION}: {error}. {advice}") from error
    amounts: Amounts = {}
    for name, quantity in listed.items():
        if not is_counted(name):
            raise InvalidObjectError(f"annotation {ANNOTATION}: got {name!r}. Write a resource, as cpu or memory")
        value = parse_quantity(str(quantity)) * (1000 if name == CPU else 1)
        if value < 0:
            raise InvalidObjectError(f"annotation {ANNOTATION}, {name}: got {quantity!r}. Write 0 or more")
        amounts[name] = value.numerator // value.denominator
    return amounts
