"""Slots kept in order while few or many of them change, against a sort of all."""

from __future__ import annotations

from random import Random

import numpy as np

from scheduler.plugins.volumes.volume_binding.storage_table import SlotOrder
from tests.worlds import each_seed, is_so

CAPACITY = 80


@each_seed(40)
def test_the_order_is_that_of_a_sort_whatever_has_changed(random: Random) -> None:
    order, is_there = SlotOrder(), np.zeros(CAPACITY, dtype=np.bool_)
    columns = [np.zeros(CAPACITY, dtype=np.int64) for _ in range(3)]
    columns[2][:] = np.arange(CAPACITY)[::-1]
    for _ in range(30):
        changed = set(random.sample(range(CAPACITY), random.choice([0, 1, 2, 5, 60])))
        for slot in changed:
            is_there[slot] = is_so(random)
            for column in columns[:2]:
                column[slot] = random.randint(-2, 2)
        order.update(columns, is_there, changed)

        expected = sorted(np.flatnonzero(is_there).tolist(), key=lambda slot: [int(column[slot]) for column in columns])
        assert order.slots.tolist() == expected
