"""What an expression is evaluated to, and the errors on the way.

PromQLError                what the query API answers with, as a tree
├── PromQLSyntaxError      not PromQL, or of the wrong type: 400 bad_data
├── ExecutionError         PromQL that these samples do not allow: 422 execution
├── UnsupportedPromQLError PromQL outside the subset, by the name of its node: 422 execution
└── QueryTimeoutError      took longer than the asker allowed: 503 timeout
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduler.errors import VaneError

Labels = Mapping[str, str]
Floats = NDArray[np.float64]
LabelKey = frozenset[tuple[str, str]]

NAME: Final = "__name__"
SAME_LABELS: Final = "vector cannot contain metrics with the same labelset"

_METADATA: Final = frozenset({NAME, "__type__", "__unit__"})
_PLAIN_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class PromQLError(VaneError):
    """Base of what the query API answers with instead of a value."""


class PromQLSyntaxError(PromQLError):
    """Not PromQL, or of the wrong type; says what and what to write."""


class ExecutionError(PromQLError):
    """PromQL that these samples do not allow, in Prometheus' words."""


class UnsupportedPromQLError(PromQLError):
    """PromQL outside the subset; `node` names the syntax node, as `SubqueryExpr` or `Call deriv`."""

    def __init__(self, node: str, detail: str = "") -> None:
        self.node = node
        also = f" ({detail})" if detail else ""
        super().__init__(f"{node}{also} is not supported by this embedded evaluator; query a full Prometheus")


class QueryTimeoutError(PromQLError):
    """The query took longer than it may."""


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """One number per label set: `values[i]` belongs to `labels[i]`, shape (n_series,)."""

    labels: tuple[Labels, ...]
    values: Floats
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Scalar:
    value: float
    warnings: tuple[str, ...] = ()


EMPTY: Final = Vector((), np.empty(0))


def make_vector(labels: Iterable[Labels], values: Iterable[float] | Floats) -> Vector:
    """Return a vector whose label sets are known to differ."""
    array = values if isinstance(values, np.ndarray) else np.fromiter(values, dtype=np.float64)
    return Vector(tuple(labels), array)


def unique_vector(labels: Iterable[Labels], values: Iterable[float] | Floats) -> Vector:
    """Return a vector.

    Raises
    ------
    ExecutionError
        Where two label sets are equal, as after a name was dropped.
    """
    vector = make_vector(labels, values)
    if len({label_key(one) for one in vector.labels}) < len(vector):
        raise ExecutionError(SAME_LABELS)
    return vector


def label_key(labels: Labels) -> LabelKey:
    return frozenset(labels.items())


def without_name(labels: Labels) -> Labels:
    """Return the labels without what describes the metric rather than the series."""
    return {name: value for name, value in labels.items() if name not in _METADATA}


def only(labels: Labels, names: Iterable[str]) -> Labels:
    return {name: labels[name] for name in names if name in labels}


def without(labels: Labels, names: frozenset[str]) -> Labels:
    return {name: value for name, value in labels.items() if name not in names}


def with_label(labels: Labels, name: str, value: str) -> Labels:
    """Return the labels with one set; an empty value takes it away, since to Prometheus those are the same."""
    changed = {**labels, name: value}
    if not value:
        del changed[name]
    return changed


def sort_key(labels: Labels) -> tuple[tuple[str, str], ...]:
    """Return the key by which Prometheus orders series."""
    return tuple(sorted(labels.items()))


def label_text(labels: Labels) -> str:
    """Return the labels as Prometheus writes them into messages."""
    parts = (
        f"{name if _PLAIN_LABEL.fullmatch(name) else _quote(name)}={_quote(value)}" for name, value in sort_key(labels)
    )
    return "{" + ", ".join(parts) + "}"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
