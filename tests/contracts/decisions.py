"""Random decisions under rules over every kind of signal, as one hash: what is decided must not change by a bit.

    python -m tests.contracts.decisions --seed 1 --number 200000

Each world draws a rule file, nodes and Pods. Answers pass through the asker, time passes, Pods are bound, run and
leave, nodes and rules change, and 48 decisions are made on the way. The hash covers of each what a user can see: the
node, the total, every term with its values and contributions in thousandths, every refusal with its nodes, nomination
and victims, and the record's rules, shadows and tenant. Another version has decided the same where it prints the same
hash for the same seed and number. The report says how often each kind of rule had something to say: never is an error.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Final

from tests.contracts.ruled_walk import DECISIONS_EACH, Walk
from tests.contracts.ruled_worlds import SIGNALS

KINDS: Final = (*dict.fromkeys(signal.kind for signal in SIGNALS.values()), "label match")
EXPECTED: Final = frozenset(
    {
        *(f"refused by {kind}" for kind in (*KINDS, "tenant")),
        *(f"scored by {kind}" for kind in KINDS if kind not in ("cluster", "label match")),
        *(f"only watched, and would change: {kind}" for kind in KINDS),
        *(f"pending load, {effect}" for effect in ("request", "constant", "learned")),
        *(f"samples {state}" for state in ("fresh", "fading", "absent")),
        *(
            "refused for want of a sample",
            "refused within limits, by clear or hold",
            "a valve is open",
            "max_age is over",
        ),
        *("weighs as a signal says", "capped by max_share", "canary acts", "canary watches", "effect learned"),
        *("placed", "refused", "not built", "taken: the nominated node", "victims"),
        *("victims, beside a rule's refusal", "the record has a tenant"),
    }
)
"""What has to have happened in a fair number of decisions, or they say little."""


@dataclass(frozen=True)
class Found:
    """Hashes of what was decided and of what it was decided from, and how often what happened."""

    decided: bytes
    drawn: bytes
    seen: Counter[str]


def decided_in(seed: int, number: int) -> Found:
    """Return what is decided in one of the worlds of a seed."""
    walk = Walk(f"decisions {seed} {number}")
    try:
        walk.carry_out()
    except BaseException as error:
        error.add_note(f"in world {number} of seed {seed}")
        raise
    return Found(walk.hash.digest(), walk.drawn.digest(), walk.seen)


def run(seed: int, n_worlds: int, workers: int = 1) -> Found:
    """Return the hashes over all worlds in order, whoever made their decisions."""
    decided, drawn = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
    seen: Counter[str] = Counter()
    for found in _each(partial(decided_in, seed), n_worlds, workers):
        decided.update(found.decided)
        drawn.update(found.drawn)
        seen.update(found.seen)
    return Found(decided.digest(), drawn.digest(), seen)


def _each(decided: Callable[[int], Found], n_worlds: int, workers: int) -> Iterator[Found]:
    if workers < 2:
        yield from map(decided, range(n_worlds))
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(decided, range(n_worlds), chunksize=20)


def main(argv: Sequence[str] | None = None, write: Callable[[str], object] = sys.stdout.write) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.contracts.decisions", description="A hash of decisions.")
    parser.add_argument("--number", type=int, default=20_000, help="decisions (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    arguments = parser.parse_args(argv)
    started_s = time.monotonic()
    n_worlds = -(-arguments.number // DECISIONS_EACH)
    found = run(arguments.seed, n_worlds, arguments.workers)
    for name in sorted(EXPECTED | found.seen.keys()):
        write(f"{name:50} {found.seen[name]:>10}\n")
    taken_s, n = time.monotonic() - started_s, n_worlds * DECISIONS_EACH
    write(f"{n} decisions in {taken_s:.1f} s, {n / taken_s:.0f} a second\n")
    write(f"drawn   {found.drawn.hex()}\n")
    write(f"decided {found.decided.hex()}\n")
    silent = sorted(name for name in EXPECTED if not found.seen[name]) if n >= 5_000 else []
    for name in silent:
        write(f"never happened: {name}\n")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
