"""Samples by two keys as the store keeps them, and as cycles read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from scheduler.model.arrays import FloatArray
from scheduler.model.keyed import KeyedColumn
from scheduler.model.rules import Signal
from scheduler.signals.answers import KeyedValues, SignalAnswer
from scheduler.signals.columns.alignment import RowAligner
from scheduler.signals.columns.keys import CodedKeys, Keys
from scheduler.signals.columns.published import Held, Published


def read_keyed(
    answer: SignalAnswer, keyed: KeyedValues, names: Sequence[str], before: Held | None
) -> tuple[Keys, FloatArray]:
    """Return the keys of an answer, those of the answer before where they are the same, and float64 (n_samples,).

    No keys where inner keys are nodes and `names`, the nodes of its identity, are not known.
    """
    values = np.frombuffer(keyed.values, dtype=np.float64)
    if not keyed.domains and not names:
        return (), values
    if before is not None and isinstance(before.keys, CodedKeys) and _is_alike(answer, before.answer):
        return before.keys, values
    group = np.frombuffer(keyed.group, dtype=np.int32)
    keys = CodedKeys(
        groups={name: i for i, name in enumerate(keyed.groups)},
        starts=np.searchsorted(group, np.arange(len(keyed.groups) + 1)),
        inner=np.frombuffer(keyed.inner, dtype=np.int32).astype(np.int64),
        names=keyed.domains or names,
        codes=np.frombuffer(keyed.codes, dtype=np.uint64),
        by_code=np.frombuffer(keyed.by_code, dtype=np.int32),
    )
    return keys, values


def _is_alike(answer: SignalAnswer, before: SignalAnswer) -> bool:
    """Whether two answers have samples of the same keys in the same order."""
    one, other = answer.keyed, before.keyed
    if one is None or other is None or answer.identity_generation != before.identity_generation:
        return False
    return (one.groups, one.domains, one.group, one.inner, one.codes) == (
        other.groups,
        other.domains,
        other.group,
        other.inner,
        other.codes,
    )


class KeyedFreezer:
    """Keeps the KeyedColumns of the answers in force; owned by the deciding thread."""

    def __init__(self, aligner: RowAligner) -> None:
        self._aligner = aligner
        self._known: dict[str, tuple[Held, Signal, KeyedColumn]] = {}
        self.columns: Mapping[str, KeyedColumn] = {}

    def align(self, published: Published, *, has_moved: bool) -> None:
        """Bring `columns` up to date, after something was published or some node moved."""
        known, self._known = self._known, {}
        columns: dict[str, KeyedColumn] = {}
        for name, signal in published.asked.items():
            held = published.held.get(name)
            if held is None or not isinstance(held.keys, CodedKeys):
                continue
            old = known.get(name)
            is_same = old is not None and not has_moved and old[0] is held and old[1] is signal
            column = old[2] if old is not None and is_same else self._aligned(signal, held, held.keys)
            trips = {
                rule.name: published.trips[rule.name].bits
                for rule in published.rules.judged
                if rule.signal == name and rule.name in published.trips
            }
            if trips.keys() != column.trips.keys() or any(
                bits is not column.trips[rule] for rule, bits in trips.items()
            ):
                column = replace(column, trips=trips)
            columns[name] = column
            self._known[name] = (held, signal, column)
        self.columns = columns

    def _aligned(self, signal: Signal, held: Held, keys: CodedKeys) -> KeyedColumn:
        alignment = self._aligner.of_names(signal, held.answer.identity_generation, keys.names)
        # Where inner keys are domains, groups are, too.
        targets = self._aligner.of_label(signal.label, tuple(keys.groups)) if signal.label else None
        keyed = held.answer.keyed
        by_value = np.frombuffer(b"" if keyed is None else keyed.by_value, dtype=np.int32)
        if len(by_value) and held.smoothed is not None:
            # The order that came along is that of the samples themselves.
            by_value = np.lexsort((held.values, keys.inner)).astype(np.int32)
        return KeyedColumn(
            groups=keys.groups,
            starts=keys.starts,
            inner=keys.inner,
            values=held.values,
            by_value=by_value,
            n_inner=len(keys.names),
            alignment=alignment,
            targets=targets,
        )
