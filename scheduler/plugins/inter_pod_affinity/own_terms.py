"""The terms of the Pod to place, as counts on rows of the placed Pods that they mean.

Counts for the few terms that nearly all Pods have are kept, for Pods like it that will come. Those of Pods with a great
many are added up by topology key and forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from scheduler.framework.matching_pods import GroupSums, MatchingPods
from scheduler.framework.pod_match import Clause, PodMatch, Work
from scheduler.model.affinity_terms import AffinityTerm
from scheduler.model.arrays import IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.selectors import Selector
from scheduler.model.snapshot import Snapshot
from scheduler.model.views import NodeView
from scheduler.model.workloads import Namespace

_PATH = "spec.affinity"

_LOOK_COST = 200
"""What it costs to look at the labels of one namespace, in comparisons."""

_NAME_COST = 20
"""What each namespace costs that a term finds."""

_NOBODY = PodMatch(())
_NO_KEYS: tuple[str, ...] = ()


@dataclass(slots=True)
class RequiredTerms:
    """`wanted` are the Pods that match all affinity terms, `near_keys` the topology keys, none without such a term.

    `avoided` are the Pods that match one anti-affinity term each, by topology key in `away_keys`.
    """

    wanted: PodMatch
    near_keys: tuple[str, ...]
    avoided: tuple[tuple[PodMatch, ...], ...]
    away_keys: tuple[str, ...]
    are_few: bool

    def on_rows(self, snapshot: Snapshot) -> list[IntArray]:
        """Return int64 (n_rows,) each: the Pods wanted, if any are, then those avoided.

        Raises
        ------
        UnsupportedPodError
            Counting them takes more work than there is for one Pod.
        """
        index, n_rows = snapshot.index(MatchingPods), snapshot.nodes.n_rows
        if self.are_few:
            avoided = [index.on_rows(match, n_rows) for (match,) in self.avoided]
            return [index.on_rows(self.wanted, n_rows), *avoided] if self.near_keys else avoided
        return list(self._added_up(index).on_rows(n_rows)[0])

    def held_by(self, pod: PodInfo) -> list[int]:
        """Return whether a Pod is wanted, 0 where none is, then how often it is avoided by topology key."""
        near = int(bool(self.near_keys) and self.wanted.holds(pod))
        return [near, *(sum(match.holds(pod) for match in matches) for matches in self.avoided)]

    def tally(self, pods: Sequence[PodInfo], priority: int, snapshot: Snapshot) -> tuple[IntArray, IntArray]:
        """Return in the order of `on_rows` what Pods count for.

        int64 (n, len(pods)): each of some Pods; int64 (n, n_rows): all of lower priority on each row.
        """
        sums = self._added_up(snapshot.index(MatchingPods))
        return sums.held_by(pods), sums.below(priority, snapshot.nodes.n_rows)

    def _meant(self) -> list[tuple[int, PodMatch]]:
        """Return all matches, with the number of the count that each adds to."""
        near = [(0, self.wanted)] if self.near_keys else []
        return near + [(at, match) for at, matches in enumerate(self.avoided, len(near)) for match in matches]

    def _added_up(self, index: MatchingPods) -> GroupSums:
        n_sums = bool(self.near_keys) + len(self.avoided)
        return index.added_up(
            [(at, match, 1) for at, match in self._meant()], n_sums, None if self.are_few else Work(_PATH)
        )


def required_of(pod: PodInfo, snapshot: Snapshot) -> RequiredTerms:
    """Return the required terms of a Pod; UnsupportedPodError as `RequiredTerms.on_rows`."""
    terms, nodes = pod.affinity_terms, snapshot.nodes
    if terms.are_few:
        wanted, near_keys = _NOBODY, _NO_KEYS
        if terms.required:
            wanted = PodMatch(tuple([_clause(term, snapshot) for term in terms.required]))
            near_keys = tuple([term.topology_key for term in terms.required])
        avoided = tuple([(PodMatch((_clause(term, snapshot),)),) for term in terms.required_anti])
        return RequiredTerms(
            wanted, near_keys, avoided, tuple([term.topology_key for term in terms.required_anti]), True
        )
    clause = _reader(snapshot)
    wanted = PodMatch(tuple(map(clause, terms.required)))
    near_keys = _keys(terms.required, nodes)
    by_key: dict[str, list[PodMatch]] = {key: [] for key in _keys(terms.required_anti, nodes)}
    for term in terms.required_anti:
        if term.topology_key in by_key:
            by_key[term.topology_key].append(PodMatch((clause(term),)))
    return RequiredTerms(wanted, near_keys, tuple(map(tuple, by_key.values())), tuple(by_key), False)


def preferred_on_rows(pod: PodInfo, snapshot: Snapshot) -> Iterator[tuple[str, IntArray, IntArray]]:
    """Yield topology keys with int64 (n_rows,) twice: the Pods that preferred terms mean, and the sum of the weights.

    A key may come more than once. UnsupportedPodError as `RequiredTerms.on_rows`.
    """
    terms, nodes = pod.affinity_terms, snapshot.nodes
    index = snapshot.index(MatchingPods)
    if terms.are_few:
        for one in terms.preferred:
            counts = index.on_rows(PodMatch((_clause(one.term, snapshot),)), nodes.n_rows)
            yield one.term.topology_key, counts, counts * one.weight
        return
    clause = _reader(snapshot)
    keys = {key: at for at, key in enumerate(_keys((one.term for one in terms.preferred), nodes))}
    wanted = [
        (keys[one.term.topology_key], PodMatch((clause(one.term),)), one.weight)
        for one in terms.preferred
        if one.term.topology_key in keys
    ]
    both = index.added_up(wanted, len(keys), Work(_PATH)).on_rows(nodes.n_rows)
    yield from zip(keys, *both, strict=True)


def namespace_labels(pod: PodInfo, snapshot: Snapshot) -> Mapping[str, str]:
    """Return the labels of the Pod's namespace, none where there is no such object."""
    return snapshot.catalog.namespace_labels(pod.namespace)


def _keys(terms: Iterable[AffinityTerm], nodes: NodeView) -> tuple[str, ...]:
    """Return the topology keys once each, but of those that no node has the first alone: they are alike."""
    found: dict[str, None] = {}
    has_absent = False
    for term in terms:
        key = term.topology_key
        is_absent = not nodes.has_label_key(key)
        if key not in found and not (is_absent and has_absent):
            found[key] = None
            has_absent |= is_absent
    return tuple(found)


def _clause(term: AffinityTerm, snapshot: Snapshot) -> Clause:
    """Return which Pods a term means: its namespace selector becomes the names of those there are.

    They are remembered for Pods to come.
    """
    selector = term.namespace_selector
    if selector.is_everything:
        return Clause(None, term.selector)
    if selector.is_nothing:
        return Clause(term.namespaces, term.selector)
    key = ("namespaces that match", selector, snapshot.catalog.generation(Namespace))
    return Clause(term.namespaces | snapshot.memo.get(key, (), lambda: _namespaces(selector, snapshot)), term.selector)


def _reader(snapshot: Snapshot) -> Callable[[AffinityTerm], Clause]:
    """Return the same for a Pod with a great many terms: nothing is remembered, and the work is bounded."""
    work, known = Work(_PATH), dict[Selector, frozenset[str]]()
    n_namespaces = sum(1 for _ in snapshot.catalog.all(Namespace))

    def clause(term: AffinityTerm) -> Clause:
        selector = term.namespace_selector
        if selector.is_everything:
            return Clause(None, term.selector)
        if selector.is_nothing:
            return Clause(term.namespaces, term.selector)
        if selector not in known:
            work.spend(_LOOK_COST * n_namespaces)
            known[selector] = _namespaces(selector, snapshot)
        found = known[selector]
        work.spend(_NAME_COST * len(found))
        return Clause(term.namespaces | found if term.namespaces else found, term.selector)

    return clause


def _namespaces(selector: Selector, snapshot: Snapshot) -> frozenset[str]:
    found = (one.metadata for one in snapshot.catalog.all(Namespace))
    return frozenset(one.name for one in found if selector.matches(one.labels or {}))
