"""Random sequences of trials: what is placed, removed and undone leaves every index and column bit-equal.

    python -m tests.contracts.sequences --number 10000 --seed 1

Each sequence draws a world from its seed and tries things in it, trials within trials too. Half of the sequences ask
every plugin before, within and after each trial, about all nodes and about some: the answers for some must be those
for all, those afterwards the ones from before. The other half ask nothing, so that nothing is brought up to date by
a question. The report says how often each index and column had changed before it was undone, and how often each
plugin had something to say: none may be zero.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, cycle
from random import Random
from typing import Any

import numpy as np

from scheduler.errors import InvalidObjectError
from scheduler.framework.plugin import FilterPlugin, Plugin, ScorePlugin
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot, Trial
from tests.builders import cluster_of, default_profile, make_node, make_pod
from tests.contracts.asking import EVERY, FILTERS, SCORES, by_name, decided, run_filter, run_score, verdicts
from tests.contracts.contents import contents, differing
from tests.worlds import CHANGED_OBJECTS, EPHEMERAL, OBJECTS, is_so, random_node, random_pod, random_world

PROFILE = default_profile()
MAX_DEPTH = 3

OF_PODS = frozenset({"pods", "row_memo"}) | {
    f"nodes.{name}" for name in ("_nonzero", "n_pods", "room._requested", "room._without_column")
}
"""What Pods change besides the indexes."""

HOSTILE: dict[str, str | int] = {"nvidia.com/gpu": "9E", "example.com/unheard": 2**62, "example.com/unheard-too": 1}
"""Requests of Pods that the API server takes and no node has."""


class DifferenceError(AssertionError):
    """A trial left something behind, or a plugin said of some nodes what it doesn't say of all."""


@dataclass
class Tally:
    """What was compared: trials, steps within them, and how often each comparison could have failed.

    `paths` are all that were compared, `of_pods` those that Pods change, all of every index among them; `tried` those
    that had changed when a trial was undone, `moved` those that had changed from one trial to the next. By plugin and
    point, `subsets` counts the questions about some of the nodes and `telling` those with a refusal among them, or
    with scores that vary.
    """

    n_trials: int = 0
    n_steps: int = 0
    paths: set[str] = field(default_factory=set)
    of_pods: set[str] = field(default_factory=lambda: set(OF_PODS))
    tried: Counter[str] = field(default_factory=Counter)
    moved: Counter[str] = field(default_factory=Counter)
    subsets: Counter[str] = field(default_factory=Counter)
    telling: Counter[str] = field(default_factory=Counter)

    def silent(self) -> list[str]:
        """Return which comparisons could not have failed: what Pods change has to have changed within trials."""
        tried = {path for path in self.paths if self.tried[path]}
        moved = {path for path in self.paths - self.of_pods if self.moved[path]}
        return sorted(self.paths - tried - moved) + sorted(name for name in self.subsets if not self.telling[name])

    def lines(self) -> Iterator[str]:
        yield f"{self.n_trials} trials, {self.n_steps} Pods placed or removed in them"
        yield f"{'compared after each trial':50} {'changed within':>15} {'changed between':>15}"
        for path in sorted(self.paths):
            yield f"{path:50} {self.tried[path]:>15} {self.moved[path]:>15}"
        yield f"{'asked about some of the nodes':50} {'telling':>15} {'of':>15}"
        for name, n in sorted(self.subsets.items()):
            yield f"{name:50} {self.telling[name]:>15} {n:>15}"


class Walk:
    """One world and what happens in it; `plugins` are those whose indexes are fed, `filters` those that are asked."""

    def __init__(
        self,
        seed: int,
        tally: Tally,
        plugins: Sequence[Plugin] = EVERY,
        filters: Sequence[FilterPlugin] = FILTERS,
    ) -> None:
        self._random = random = Random(seed)
        self._filters = filters
        self._tally = tally
        self._asks = is_so(random)
        self._world = random_world(random, min_nodes=1)
        self._guests = (random_pod(random, f"guest-{i}", more_volumes=EPHEMERAL) for i in count())
        self._hostile = (make_pod(f"hostile-{i}", extended=HOSTILE) for i in count())
        self._vast: Iterator[dict[str, str | int]] = cycle([HOSTILE, {"example.com/unheard-too": 2**62}])
        self._probes = [self._world.pod, next(self._guests)]
        self._state = cluster_of(self._world.nodes, self._world.pods, plugins, OBJECTS)
        indexes = tuple(f"{type(index).__name__}." for index in self._state.indexes)
        tally.of_pods |= {path for path in contents(self._state) if path.startswith(indexes)}

    def carry_out(self) -> None:
        """Try and change by turns; DifferenceError where anything is left behind."""
        before: Mapping[str, Any] = {}
        for _ in range(self._random.randint(1, 3)):
            snapshot = self._snapshot()
            decisions = self._decisions(snapshot)
            with self._left_as_it_was(snapshot) as now:
                self._tally.moved.update(differing(before, now).keys() if before else ())
                self._try(snapshot, 1, now)
            if self._decisions(snapshot) != decisions:
                raise DifferenceError(f"decisions: {decisions} became {self._decisions(snapshot)}")
            before = now
            self._change()

    def _snapshot(self) -> Snapshot:
        return self._world.snapshot(self._state)

    @contextmanager
    def _left_as_it_was(self, snapshot: Snapshot) -> Iterator[Mapping[str, Any]]:
        answers = self._answers(snapshot)
        before = contents(self._state)
        self._tally.paths |= before.keys()
        yield before
        again = self._answers(snapshot)
        self._tally.n_trials += 1
        for path, how in differing(before, contents(self._state)).items():
            raise DifferenceError(f"{path}{how}")
        if again != answers:
            raise DifferenceError(f"answers: {answers} became {again}")

    def _try(self, snapshot: Snapshot, depth: int, before: Mapping[str, Any]) -> None:
        """Place and remove a few Pods for a while, with trials of the same kind among that."""
        removed: list[PodInfo] = []
        with snapshot.trial() as trial:
            for _ in range(self._random.randint(1, 4)):
                self._step(snapshot, trial, removed)
                if depth < MAX_DEPTH and self._random.random() < 0.2:
                    with self._left_as_it_was(snapshot) as now:
                        self._try(snapshot, depth + 1, now)
            self._answers(snapshot)
            self._tally.tried.update(differing(before, contents(self._state)).keys())

    def _step(self, snapshot: Snapshot, trial: Trial, removed: list[PodInfo]) -> None:
        """Place a Pod, a new one or one removed before, or remove one."""
        self._tally.n_steps += 1
        there, rows = self._placed(), self._rows()
        if there and is_so(self._random):
            pod, row = self._random.choice(there)
            trial.remove(pod, row)
            removed.append(pod)
        else:
            pod = removed.pop() if removed and is_so(self._random) else next(self._guests)
            trial.place(pod, self._random.choice(rows))

    def _placed(self) -> list[tuple[PodInfo, int]]:
        return [(pod, row) for row in self._rows() for pod in self._state.pods_on(row)]

    def _rows(self) -> list[int]:
        return [row for row, name in enumerate(self._state.nodes.names) if name]

    # -- questions -------------------------------------------------------------------------------------------

    def _decisions(self, snapshot: Snapshot) -> list[Any]:
        """Return what the whole chain decides; which questions preemption asks depends on what is placed."""
        return [decided(pod, snapshot, PROFILE) for pod in self._probes] if self._asks else []

    def _answers(self, snapshot: Snapshot) -> list[Any]:
        """Return all that plugins say about the Pods to place, nothing in a walk that doesn't ask."""
        answers: list[Any] = []
        for pod in self._probes if self._asks else ():
            answers += [self._filtered(plugin, pod, snapshot) for plugin in self._filters]
            answers += [self._scored(plugin, pod, snapshot) for plugin in SCORES]
        return answers

    def _filtered(self, plugin: FilterPlugin, pod: PodInfo, snapshot: Snapshot) -> list[set[tuple[int, str]]] | str:
        n, some = snapshot.nodes.n_rows, self._some(snapshot)
        try:
            whole = verdicts(run_filter(plugin, pod, snapshot), n)
        except InvalidObjectError as error:
            return str(error)
        part = verdicts(run_filter(plugin, pod, snapshot, np.array(some, dtype=np.int64)), len(some))
        self._compare(f"{plugin.name} Filter", part, [whole[row] for row in some], is_telling=any(part))
        return whole

    def _scored(self, plugin: ScorePlugin, pod: PodInfo, snapshot: Snapshot) -> Mapping[str, Any]:
        some = self._some(snapshot)
        whole = by_name(run_score(plugin, pod, snapshot))
        part = by_name(run_score(plugin, pod, snapshot, np.array(some, dtype=np.int64)))
        expected = {name: ([values[row] for row in some], weight) for name, (values, weight) in whole.items()}
        is_telling = any(len(set(values)) > 1 for values, _ in part.values())
        self._compare(f"{plugin.name} Score", part, expected, is_telling=is_telling)
        return whole

    def _compare(self, name: str, part: Any, expected: Any, *, is_telling: bool) -> None:
        self._tally.subsets[name] += 1
        self._tally.telling[name] += is_telling
        if part != expected:
            raise DifferenceError(f"{name} says {part} of some nodes, {expected} of these among all")

    def _some(self, snapshot: Snapshot) -> list[int]:
        n = snapshot.nodes.n_rows
        return sorted(self._random.sample(range(n), self._random.randint(0, n)))

    # -- what happens between trials -------------------------------------------------------------------------

    def _change(self) -> None:
        """Change the world for good, as events would."""
        random, state = self._random, self._state
        for _ in range(random.randint(1, 4)):
            name = f"n{random.randint(0, 9)}"
            match random.randint(0, 6):
                case 0:
                    state.set_node(random_node(random, name, image_bytes=1_000))
                case 1:
                    state.remove_node(name)
                case 2:
                    state.place(next(self._guests), state.nodes.ensure_row(name))
                case 3 if there := self._placed():
                    state.displace(*random.choice(there))
                case 4:
                    state.place(next(self._hostile), state.nodes.ensure_row(name))
                    state.set_node(make_node("vast", extended=next(self._vast)))
                case 5:
                    pod = random_pod(random, "nominated", nominated=name)
                    state.nominated[name] = {pod.uid: pod}
                    state.epoch += 1
                case 6 if there := self._placed():
                    pod, row = random.choice(there)
                    state.displace(pod, row)
                    state.remember(pod, state.nodes.names[row], 0.0)
        state.unix_ahead_s = random.choice([0.0, 60.0])
        state.nodes.ensure_row("n0")
        self._change_objects()

    def _change_objects(self) -> None:
        for _ in range(self._random.randint(0, 3)):
            item = self._random.choice((*OBJECTS, *CHANGED_OBJECTS))
            if self._random.random() < 0.3:
                self._state.remove_object(type(item), item.metadata.namespace, item.metadata.name)
            else:
                self._state.set_object(item)


def run(seeds: Sequence[int], plugins: Sequence[Plugin] = EVERY) -> Tally:
    """Carry out a sequence for each seed; DifferenceError names the first that fails."""
    tally = Tally()
    for seed in seeds:
        try:
            Walk(seed, tally, plugins).carry_out()
        except BaseException as error:
            error.add_note(f"python -m tests.contracts.sequences --number 1 --seed {seed}")
            raise
    return tally


def main(argv: Sequence[str] | None = None, write: Callable[[str], object] = sys.stdout.write) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.contracts.sequences", description="Trials, undone exactly.")
    parser.add_argument("--number", type=int, default=10_000, help="sequences (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first, the others follow (default: 1)")
    arguments = parser.parse_args(argv)
    started_s = time.monotonic()
    tally = run(range(arguments.seed, arguments.seed + arguments.number))
    for line in tally.lines():
        write(f"{line}\n")
    silent = tally.silent() if arguments.number > 1 else []
    for name in silent:
        write(f"never changed or had anything to say: {name}\n")
    write(f"{arguments.number} sequences in {time.monotonic() - started_s:.1f} s: 0 differences\n")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
