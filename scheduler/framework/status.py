"""What a plugin answers: codes with kube-scheduler's meaning, and refusals of nodes as masks."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from scheduler.framework.instructions import PatchPod
from scheduler.model.arrays import BoolArray, FloatArray, IntArray
from scheduler.model.catalog import CatalogObject
from scheduler.model.pods import PodInfo


class Code(enum.IntEnum):
    """What to do next; a greater refusal wins where a plugin refuses one node twice."""

    SUCCESS = 0
    SKIP = 1
    UNSCHEDULABLE = 2
    """Refused; removing Pods may help."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """Refused; removing Pods will not help."""
    ERROR = 4
    """From Filter: a fault that ends the attempt, unless an earlier plugin refuses the node already. From PostFilter:
    one that ends the search for a way out. From nothing else."""

    @property
    def label(self) -> str:
        """The name kube-scheduler gives the code in metrics and conformance cases."""
        return _LABELS[self]


_LABELS = {code: "".join(word.capitalize() for word in code.name.split("_")) for code in Code}


@dataclass(frozen=True, slots=True)
class Status:
    """A refusal of the whole Pod, or SKIP: the plugin has nothing to say."""

    code: Code
    reasons: tuple[str, ...] = ()


SKIP = Status(Code.SKIP)


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """What PreFilter hands to Filter: any state, and the only nodes worth looking at (None: all)."""

    state: object = None
    node_names: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """A way to make room, or none.

    refusal
        Why it found none; UNSCHEDULABLE lets the next plugin try, its reasons end the message to the Pod's owner.
        After an ERROR no promise changes, whatever earlier plugins said, and nothing else ends the message.
    nominated_node_name
        The node that is promised to the Pod; "" takes an earlier promise back, None leaves it.
    message
        What the Pod's owner reads of the way out.
    victims
        Pods on that node that must go first, the most important one first.
    """

    refusal: Status | None = None
    nominated_node_name: str | None = None
    message: str = ""
    victims: tuple[PodInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class Reserved:
    """What Reserve has set aside for the Pod.

    state
        Handed to this plugin from now on, in place of PreFilter's.
    objects
        Objects of the catalog as they will be. Every other decision sees them so from now on, until the API server
        shows another version, or the attempt ends before PreBind has written them.
    """

    state: object
    objects: tuple[CatalogObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Permit's answer that the Pod is to wait, at most `timeout_s` seconds (15 minutes count at most).

    The patches are sent while it waits, for instance to tell others what it waits for.
    """

    timeout_s: float
    patches: tuple[PatchPod, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejection:
    """Nodes turned away for one reason; `mask` is bool (len(rows),), True where the node is refused.

    One node may be refused by several Rejections of one plugin: all reasons are reported, the greater code wins.
    `rule` names the rule behind it, if there is one: a change of that rule's verdict brings the Pod back.
    """

    mask: BoolArray
    code: Code
    reason: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class ScoreTerm:
    """One contribution to the total, before normalisation.

    `values` is int64 or float64 (len(rows),); after `normalize` it must lie in 0..100. `weight` None means the
    plugin's weight in the profile; a rule brings its own (finite, 0..100), of a plugin that says `brings_weights`.
    `max_share`, above 0 and at most 1, caps such a weight: its part of the sum of all weights (`framework.shares`).

    `is_column`: `values` is a finished column instead, (n_rows,) over all rows and within 0..100 everywhere, that
    is never written again and stays the same object as long as it holds: it is weighed once, not in each cycle.
    """

    name: str
    values: IntArray | FloatArray
    weight: float | None = None
    is_column: bool = False
    max_share: float | None = None
