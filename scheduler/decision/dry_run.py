"""PreemptionDryRun: what the filters of an attempt would say if some Pods left, for plugins that look for a way out.

Source: kube-scheduler v1.37 defaultpreemption SelectVictimsOnNode and framework RunFilterPluginsWithNominatedPods
(behaviour).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np

from scheduler.decision.emptied_nodes import Emptying, Leaving, sifted_with_faults
from scheduler.decision.filter_run import ALL_ROWS, FilterRun
from scheduler.framework.diagnosis import Refusal
from scheduler.framework.plugin import DryRun, FilterPlugin, FreedBy, Needed, Tally
from scheduler.framework.status import Rejection
from scheduler.model.arrays import IntArray
from scheduler.model.pods import PodInfo


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

    def hopeless(self, rows: IntArray, requested: IntArray, n_pods: IntArray) -> list[Refusal]:
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
                # It may refuse a node once it is emptied, as where a volume has to be attached anew, and would be told.
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
