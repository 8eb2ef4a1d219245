"""Whether an expression leaves the labels by which its series are joined with nodes and Pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler.model.rules import ByKind, PairKey, WorkloadKey
from scheduler.signals.format.promql import ParsedQuery, quote_label
from scheduler.signals.format.promql_labels import Labels, labels_of
from scheduler.signals.series_labels import CARD_LABELS, NODE_LABELS, domain_labels

_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class JoinedBy:
    """What one series stands for, and the labels that say which; see Signal."""

    by: ByKind
    label: str = ""
    workload: WorkloadKey | None = None
    pair: PairKey | None = None
    node_label: str = ""


def join_fault(query: ParsedQuery, joined: JoinedBy) -> str:
    """Return why no series of the query can be joined, empty where nothing in the expression prevents it."""
    if query.root is None or query.is_scalar:
        return ""
    labels = labels_of(query.root)
    for what, names, write in _needed(joined):
        if not any(labels.has(name) for name in names):
            return f"leaves no label that names {what}: {_kept(labels)}. Write {write}"
    return ""


def _needed(joined: JoinedBy) -> Iterable[tuple[str, Sequence[str], str]]:
    """Yield what has to be named, by which labels it may be, and what to write instead."""
    chosen = joined.node_label
    names = (chosen,) if chosen else NODE_LABELS
    the_node = f"the node ({chosen})" if chosen else "the node"
    example = quote_label(chosen or "Hostname")
    match joined.by:
        case ByKind.NODE:
            yield the_node, names, f"`by ({quote_label(chosen or 'instance')})`, or `by: cluster`"
        case ByKind.LABEL:
            known = domain_labels(joined.label)
            yield f"the value of {joined.label}", known, f"one of: {', '.join(known)}; or another `by`"
        case ByKind.GPU:
            yield the_node, names, f"`by ({example}, gpu)`, or whatever your exporter calls the two"
            yield "the card", CARD_LABELS, f"`by ({example}, gpu)`, or `by: node` for one value a node"
        case ByKind.WORKLOAD if joined.workload is not None:
            key = joined.workload
            kept = ", ".join(quote_label(name) for name in (chosen or "node", key.label, key.namespace) if name)
            yield the_node, names, f"`by ({kept})`, or whatever names the node in your series"
            for name in filter(None, (key.label, key.namespace)):
                yield f"the workload ({name})", (name,), f"`by ({kept})`"
        case ByKind.PAIR if joined.pair is not None:
            ends = (joined.pair.source, joined.pair.target)
            for name in ends:
                yield f"an end of the pair ({name})", (name,), f"`by ({', '.join(ends)})`"
        case _:
            return


def _kept(labels: Labels) -> str:
    if labels.is_open:
        return f"it takes {', '.join(sorted(labels.names)[:_SHOWN])} away"
    names = sorted(labels.names)
    more = ", …" if len(names) > _SHOWN else ""
    return f"it keeps {', '.join(names[:_SHOWN])}{more}" if names else "it keeps none"
