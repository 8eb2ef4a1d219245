from __future__ import annotations

import logging
import math

import numpy as np
import pytest

from scheduler.model.rules import ByKind, Signal
from scheduler.signals.answers import Drops, SignalAnswer
from scheduler.signals.asking.complaints import Complaints, complaint_of

GPU = Signal("gpu", "DCGM_FI_DEV_GPU_UTIL")
NO_SERIES = "signal gpu: no series; does Prometheus have these metrics? (0 of 4 nodes covered)"


def answer(*values: float, n_series: int = 0, **fields: object) -> SignalAnswer:
    column = np.array([*values, *[math.nan] * (4 - len(values))])
    given = {"values": column.tobytes(), "n_series": n_series or len(values), "n_mapped": len(values)} | fields
    return SignalAnswer("gpu", "", 1, 60.0, 0.0, **given)  # type: ignore[arg-type]  # fields by name


FAILURE = SignalAnswer("gpu", "", 1, 60.0, 0.0, error="refused", error_kind="unreachable")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"error": "x", "error_kind": "timeout"}, "no answer (timeout)"),
        ({"warnings": ("w",), "is_suspect": True}, "warnings"),
        ({"is_suspect": True, "n_series": 2, "n_mapped": 2}, "far fewer nodes"),
        ({"is_suspect": True}, "no series"),
        ({"drops": Drops(duplicate=2), "n_series": 2}, "reduce"),
        ({"drops": Drops(unmapped=2), "n_series": 2}, "none names a known node"),
        ({"drops": Drops(nan=2), "n_series": 2}, "no usable value"),
        ({"n_series": 2, "n_mapped": 2}, ""),
        ({}, "no series"),
    ],
)
def test_complaints_have_no_numbers_that_change(fields: dict[str, object], words: str) -> None:
    complaint = complaint_of(SignalAnswer("s", "", 1, 60.0, 0.0, **fields))  # type: ignore[arg-type]  # fields by name
    assert words in complaint
    assert bool(words) == bool(complaint)
    assert not any(character.isdigit() for character in complaint)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        pytest.param([answer()] * 3, [NO_SERIES], id="once"),
        pytest.param(
            [answer(), FAILURE, answer(), FAILURE],
            [NO_SERIES, "signal gpu: no answer (unreachable)"],
            id="an outage is no recovery",
        ),
        pytest.param(
            [answer(), answer(1.0, 2.0), answer(1.0), answer(), answer()],
            [NO_SERIES, "signal gpu is healthy again (2 of 4 nodes covered)", NO_SERIES],
            id="again after recovery",
        ),
        pytest.param(
            [answer(1.0, 2.0, 3.0)] * 2, ["signal gpu is healthy (3 of 4 nodes covered)"], id="healthy from the start"
        ),
    ],
)
def test_a_signal_is_complained_of_once_and_again_only_after_recovery(
    answers: list[SignalAnswer], said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "scheduler.signals")
    complaints = Complaints()
    for one in answers:
        complaints.note(GPU, one)
    assert [record.message for record in caplog.records] == said


def test_a_signal_that_was_forgotten_is_complained_of_anew(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints()
    complaints.note(GPU, answer())
    complaints.forget("gpu")
    complaints.note(GPU, answer())
    assert [record.message for record in caplog.records] == [NO_SERIES] * 2


@pytest.mark.parametrize(
    ("signal", "covered"),
    [
        (Signal("gpu", "x", by=ByKind.LABEL, label="zone"), " (0 values of zone covered)"),
        (Signal("gpu", "x", by=ByKind.CLUSTER), ""),
    ],
)
def test_what_is_covered_is_said_in_the_units_of_the_signal(
    signal: Signal, covered: str, caplog: pytest.LogCaptureFixture
) -> None:
    Complaints().note(signal, SignalAnswer("gpu", "", 1, 60.0, 0.0))
    assert caplog.records[0].message.endswith(f"metrics?{covered}")
