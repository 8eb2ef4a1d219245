"""Side effects as values: what a plugin wants done, for `loop` to carry out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bind:
    """Create the `pods/binding` of a Pod; the UID keeps a recreated Pod of the same name safe."""

    namespace: str
    name: str
    uid: str
    node_name: str


Instruction = Bind
"""Every kind of instruction that `loop` knows."""
