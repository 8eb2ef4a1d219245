"""Evictions: what the filters of an attempt would say if some Pods left, for plugins that look for a way out.

Source: kube-scheduler v1.37 defaultpreemption SelectVictimsOnNode and framework RunFilterPluginsWithNominatedPods
(behaviour).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from scheduler.framework.diagnosis import Refusal
from scheduler.framework.filtering import ALL_ROWS, FilterRun, sifted
from scheduler.framework.plugin import FilterPlugin, FreedBy
from scheduler.framework.status import Rejection
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot, Trial

States = Mapping[str, object]


class Evictions:
    """Asks the Filter plugins of one attempt again. Everything tried is undone before a method returns.

    Nodes are tried together, so that each plugin is asked about all of them at once, and where only room counts no
    Pod is moved. What leaves one node may change a verdict on another (`FreedBy.ANY_ROW`), and Pods of at least this
    Pod's priority may be nominated to a node: such nodes are tried one by one, in plain Python.
    """

    def __init__(self, run: FilterRun) -> None:
        self._run = run
        self._unchanging: dict[str, list[Rejection]] = {}

    def needed(
        self, removable: Mapping[int, Sequence[PodInfo]]
    ) -> tuple[dict[int, tuple[PodInfo, ...]], list[Refusal]]:
        """Find out which of some Pods have to leave their node for the Pod to fit there.

        All leave first; then they come back in the order given, each for as long as the Pod still fits.

        Parameters
        ----------
        removable
            Row -> Pods placed there.

        Returns
        -------
        needed
            Row -> those of its Pods that have to go, in that order; rows where not even all suffice are left out.
        refusals
            Why those rows are refused even so; masks are bool (n_rows,).
        """
        found: dict[int, tuple[PodInfo, ...]] = {}
        refusals: list[Refusal] = []
        ways = {plugin.freed_by for plugin in self._run.plugins}
        in_columns = ways <= {FreedBy.NOTHING, FreedBy.ROOM}
        for rows in self._groups(removable, apart=FreedBy.ANY_ROW in ways):
            group = {row: removable[row] for row in rows}
            together = (
                self._needed_in_columns if in_columns and not self._has_rivals(rows[0]) else self._needed_by_trial
            )
            needed, refused = together(group)
            found |= needed
            refusals += refused
        return found, refusals

    def hopeless(self, rows: IntArray, requested: IntArray, n_pods: IntArray) -> list[Refusal]:
        """Return refusals, masks bool (n_rows,), that will stand on `rows` whichever Pods leave, found in columns.

        Whom they do not cover nothing is known of. `requested` (n_resources, n_rows) and `n_pods` (n_rows,) are what is
        left on each node once every Pod has gone that may go.
        """
        run, nodes = self._run, self._run.snapshot.nodes
        emptied = run.snapshot.supposing(requested, n_pods)
        standing = np.zeros(nodes.n_rows, dtype=np.bool_)
        standing[rows] = True
        for name in run.snapshot.nominated:
            row = nodes.row_of(name)
            if row is not None and run.rivals(name):
                standing[row] = False
        refusals: list[Refusal] = []
        for plugin in run.plugins:
            if plugin.freed_by is FreedBy.ANY_ROW:
                break
            if plugin.freed_by is FreedBy.ITS_ROW:
                for rejection in run.ask(plugin, run.states.get(plugin.name), run.snapshot, ALL_ROWS, standing.shape):
                    standing &= ~rejection.mask
            elif plugin.freed_by is FreedBy.ROOM:
                found = run.ask(plugin, run.states.get(plugin.name), emptied, ALL_ROWS, standing.shape)
                standing = sifted(plugin.name, found, standing, refusals)
            else:
                standing = sifted(plugin.name, self._always(plugin), standing, refusals)
        return refusals

    def _groups(self, removable: Mapping[int, Sequence[PodInfo]], *, apart: bool) -> list[list[int]]:
        alone = {row for row in removable if apart or self._has_rivals(row)}
        together = [row for row in removable if row not in alone]
        return [*([row] for row in removable if row in alone), *([together] if together else [])]

    def _has_rivals(self, row: int) -> bool:
        return bool(self._run.rivals(self._run.snapshot.nodes.names[row]))

    def _needed_in_columns(
        self, removable: Mapping[int, Sequence[PodInfo]]
    ) -> tuple[dict[int, tuple[PodInfo, ...]], list[Refusal]]:
        """Take away and give back amounts instead of Pods, where no plugin looks at more."""
        snapshot, refusals = self._run.snapshot, list[Refusal]()
        rows = np.array(list(removable), dtype=np.int64)
        amounts, n_pods_here = _amounts(list(removable.values()), snapshot.nodes.resources)
        requested, n_pods = snapshot.nodes.requested.copy(), snapshot.nodes.n_pods.copy()
        requested[:, rows] -= amounts.sum(axis=0)
        n_pods[rows] -= n_pods_here
        emptied = snapshot.supposing(requested, n_pods)
        passing = self._filtered(emptied, rows, self._run.states, np.ones(len(rows), dtype=np.bool_), refusals)
        has_to_go = np.zeros(amounts.shape[::2], dtype=np.bool_)
        for turn, back in enumerate(amounts):
            tried = np.flatnonzero(passing & (n_pods_here > turn))
            if not len(tried):
                break
            here = rows[tried]
            requested[:, here] += back[:, tried]
            n_pods[here] += 1
            fits = self._filtered(emptied, here, self._run.states, np.ones(len(tried), dtype=np.bool_), [])
            requested[:, here[~fits]] -= back[:, tried[~fits]]
            n_pods[here[~fits]] -= 1
            has_to_go[turn, tried[~fits]] = True
        needed = {
            row: tuple(pod for turn, pod in enumerate(pods) if has_to_go[turn, i])
            for i, (row, pods) in enumerate(removable.items())
            if passing[i]
        }
        return needed, [replace(one, mask=_widened(one.mask, rows, snapshot.nodes.n_rows)) for one in refusals]

    def _needed_by_trial(
        self, removable: Mapping[int, Sequence[PodInfo]]
    ) -> tuple[dict[int, tuple[PodInfo, ...]], list[Refusal]]:
        run, refusals = self._run, list[Refusal]()
        states: States = run.states
        with run.snapshot.trial() as trial:
            for row, pods in removable.items():
                for pod in pods:
                    trial.remove(pod, row)
                    states = self._counting(states, pod, row, -1)
            rows = np.array(list(removable), dtype=np.int64)
            passing = rows[self._passing(rows, states, refusals)]
            needed: dict[int, list[PodInfo]] = {row: [] for row in passing.tolist()}
            for back in _rounds({row: removable[row] for row in needed}):
                states = self._bring_back(trial, states, back, needed)
        n_rows = run.snapshot.nodes.n_rows
        widened = [replace(refusal, mask=_widened(refusal.mask, rows, n_rows)) for refusal in refusals]
        return {row: tuple(pods) for row, pods in needed.items()}, widened

    def _bring_back(
        self, trial: Trial, states: States, back: Mapping[int, PodInfo], needed: Mapping[int, list[PodInfo]]
    ) -> States:
        """Let one Pod return to each row, and leave again where the Pod does not fit then."""
        for row, pod in back.items():
            trial.place(pod, row)
            states = self._counting(states, pod, row, 1)
        rows = np.array(list(back), dtype=np.int64)
        for row in rows[~self._passing(rows, states, [])].tolist():
            trial.remove(back[row], row)
            states = self._counting(states, back[row], row, -1)
            needed[row].append(back[row])
        return states

    def _passing(self, rows: IntArray, states: States, refusals: list[Refusal]) -> BoolArray:
        """Return bool (len(rows),): who passes, with and without the Pods nominated there."""
        run = self._run
        standing = np.ones(len(rows), dtype=np.bool_)
        if len(rows) == 1:
            row = int(rows[0])
            rivals = run.rivals(run.snapshot.nodes.names[row])
            if rivals:
                with run.snapshot.trial() as trial:
                    crowded = states
                    for rival in rivals:
                        trial.place(rival, row)
                        crowded = self._counting(crowded, rival, row, 1)
                    standing = self._filtered(run.snapshot, rows, crowded, standing, refusals)
        return self._filtered(run.snapshot, rows, states, standing, refusals)

    def _filtered(
        self, snapshot: Snapshot, rows: IntArray, states: States, standing: BoolArray, refusals: list[Refusal]
    ) -> BoolArray:
        run = self._run
        for plugin in run.plugins:
            if not standing.any():
                break
            if plugin.freed_by is FreedBy.NOTHING:
                found = [replace(one, mask=one.mask[rows]) for one in self._always(plugin)]
            else:
                found = run.ask(plugin, states.get(plugin.name), snapshot, rows, standing.shape)
            standing = sifted(plugin.name, found, standing, refusals)
        return standing

    def _always(self, plugin: FilterPlugin) -> list[Rejection]:
        """Return the rejections, masks (n_rows,), of a plugin that no Pod's leaving changes."""
        found = self._unchanging.get(plugin.name)
        if found is None:
            run, shape = self._run, (self._run.snapshot.nodes.n_rows,)
            found = run.ask(plugin, run.states.get(plugin.name), run.snapshot, ALL_ROWS, shape)
            self._unchanging[plugin.name] = found
        return found

    def _counting(self, states: States, pod: PodInfo, row: int, sign: int) -> States:
        return self._run.counting(states, pod, row, sign)


def _amounts(pods: Sequence[Sequence[PodInfo]], resources: Mapping[str, int]) -> tuple[IntArray, IntArray]:
    """Return what the first, second, … Pod of each list occupies, (n_turns, n_resources, n_lists), and the lengths."""
    n_pods = np.array([len(here) for here in pods], dtype=np.int64)
    amounts: IntArray = np.zeros((int(n_pods.max(initial=0)), len(resources), len(pods)), dtype=np.int64)
    for i, here in enumerate(pods):
        for turn, pod in enumerate(here):
            for name, amount in pod.usage[0].items():
                amounts[turn, resources[name], i] = amount
    return amounts, n_pods


def _rounds(pods: Mapping[int, Sequence[PodInfo]]) -> list[dict[int, PodInfo]]:
    """Return first the first Pod of every row, then the second ones, and so on."""
    turns = zip_longest(*pods.values())
    return [{row: pod for row, pod in zip(pods, turn, strict=True) if pod is not None} for turn in turns]


def _widened(mask: BoolArray, rows: IntArray, n_rows: int) -> BoolArray:
    wide = np.zeros(n_rows, dtype=np.bool_)
    wide[rows] = mask
    return wide
