"""The hash of decisions is the same for the same seed, whoever makes them, and covers every kind of rule."""

from __future__ import annotations

from tests.contracts.decisions import KINDS, main, run
from tests.contracts.ruled_walk import DECISIONS_EACH


def test_a_seed_is_a_hash_in_one_process_and_in_two() -> None:
    alone, other, two = run(1, 3), run(2, 3), run(1, 3, workers=2)

    assert (alone.decided, alone.drawn, alone.seen) == (two.decided, two.drawn, two.seen)
    assert alone.decided != other.decided
    assert alone.drawn != other.drawn


def test_few_decisions_show_each_kind_of_rule_and_what_follows() -> None:
    lines: list[str] = []

    assert main(["--number", "600"], lines.append) == 0
    n = {line[:50].rstrip(): int(line[50:]) for line in lines if line[50:].strip().isdigit()}
    for kind in (*KINDS, "tenant"):
        assert n[f"refused by {kind}"] + n.get(f"scored by {kind}", 0) > 0, kind
    assert n["victims"] > 0
    assert n["pending load, request"] > 0
    assert n["placed"] + n["refused"] + n["not built"] == 13 * DECISIONS_EACH
    assert lines[-1].startswith("decided ")
