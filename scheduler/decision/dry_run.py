"""PreemptionDryRun: what the filters of an attempt would say if some Pods left, for plugins that look for a way out.

Source: kube-scheduler v1.37 defaultpreemption SelectVictimsOnNode and framework RunFilterPluginsWithNominatedPods
(behaviour).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress

import numpy as np

from scheduler.decision.filter_run import ALL_ROWS, FilterRun, filter_fault, sifted
from scheduler.framework.diagnosis import Refusal
from scheduler.framework.plugin import DryRun, FilterPlugin, FreedBy, Needed, Tally
from scheduler.framework.status import Code, Rejection
from scheduler.model.arrays import BoolArray, IntArray
from scheduler.model.pods import PodInfo
from scheduler.model.resource_columns import where_known
from scheduler.model.snapshot import Snapshot, Trial


class PreemptionDryRun(DryRun):
    """Asks the Filter plugins of one attempt again. Everything tried is undone before a method returns.

    Nodes are tried together, so that each plugin is asked about all of them at once, and no Pod is moved as long as all
    plugins have a tally. One without, on whose verdicts Pods of other nodes bear (`FreedBy.ANY_ROW`), makes nodes be
    tried one by one, in plain Python.
    """

    def __init__(self, run: FilterRun) -> None:
        self._run = run
        self._unchanging: dict[str, list[Rejection]] = {}

    def needed(self, removable: Mapping[int, Sequence[PodInfo]]) -> tuple[Needed, list[Refusal]]:
        together = Leaving(self._run, removable)
        reading = [plugin for plugin in self._run.plugins if plugin.freed_by in (FreedBy.ITS_ROW, FreedBy.ANY_ROW)]
        tallies = self._tallies(reading, together.everyone)
        untold = {plugin.freed_by for plugin in reading if plugin.name not in tallies}
        if not untold:
            return self._needed(together, Emptying(self._run, together, tallies, self._always, None))
        if FreedBy.ANY_ROW not in untold:
            return self._needed_on_trial(together, tallies)
        found, refusals = Needed(), list[Refusal]()
        for row, pods in removable.items():
            needed, refused = self._needed_on_trial(Leaving(self._run, {row: pods}), {})
            found |= needed
            refusals += refused
        return found, refusals

    def hopeless(self, rows: IntArray, emptied: Snapshot) -> list[Refusal]:
        run, nodes = self._run, self._run.snapshot.nodes
        standing = np.zeros(nodes.n_rows, dtype=np.bool_)
        standing[rows] = True
        for name in run.snapshot.nominated:
            row = nodes.row_of(name)
            if row is not None and run.rivals(name):
                standing[row] = False
        refusals: list[Refusal] = []
        for plugin in run.plugins:
            if plugin.freed_by is FreedBy.NOTHING:
                standing = sifted_with_faults(plugin.name, self._always(plugin), standing, refusals)
                continue
            state = run.states.get(plugin.name)
            tally = None if plugin.freed_by is FreedBy.ROOM else run.tally(plugin, ())
            if tally is not None or plugin.freed_by is FreedBy.ROOM:
                state = state if tally is None else tally.without(tally.below)
                found = run.ask(plugin, state, emptied, ALL_ROWS, standing.shape)
                standing = sifted_with_faults(plugin.name, found, standing, refusals)
            else:
                # It may refuse a node once it is emptied, as where a volume has to be attached anew; report that.
                break
        return refusals

    def _needed_on_trial(self, leaving: Leaving, tallies: Mapping[str, Tally]) -> tuple[Needed, list[Refusal]]:
        with self._run.snapshot.trial() as trial:
            return self._needed(leaving, Emptying(self._run, leaving, tallies, self._always, trial))

    def _needed(self, leaving: Leaving, emptying: Emptying) -> tuple[Needed, list[Refusal]]:
        refusals = list[Refusal]()
        emptying.everyone_leaves()
        passing = emptying.passing(np.arange(len(leaving.lists)), refusals)
        has_to_go = np.zeros((len(leaving.lists), leaving.n_turns), dtype=np.bool_)
        for turn in range(leaving.n_turns):
            back = np.flatnonzero(passing & (leaving.lengths > turn))
            if not len(back):
                break
            emptying.move(turn, back, 1)
            too_many = back[~emptying.passing(back, [])]
            emptying.move(turn, too_many, -1)
            has_to_go[too_many, turn] = True
        rows, lists = leaving.rows[passing].tolist(), compress(leaving.lists, passing.tolist())
        found = zip(rows, lists, has_to_go[passing].tolist(), strict=True)
        return {row: tuple(compress(pods, are_going)) for row, pods, are_going in found}, refusals

    def _tallies(self, plugins: Sequence[FilterPlugin], pods: Sequence[PodInfo]) -> dict[str, Tally]:
        run = self._run
        found = {plugin.name: run.tally(plugin, pods) for plugin in plugins}
        return {name: tally for name, tally in found.items() if tally is not None}

    def _always(self, plugin: FilterPlugin) -> list[Rejection]:
        """Return the rejections, masks (n_rows,), of a plugin that no Pod's leaving changes."""
        found = self._unchanging.get(plugin.name)
        if found is None:
            run, shape = self._run, (self._run.snapshot.nodes.n_rows,)
            found = run.ask(plugin, run.states.get(plugin.name), run.snapshot, ALL_ROWS, shape)
            self._unchanging[plugin.name] = found
        return found


class Leaving:
    """The Pods that may leave some rows, in the order in which they come back, and the rivals nominated there."""

    def __init__(self, run: FilterRun, removable: Mapping[int, Sequence[PodInfo]]) -> None:
        self.rows: IntArray = np.array(list(removable), dtype=np.int64)
        self.lists = list(removable.values())
        self.lengths: IntArray = np.array([len(pods) for pods in self.lists], dtype=np.int64)
        self.n_turns = int(self.lengths.max(initial=0))
        self.rivals = _rivals(run, removable)
        self._has_rivals = np.array([row in self.rivals for row in removable], dtype=np.bool_)

    @property
    def everyone(self) -> list[PodInfo]:
        return [*chain.from_iterable(self.lists), *chain.from_iterable(self.rivals.values())]

    def crowded(self, lists: IntArray) -> BoolArray:
        """Return bool (len(lists),): there are rivals."""
        return self._has_rivals[lists]

    def sums(self, each: IntArray, n_rows: int) -> Sums:
        """Return the sums of what all tallies count, int64 (n_counts, n_pods); no Pod has left yet."""
        n_lists, n_leaving = len(self.lists), int(self.lengths.sum())
        in_turns = np.zeros((self.n_turns, len(each), n_lists), dtype=np.int64)
        lists = np.repeat(np.arange(n_lists), self.lengths)
        turns = np.arange(n_leaving) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        in_turns[turns, :, lists] = each[:, :n_leaving].T
        rivals = np.zeros((len(each), n_rows), dtype=np.int64)
        hosts = [row for row, pods in self.rivals.items() for _ in pods]
        np.add.at(rivals.T, hosts, each[:, n_leaving:].T)
        return Sums(np.zeros((len(each), n_rows), dtype=np.int64), in_turns, rivals)


@dataclass(frozen=True, slots=True)
class Sums:
    """What of some counts has left: `gone` is int64 (n_counts, n_rows).

    `each`, int64 (n_turns, n_counts, n_lists), is what the first, second, … Pod of each list counts; `rivals`, int64
    (n_counts, n_rows), what the rivals on each row count.
    """

    gone: IntArray
    each: IntArray
    rivals: IntArray


class Emptying:
    """Some rows while Pods leave them and come back, all rows at once; at first all Pods are there.

    Pods are moved as sums. With a `trial` they are moved themselves as well, for plugins without a tally: what such a
    plugin reads of Pods on one row must not concern the others then. `always` tells the rejections of plugins that no
    Pod's leaving changes.
    """

    def __init__(
        self,
        run: FilterRun,
        leaving: Leaving,
        tallies: Mapping[str, Tally],
        always: Callable[[FilterPlugin], list[Rejection]],
        trial: Trial | None,
    ) -> None:
        self._run, self._leaving, self._tallies, self._always, self._trial = run, leaving, tallies, always, trial
        self._states = run.states
        self._counting = [plugin for plugin in run.counting if plugin.name not in tallies]
        nodes = run.snapshot.nodes
        self._sums = {name: leaving.sums(tally.each, nodes.n_rows) for name, tally in tallies.items()}
        self._room = None if trial else _Room(run.snapshot, leaving)
        self._moving = [*self._sums.values(), *([self._room.sums] if self._room else [])]

    def everyone_leaves(self) -> None:
        for turn in range(self._leaving.n_turns):
            self.move(turn, np.flatnonzero(self._leaving.lengths > turn), -1)

    def move(self, turn: int, lists: IntArray, sign: int) -> None:
        """Let the Pod of that turn come back (1) to the row of each list, given by its number, or leave it (-1)."""
        rows = self._leaving.rows[lists]
        for sums in self._moving:
            sums.gone[:, rows] -= sign * sums.each[turn][:, lists]
        if self._trial:
            for i, row in zip(lists.tolist(), rows.tolist(), strict=True):
                self._move_one(self._trial, self._leaving.lists[i][turn], row, sign)

    def passing(self, lists: IntArray, refusals: list[Refusal]) -> BoolArray:
        """Return bool (len(lists),): where the Pod to place fits, with and without the rivals.

        `refusals` gets why not, masks bool (n_rows,); a fault of a plugin is one of Code.ERROR.
        """
        standing: BoolArray = np.ones(len(lists), dtype=np.bool_)
        rows, crowded = self._leaving.rows[lists], self._leaving.crowded(lists)
        if crowded.any():
            self._move_rivals(rows[crowded], 1)
            standing[crowded] = self._filtered(rows[crowded], refusals)
            self._move_rivals(rows[crowded], -1)
        standing[standing] = self._filtered(rows[standing], refusals)
        return standing

    def _filtered(self, rows: IntArray, refusals: list[Refusal]) -> BoolArray:
        """Return bool (len(rows),): which rows pass."""
        run, told = self._run, list[Refusal]()
        snapshot = self._room.snapshot if self._room else run.snapshot
        standing: BoolArray = np.ones(len(rows), dtype=np.bool_)
        for plugin in run.plugins:
            if not standing.any():
                break
            if plugin.freed_by is FreedBy.NOTHING:
                found = [replace(one, mask=one.mask[rows]) for one in self._always(plugin)]
            else:
                found = run.ask(plugin, self._state(plugin), snapshot, rows, standing.shape)
            standing = sifted_with_faults(plugin.name, found, standing, told)
        n_rows = run.snapshot.nodes.n_rows
        refusals += [replace(one, mask=_widened(one.mask, rows, n_rows)) for one in told]
        return standing

    def _state(self, plugin: FilterPlugin) -> object:
        tally = self._tallies.get(plugin.name)
        return self._states.get(plugin.name) if tally is None else tally.without(self._sums[plugin.name].gone)

    def _move_rivals(self, rows: IntArray, sign: int) -> None:
        for sums in self._moving:
            sums.gone[:, rows] -= sign * sums.rivals[:, rows]
        if self._trial:
            for row in rows.tolist():
                for rival in self._leaving.rivals[row]:
                    self._move_one(self._trial, rival, row, sign)

    def _move_one(self, trial: Trial, pod: PodInfo, row: int, sign: int) -> None:
        (trial.place if sign > 0 else trial.remove)(pod, row)
        self._states = self._run.counted(self._counting, self._states, pod, row, sign)


class _Room:
    """What the Pods occupy, and a view of the snapshot without the Pods that are gone."""

    def __init__(self, snapshot: Snapshot, leaving: Leaving) -> None:
        nodes, pods = snapshot.nodes, leaving.everyone
        each = np.zeros((len(nodes.requested) + 1, len(pods)), dtype=np.int64)
        each[-1] = 1
        amounts = [pod.usage.requests for pod in pods]
        for name, resource in nodes.resources.items():
            each[resource] = [amount.get(name, 0) for amount in amounts]
        self.sums = leaving.sums(each, nodes.n_rows)
        self._snapshot = snapshot
        self._occupied = np.concatenate((nodes.requested, nodes.n_pods[None]))

    @property
    def snapshot(self) -> Snapshot:
        left = self._occupied - self.sums.gone
        return self._snapshot.supposing(where_known(left[:-1], self._occupied[:-1]), left[-1])


def _rivals(run: FilterRun, rows: Mapping[int, object]) -> dict[int, list[PodInfo]]:
    """Return row -> the Pods nominated there that the Pod to place may not push aside, where there are any."""
    found: dict[int, list[PodInfo]] = {}
    for name in run.snapshot.nominated:
        row = run.snapshot.nodes.row_of(name)
        if row is not None and row in rows and (rivals := run.rivals(name)):
            found[row] = rivals
    return found


def sifted_with_faults(plugin: str, found: list[Rejection], standing: BoolArray, refusals: list[Refusal]) -> BoolArray:
    """Return which rows still stand, as `sifted` does; a fault is noted as a refusal, with its text."""
    for one in found:
        mask = one.mask & standing
        if one.code is Code.ERROR and mask.any():
            refusals.append(Refusal(plugin, Code.ERROR, str(filter_fault(plugin, one.reason)), mask))
            standing = standing & ~mask
    return sifted(plugin, [one for one in found if one.code is not Code.ERROR], standing, refusals)


def _widened(mask: BoolArray, rows: IntArray, n_rows: int) -> BoolArray:
    wide = np.zeros(n_rows, dtype=np.bool_)
    wide[rows] = mask
    return wide
