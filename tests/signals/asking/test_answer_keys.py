from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from scheduler.model.rules import Signal
from scheduler.signals.asking.groupings import grouping_of
from scheduler.signals.asking.ingest import ingest
from tests.signals.asking.test_groupings import BURN, CPU, RESOLVER, ZONE, card, coded, series


@pytest.mark.parametrize(
    ("signal", "found", "fields"),
    [
        (CPU, [({"node": "b"}, "2")], {"values": np.array([np.nan, 2.0, np.nan]).tobytes(), "identity_generation": 1}),
        (ZONE, [({"zone": "z1"}, "2"), ({"zone": "z2"}, "NaN")], {"by_label": {"z1": 2.0}}),
        (BURN, [({}, "2")], {"value": 2.0}),
        (BURN, [], {}),
    ],
)
def test_values_of_one_key_cross_in_the_form_of_their_kind(
    signal: Signal, found: list[tuple[Mapping[str, str], str]], fields: dict[str, Any]
) -> None:
    ingested = ingest(signal, series(*found), RESOLVER)
    assert ingested.keys.packed(ingested.values) == fields


def test_keys_meet_those_of_another_answer() -> None:
    grouping = grouping_of(ZONE)
    first, second = (grouping.keys(series(*(({"zone": z}, "1") for z in zones)), RESOLVER)[0] for zones in ("ab", "bc"))
    assert second.positions_in(first).tolist() == [1, -1]
    few, _ = coded(series(card("b", "x", "1")), RESOLVER)
    many, _ = coded(series(card("a", "w", "1"), card("b", "x", "1")), RESOLVER)
    assert many.positions_in(few).tolist() == [-1, 0]
    assert few.positions_in(coded([], RESOLVER)[0]).tolist() == [-1]
    assert few.positions_in(first).tolist() == [-1]
