"""Labels: which requirements are valid, what they match, and node labels as columns of interned values.

A requirement is decided once per distinct value (a look-up table), then gathered over the nodes: its cost
is that of one fancy index, whatever the operator.

Source: k8s.io/component-helpers scheduling/corev1/nodeaffinity and apimachinery pkg/labels (behaviour).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.model.arrays import BoolArray, CodeArray, IntArray
from scheduler.model.structs import Requirement

ABSENT = -1
"""The code of a node that does not carry the key."""

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
LABEL_KEY = re.compile(rf"(?:(?=[^/]{{1,253}}/){_LABEL}(?:\.{_LABEL})*/)?{_NAME}")
LABEL_VALUE = re.compile(rf"(?:{_NAME})?")
# No more digits than int64 has: Python refuses to convert thousands of them, with an error.
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")


def parse_int64(text: str) -> int | None:
    """Return what Go's strconv.ParseInt(text, 10, 64) reads, None where it fails."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    value = int(match[1] + match[2])
    return value if -(2**63) <= value < 2**63 else None


def is_label_key(key: str) -> bool:
    return LABEL_KEY.fullmatch(key) is not None


def is_label_value(value: str) -> bool:
    return LABEL_VALUE.fullmatch(value) is not None


class AnyRequirement(Protocol):
    """A requirement, as the API holds it or as a selector that is a key does."""

    @property
    def key(self) -> str: ...

    @property
    def operator(self) -> str: ...

    @property
    def values(self) -> Sequence[str] | None: ...


def check_requirement(requirement: Requirement) -> None:
    """Raise InvalidObjectError where apimachinery's labels.NewRequirement would refuse it."""
    key, operator, values = requirement.key, requirement.operator, requirement.values or []
    problem = ""
    if not is_label_key(key):
        problem = f"key: got {key!r}. Write a qualified label name"
    elif operator in ("In", "NotIn"):
        problem = "" if values else f"values of {key!r}: for In and NotIn there must be at least one"
    elif operator in ("Exists", "DoesNotExist"):
        problem = f"values of {key!r}: for {operator} there must be none" if values else ""
    elif operator in ("Gt", "Lt"):
        if len(values) != 1 or parse_int64(values[0]) is None:
            problem = f"values of {key!r}: for {operator} there must be one integer, got {values!r}"
    else:
        problem = f"operator of {key!r}: got {operator!r}. Write In, NotIn, Exists, DoesNotExist, Gt or Lt"
    wrong = next((value for value in values if not is_label_value(value)), None)
    if not problem and wrong is not None:
        problem = f"values of {key!r}: got {wrong!r}, which is no label value"
    if problem:
        raise InvalidObjectError(problem)


def requirement_holds(requirement: AnyRequirement, labels: Mapping[str, str]) -> bool:
    """Return whether one node's labels satisfy a valid requirement: what `LabelColumns.matches` says of a row."""
    value, wanted = labels.get(requirement.key), requirement.values or []
    operator = requirement.operator
    if value is None:
        return operator in ("NotIn", "DoesNotExist")
    if operator in ("In", "NotIn"):
        return (value in wanted) == (operator == "In")
    if operator in ("Gt", "Lt"):
        number, limit = parse_int64(value), parse_int64(wanted[0])
        if number is None or limit is None:
            return False
        return number > limit if operator == "Gt" else number < limit
    return operator == "Exists"


class _LabelColumn:
    """The values of one key: int32 codes per node, and per code the value and its integer reading."""

    def __init__(self, capacity: int) -> None:
        self.codes: CodeArray = np.full(capacity, ABSENT, dtype=np.int32)
        self.values: dict[str, int] = {}
        self._numbers: list[int | None] = []
        self._number_columns: tuple[IntArray, BoolArray] | None = None

    def set(self, row: int, value: str) -> None:
        code = self.values.get(value)
        if code is None:
            if len(self.values) > 2 * len(self.codes) + 64:
                self._forget_unused()
            code = self.values[value] = len(self.values)
            self._numbers.append(parse_int64(value))
            self._number_columns = None
        self.codes[row] = code

    def _forget_unused(self) -> None:
        used, self.codes[:] = np.unique(self.codes, return_inverse=True)
        names = list(self.values)
        if len(used) and used[0] == ABSENT:
            self.codes -= 1
            used = used[1:]
        self.values = {names[code]: new for new, code in enumerate(used)}
        self._numbers = [parse_int64(value) for value in self.values]

    def numbers(self) -> tuple[IntArray, BoolArray]:
        """Return per code its integer value and whether it has one; the last entry stands for ABSENT."""
        if self._number_columns is None:
            numbers = [*self._numbers, None]
            self._number_columns = (
                np.array([number or 0 for number in numbers], dtype=np.int64),
                np.array([number is not None for number in numbers], dtype=np.bool_),
            )
        return self._number_columns

    def verdicts(self, requirement: Requirement) -> BoolArray:
        """Return bool (n_values + 1,) by code; the last entry stands for ABSENT."""
        operator, wanted = requirement.operator, requirement.values or []
        if operator in ("Gt", "Lt"):
            numbers, is_number = self.numbers()
            limit = parse_int64(wanted[0])
            if limit is None:
                return np.zeros(len(numbers), dtype=np.bool_)
            beyond = numbers > limit if operator == "Gt" else numbers < limit
            return beyond & is_number
        named = np.zeros(len(self.values) + 1, dtype=np.bool_)
        if operator in ("In", "NotIn"):
            named[[self.values[value] for value in wanted if value in self.values]] = True
            return named if operator == "In" else ~named
        named[ABSENT] = True
        return named if operator == "DoesNotExist" else ~named


class LabelColumns:
    """One column of value codes per label key. A code holds until the next `set_row`."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, _LabelColumn] = {}

    def grow(self, capacity: int) -> None:
        for column in self._columns.values():
            wider = np.full(capacity, ABSENT, dtype=np.int32)
            wider[: self._capacity] = column.codes
            column.codes = wider
        self._capacity = capacity

    def set_row(self, row: int, labels: Mapping[str, str]) -> None:
        """Replace the labels of one node."""
        for key, column in self._columns.items():
            if key not in labels:
                column.codes[row] = ABSENT
        for key, value in labels.items():
            if key not in self._columns:
                self._columns[key] = _LabelColumn(self._capacity)
            self._columns[key].set(row, value)

    def codes(self, key: str) -> CodeArray | None:
        """Return int32 (capacity,) of `key`, ABSENT where a node lacks it; None where no node ever had it."""
        column = self._columns.get(key)
        return None if column is None else column.codes

    @property
    def n_keys(self) -> int:
        return len(self._columns)

    def keys(self) -> Iterable[str]:
        """Return the keys that any node ever had."""
        return self._columns.keys()

    def values(self, key: str) -> Mapping[str, int]:
        """Return value -> code of `key`, in order of code."""
        column = self._columns.get(key)
        return {} if column is None else column.values

    def matches(self, requirement: Requirement, n_rows: int) -> BoolArray:
        """Return bool (n_rows,), True where the node's labels satisfy a valid requirement."""
        column = self._columns.get(requirement.key)
        if column is None:
            return np.full(n_rows, requirement.operator in ("NotIn", "DoesNotExist"), dtype=np.bool_)
        result: BoolArray = column.verdicts(requirement)[column.codes[:n_rows]]
        return result
