"""Holds what both schedulers did with a Pod against each other, Vane's record and the oracle."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance.cases import Case
from tests.conformance.compare import THOUSANDTHS, expected_fields
from tests.conformance.generate.coverage import facts_of
from tests.conformance.generate.draw import Fields
from tests.conformance.generate.oracle import answered
from tests.e2e.differential.features import features_of
from tests.e2e.differential.turns import FAULT, REFERENCE, VANE, Turn, shown

_SCHEDULER_NAME = "default-scheduler"
"""The oracle's one profile has this name."""

_TOLD = ("result", "acceptable", "total", "failure_message", "postfilter")
"""What a difference shows of the oracle's answer; the file has it all."""

_NOMINATED = re.compile(r"on node \S+,")


@dataclass(slots=True)
class Findings:
    """What was compared, and what differs.

    best_sizes
        How many nodes were best, by how often.
    beyond_record
        Pods with more best nodes than Vane's record has room for, so that the oracle alone names them all.
    """

    n_bound: int = 0
    texts: Counter[str] = field(default_factory=Counter)
    best_sizes: Counter[int] = field(default_factory=Counter)
    beyond_record: int = 0
    n_victims: int = 0
    features: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        sizes = sorted(self.best_sizes.elements())
        middle = sizes[len(sizes) // 2] if sizes else 0
        yield f"{self.n_bound} bound; best nodes: median {middle}, most {max(sizes, default=0)}, one {sizes.count(1)}"
        yield f"{self.beyond_record} with more best nodes than a record tells"
        yield f"{self.texts.total()} unschedulable, {len(self.texts)} different messages"
        yield f"{self.n_victims} victims of both together"
        for title, counts in (("feature", self.features), ("fact", self.facts)):
            yield from (f"{title} {count:4d}  {name}" for name, count in sorted(counts.items()))


class Judge:
    """Asks the oracle about each turn; the cases of those that differ are written to `folder`."""

    def __init__(self, oracle: Path, folder: Path) -> None:
        self.findings = Findings()
        self._oracle = oracle
        self._folder = folder

    def judge(self, turn: Turn) -> None:
        spec = turn.by_vane.pod["spec"] | {"schedulerName": _SCHEDULER_NAME}
        about = {"name": turn.drawn.name, "family": "live", "tags": []}
        case = about | {"objects": turn.before, "pod": turn.by_vane.pod | {"spec": spec}}
        (answer,) = answered(self._oracle, [case])
        self.findings.features.update(features_of(turn.by_vane.pod, turn.before))
        self.findings.facts.update(facts_of(answer))
        wrong = list(self._differences(turn, answer["expect"], expected_fields(Case.of(answer))))
        if wrong:
            path = self._folder / f"{turn.drawn.name}.jsonl.gz"
            with gzip.open(path, "wt") as lines:
                lines.write(json.dumps(answer) + "\n")
            told = {key: answer["expect"].get(key) for key in _TOLD}
            tell = f"oracle: {json.dumps(told)}\nto see it: python -m tests.conformance {path} --case {turn.drawn.name}"
            self.findings.differences.append("\n".join([*wrong, shown(turn), tell]))

    def _differences(self, turn: Turn, expect: Fields, expected: Fields) -> Iterator[str]:
        results = {_result(turn.reference.node, turn.reference.reason), _result(turn.vane.node, turn.vane.reason)}
        if results != {expect["result"]}:
            yield f"the results are {sorted(results)}, the oracle's is {expect['result']}"
        elif turn.vane.node:
            self.findings.n_bound += 1
            yield from self._wrong_choice(turn, expect["acceptable"], expected)
        else:
            self.findings.texts[turn.vane.message] += 1
            yield from _wrong_texts(turn, expect)
            yield from self._wrong_evictions(turn, expect.get("postfilter") or {})

    def _wrong_evictions(self, turn: Turn, expect: Fields) -> Iterator[str]:
        """Compare whom each evicted where: of the nodes that are equal to kube-scheduler either may take any."""
        acceptable = expect.get("acceptable_nodes") or [""]
        for scheduler, outcome in ((VANE, turn.vane), (REFERENCE, turn.reference)):
            if outcome.nominated not in acceptable:
                yield f"{scheduler} nominates {outcome.nominated!r}, right are {acceptable}"
                continue
            victims = expect["candidates"][outcome.nominated]["victims"] if outcome.nominated else []
            found = turn.evicted.get(scheduler, [])
            if sorted(found) != sorted(victims):
                yield f"{scheduler} evicts {found} from {outcome.nominated}, right are {victims}"
            self.findings.n_victims += len(found)

    def _wrong_choice(self, turn: Turn, acceptable: Sequence[str], expected: Fields) -> Iterator[str]:
        record = turn.by_vane.record
        self.findings.best_sizes[len(acceptable)] += 1
        if turn.vane.node not in acceptable:
            yield f"Vane's choice {turn.vane.node} is none of the best of the oracle, {acceptable}"
        if record["n_feasible"] != len(expected["feasible"]):
            yield f"{record['n_feasible']} nodes are feasible for Vane, {len(expected['feasible'])} for the oracle"
        totals = dict(zip(record["best_nodes"], record["total"], strict=True))
        best = [node for node, total in totals.items() if total == max(totals.values())]
        if len(best) == len(record["best_nodes"]) < len(acceptable):
            self.findings.beyond_record += 1
            best = list(acceptable)
        if turn.reference.node not in best:
            yield f"kube-scheduler's choice {turn.reference.node} is none of the best of Vane, {best}"
        theirs = {node: THOUSANDTHS * expected["total"][node] for node in totals if node in expected["total"]}
        # A single node is not scored, by kube-scheduler neither: the oracle only tells what it would be.
        if len(totals) > 1 and totals != theirs:
            yield f"the totals are {totals} for Vane, {theirs} for the oracle"


def _result(node: str, reason: str) -> str:
    if node:
        return "scheduled"
    return "error" if reason == FAULT else "unschedulable"


def _wrong_texts(turn: Turn, expect: Fields) -> Iterator[str]:
    """Compare texts, but for which of equal nodes is promised.

    Those of faults are compared up to the first colon: what follows quotes Go's validation.
    """

    def told(text: str) -> str:
        return text.partition(": ")[0] if expect["result"] == "error" else _NOMINATED.sub("on a node,", text)

    found: dict[str, tuple[Any, ...]] = {
        "reason": (turn.vane.reason, turn.reference.reason, expect["condition_reason"]),
        "message": tuple(map(told, (turn.vane.message, turn.reference.message, expect["failure_message"]))),
        "Event": tuple(map(told, (turn.vane.note, turn.reference.note, expect["event_message"]))),
    }
    for what, texts in found.items():
        if len(set(texts)) > 1:
            yield f"{what}: Vane {texts[0]!r}, kube-scheduler {texts[1]!r}, the oracle {texts[2]!r}"
