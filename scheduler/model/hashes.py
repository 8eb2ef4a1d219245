"""The only randomness in a decision: ties are broken by a hash of the node's name mixed with one of the Pod's UID.

The hash does not depend on node order, replica or generation, and is equal on every CPU. Another one chooses the Pods
that a canary takes.
"""

from __future__ import annotations

import hashlib

import numpy as np

from scheduler.model.arrays import HashArray

_BEYOND_DOUBLE = 11
"""Of 64 bits, how many a double has no room for."""


def hash64(text: str) -> int:
    """Return the first eight bytes of blake2b of `text` as an unsigned integer."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def lot_of(text: str) -> float:
    """Return a number from 0 up to, not including, 1; it says nothing of `hash64` of the same text."""
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"vane canary").digest()
    return (int.from_bytes(digest, "little") >> _BEYOND_DOUBLE) * 2.0 ** (_BEYOND_DOUBLE - 64)


def mix64(values: HashArray) -> HashArray:
    """Return the finaliser of MurmurHash3 (fmix64) of each value, uint64 of the same shape."""
    mixed = values ^ (values >> np.uint64(33))
    mixed = mixed * np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    mixed ^= mixed >> np.uint64(33)
    return mixed
