"""That trials leave no trace, in a few hundred of the sequences; and that the comparison would find one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from scheduler.framework.index import Index
from scheduler.framework.plugin import FilterPlugin, Plugin
from scheduler.framework.status import Code, Rejection
from scheduler.model.arrays import Rows
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.plugins.node_ports import HostPorts
from tests.builders import cluster_of, make_node, make_pod
from tests.contracts import sequences
from tests.contracts.asking import EVERY
from tests.contracts.contents import contents, differing
from tests.contracts.sequences import DifferenceError, Tally, Walk, run


class Seen(Index):
    """Forgets no UID."""

    def __init__(self) -> None:
        self._uids: set[str] = set()

    def add_pod(self, pod: PodInfo, row: int) -> None:
        self._uids.add(pod.uid)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        pass


class Loads(Index):
    """Counts by row, one Pod too few where the last one of a row leaves."""

    def __init__(self) -> None:
        self._column = np.zeros(64, dtype=np.int64)

    def add_pod(self, pod: PodInfo, row: int) -> None:
        self._column[row] += 1

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        self._column[row] -= 1 + (self._column[row] == 1)


class Still(Index):
    """Counts nothing."""

    def __init__(self) -> None:
        self._total = 0

    def add_pod(self, pod: PodInfo, row: int) -> None:
        pass

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        pass


def counting_by(kind: type[Index]) -> Plugin:
    """Return a plugin that declares the index and does nothing else."""

    class Counts(Plugin):
        indexes = (kind,)

    return Counts()


def test_hundreds_of_sequences_leave_no_trace_and_none_is_vacuous() -> None:
    tally = run(range(300))

    assert tally.silent() == []
    assert tally.n_trials > 300


@pytest.mark.parametrize("kind", [Seen, Loads])
def test_an_index_that_a_trial_changes_is_found_and_named(kind: type[Index]) -> None:
    with pytest.raises(DifferenceError, match=rf"^{kind.__name__}\._(uids|column)") as failure:
        run(range(40), (*EVERY, counting_by(kind)))

    (reproduce,) = failure.value.__notes__
    with pytest.raises(DifferenceError):
        run([int(reproduce.split()[-1])], (*EVERY, counting_by(kind)))


def test_an_index_that_no_trial_changes_is_named() -> None:
    assert "Still._total" in run(range(10), (*EVERY, counting_by(Still))).silent()


class FirstOnly(FilterPlugin):
    """Refuses the first of those it looks at, whoever that is."""

    def filter(self, state: Any, pod: PodInfo, snapshot: Snapshot, rows: Rows) -> list[Rejection]:
        mask = np.zeros(len(snapshot.nodes.alive[rows]), dtype=np.bool_)
        mask[:1] = True
        return [Rejection(mask, Code.UNSCHEDULABLE, "first")]


def test_a_plugin_that_looks_at_who_else_is_asked_about_is_found() -> None:
    with pytest.raises(DifferenceError, match=r"^FirstOnly Filter says"):
        asked_of_first_only(range(40))


def asked_of_first_only(seeds: Iterable[int]) -> None:
    for seed in seeds:
        Walk(seed, Tally(), filters=[FirstOnly()]).carry_out()


def columns(owner: object, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yield all columns within an object."""
    if isinstance(owner, np.ndarray):
        yield path, owner
    elif isinstance(owner, dict):
        for key, value in owner.items():
            yield from columns(value, f"{path}[{key!r}]")
    elif hasattr(owner, "__dict__"):
        for name, value in vars(owner).items():
            yield from columns(value, f"{path}.{name}")


def test_one_bit_of_any_column_is_noticed() -> None:
    pod = make_pod(node="n", labels={"app": "web"}, ports=[{"hostPort": 80}], cpu="1")
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    state = cluster_of([make_node("n", labels={"zone": "a"}, taints=[taint], features=["F"])], [pod])
    before = contents(state)
    found = [(path, column) for path, column in columns(state.nodes) if column.size and path != ".row_generation"]
    assert len(found) >= 12

    for path, column in found:
        bits = column.reshape(-1).view(np.uint8)
        bits[0] ^= 1
        (named,) = differing(before, contents(state))
        shown = path.split("[")[0].replace(".labels._columns", ".labels").removesuffix(".cells")
        assert f".{named.removeprefix('nodes.')}" == shown
        bits[0] ^= 1
    assert differing(before, contents(state)) == {}


def test_what_an_index_holds_is_told_to_the_key() -> None:
    state = cluster_of([make_node("n")], [make_pod(node="n", ports=[{"hostPort": 80}])])
    before = contents(state)
    index = next(one for one in state.indexes if isinstance(one, HostPorts))
    index.add_pod(make_pod("other", ports=[{"hostPort": 80}]), 0)

    assert differing(before, contents(state)) == {
        "HostPorts._ports": "[('TCP', 80)]['n_pods']['0.0.0.0'][0]: 1 became 2"
    }


def test_the_command_reports_what_was_compared() -> None:
    lines: list[str] = []
    code = sequences.main(["--number", "2", "--seed", "5"], lines.append)
    report = "".join(lines)

    assert code == 1, "two sequences change too little for the report to count"
    assert "nodes.room._requested" in report
    assert "MatchingPods._groups" in report
    assert "2 sequences in" in report
