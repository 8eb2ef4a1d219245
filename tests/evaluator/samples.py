"""Made-up series with what goes wrong with series: resets, gaps, ends, stale markers, NaN, Inf, strange labels."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

from scheduler.evaluator.store import STALE_NAN
from tests.evaluator.remote_write import Sample

T0_S = 1_700_000_000
STEP_MS = 15_000
N_STEPS = 100

Law = Callable[[int], float | None]
"""The value at a step, None where there is no sample."""


WORDS = (
    *("", "a", "b", "aa", "ab", "A", "a\n", "\n", "a b", "a]", "{", "a{2}", "x-y", "x/y", "7", "$", "^a$"),
    # A letter and a digit of other alphabets, and a sign that is a small k to Unicode.
    *("Ä", "\u0667", "\u212a"),
)
"""Labels for patterns."""

BENT = {
    "a count is NaN": (("1", 3.0), ("2", math.nan), ("4", 5.0), ("+Inf", 6.0)),
    "the total is NaN": (("1", 3.0), ("2", 5.0), ("4", 6.0), ("+Inf", math.nan)),
    "counts are Inf": (("1", 3.0), ("2", math.inf), ("4", math.inf), ("+Inf", math.inf)),
    "odd bounds": (
        ("1e0", 3.0),
        (".5", 1.0),
        ("2.", 4.0),
        ("1e999", 5.0),
        ("1_0", 5.0),
        (" 3", 5.0),
        ("Infinity", 6.0),
    ),
    "bounds of other digits": (("1", 2.0), ("\u0667", 3.0), ("+Inf", 4.0)),
    "bad": (("x", 4.0),),
    "alone": (("+Inf", 4.0),),
    "below zero": (("-2", 3.0), ("-1", 5.0), ("0", 6.0), ("+Inf", 6.0)),
    "rounded": (("1", 3.0), ("2", 3.0 + 1e-13), ("3", 3.0 - 1e-13), ("+Inf", 6.0)),
}
"""Buckets that are not as they should be: upper bound and count."""


def constant(value: float) -> Law:
    return lambda _: value


def growing(per_step: float) -> Law:
    return lambda step: per_step * step


def made_up_samples() -> list[Sample]:
    return [
        *_counters(),
        *_gauges(),
        *_histograms(),
        *_irregular(),
    ]


def _series(name: str, law: Law, **labels: str) -> Iterator[Sample]:
    for step in range(N_STEPS):
        value = law(step)
        if value is not None:
            yield {"__name__": name, **labels}, T0_S * 1000 + step * STEP_MS, value


def _counters() -> Iterator[Sample]:
    chance = random.Random(1)
    growth = [round(chance.uniform(0, 20), 3) for _ in range(N_STEPS)]

    def grown(step: int) -> float:
        return sum(growth[:step])

    yield from _series("requests_total", grown, instance="a", job="web", code="200")
    yield from _series("requests_total", lambda i: grown(i % 30), instance="b", job="web", code="200")
    yield from _series(
        "requests_total", lambda i: None if 20 < i < 40 else 3.0 * i, instance="c", job="web", code="200"
    )
    yield from _series(
        "requests_total", lambda i: grown(i) / 7 if i < 70 else None, instance="a", job="web", code="500"
    )
    yield from _series("requests_total", _leaving, instance="d", job="api", code="200")
    yield from _series("requests_total", lambda i: 5.0 if i > 60 else None, instance="e", job="api", code="200")
    yield from _series("errors_total", lambda i: float(i // 9), instance="a", job="web")
    yield from _series("errors_total", lambda i: float(i // 4), instance="b", job="web")
    yield from _series("errors_total", lambda i: float(max(0, i - 90)), instance="d", job="api")
    yield from _series("wild_total", lambda i: math.nan if i % 7 == 0 else float(i), kind="nan")
    yield from _series("wild_total", lambda i: math.inf if i % 11 == 0 else float(i), kind="inf")
    yield from _series("wild_total", lambda i: float(-50 + i), kind="negative")
    yield from _series("wild_total", lambda i: 1e308 * (1 + i % 2 * 0.7), kind="huge")
    yield from _series("wild_total", lambda i: [1e16, 1.0, -1e16, 3.0][i % 4], kind="cancelling")


def _leaving(step: int) -> float | None:
    """Leaves its target at step 50 and comes back at step 80."""
    if step == 50:
        return STALE_NAN
    return None if 50 < step < 80 else float(step * step)


def _gauges() -> Iterator[Sample]:
    chance = random.Random(2)
    for node, zone in (("n1", "z1"), ("n2", "z1"), ("n3", "z2"), ("n4", "z2"), ("n5", "")):
        level = chance.uniform(-30, 60)
        values = [round(level + chance.gauss(0, 9), 2) for _ in range(N_STEPS)]
        yield from _series("temperature", values.__getitem__, node=node, **({"zone": zone} if zone else {}))
        yield from _series("capacity", constant(2.0 ** int(node[1])), node=node)
        if zone:
            yield from _series("node_info", constant(1.0), node=node, zone=zone, arch="arm" if node == "n4" else "x86")
    yield from _series("node_info", lambda i: 1.0 if i < 30 else None, node="n6", zone="z3", arch="x86")
    yield from _series("level", constant(0.0), node="n1")
    yield from _series("level", lambda i: math.nan if i > 10 else 4.0, node="n2")
    yield from _series("level", constant(-math.inf), node="n3")
    yield from _series("level", constant(math.inf), node="n4")
    yield from _series("level", constant(-0.0), node="n5")
    yield from _series("level", constant(7.0), node="n6")
    yield from _series("level", constant(7.0), node="n7")
    yield from _series("same_name", lambda i: float(i), node="n1")
    yield from _series("other_name", lambda i: float(2 * i), node="n1")
    yield from _series("odd", constant(1.0), path='C:\\dir "x"\nnext', **{"label": "ÄÖ/€ 日本"})
    yield from _series("odd", constant(2.0), path="a.b", label="a-b")
    yield from _series("odd", constant(3.0), path="a1b", label="10.0.0.7:9100")
    for i, text in enumerate(WORDS):
        yield from _series("word", constant(float(i)), text=text, rank=str(i))
    yield from _series("tiny", lambda i: 5e-324 * (i % 3), node="n1")
    yield from _series("precise", lambda i: 0.1 * i + 1e-9, node="n1")


def _histograms() -> Iterator[Sample]:
    bounds = ("0.1", "0.25", "0.5", "1", "2.5", "+Inf")
    for zone, shares in {"z1": (1, 4, 8, 9, 9.5, 10), "z2": (0, 0, 1, 2, 9, 10), "z3": (0, 0, 0, 0, 0, 0)}.items():
        for le, share in zip(bounds, shares, strict=True):
            yield from _series("latency_seconds_bucket", growing(float(share)), le=le, zone=zone)
    for le, count in zip(bounds, (5.0, 4.0, 6.0, 6.0, 3.0, 8.0), strict=True):
        yield from _series("bent_bucket", constant(count), le=le, zone="falling")
        if le != "+Inf":
            yield from _series("bent_bucket", constant(count), le=le, zone="open")
    for zone, buckets in BENT.items():
        for le, count in buckets:
            yield from _series("bent_bucket", constant(count), le=le, zone=zone)
    yield from _series("bent_bucket", constant(4.0), zone="no le")
    yield from _series("bent_bucket", constant(3.0), le="1.0", zone="falling")


def _irregular() -> Iterator[Sample]:
    chance = random.Random(3)
    at_ms, value = T0_S * 1000 + 137, 0.0
    while at_ms < T0_S * 1000 + N_STEPS * STEP_MS:
        yield {"__name__": "uneven_total", "kind": "counter"}, at_ms, value
        at_ms += chance.choice((700, 1_000, 5_003, 15_000, 61_000, 120_000))
        value = value + chance.uniform(0, 5) if chance.random() < 0.9 else 0.0
    yield {"__name__": "single_total"}, T0_S * 1000 + 600_000, 3.0
    yield {"__name__": "pair_total"}, T0_S * 1000 + 600_000, 1.0
    yield {"__name__": "pair_total"}, T0_S * 1000 + 601_000, 9.0
