from __future__ import annotations

from tests.promql.sources import expressions_in, shipped


def test_expressions_are_found_wherever_they_stand() -> None:
    text = """
groups: [{rules: [{alert: a, expr: up == 0}, {record: b, expr: 1}]}]
---
signals: {cpu: {expr: use, lag: behind}}
"""
    assert list(expressions_in(text)) == ["up == 0", "1", "use", "behind"]
    assert list(expressions_in("a: [")) == []


def test_ours_are_among_them() -> None:
    found = set(shipped())
    assert any("node_memory_MemAvailable_bytes" in expr for expr in found)
    assert len(found) > 80
