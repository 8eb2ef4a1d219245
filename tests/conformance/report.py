"""A table of equal/compared per family and field, every difference, and the cases that were not compared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.conformance.cases import Case
from tests.conformance.compare import Difference, compare, found_fields
from tests.conformance.profiles import profile_of

COLUMNS = (
    "result", "preenqueue", "prefilter", "filter", "feasible", "raw", "scores", "score_skipped", "weights",
    "total", "best", "choice", "nominated", "score_error", "nomination", "victims", "candidates",
    "non_candidates", "message", "event", "condition_reason", "unschedulable_plugins",
)  # fmt: skip


@dataclass(slots=True)
class Report:
    """What was found, by family; `waiting` and `gaps` are names of cases with the reason they were not compared."""

    compared: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    differing: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    differences: list[Difference] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)
    gaps: dict[str, str] = field(default_factory=dict)
    _unequal: dict[str, tuple[str, Counter[str], Counter[str]]] = field(default_factory=dict)

    def add(self, case: Case) -> None:
        needs = case.needs()
        if needs:
            self.compared[case.family]["needs more"] += 1
            self.waiting[case.name] = "; ".join(needs)
        elif case.gap:
            found_fields(case, profile_of(case.profile_fields))
            self.compared[case.family]["gaps"] += 1
            self.gaps[case.name] = case.gap
        else:
            self._compare(case)

    def set_aside(self, name: str, reason: str) -> None:
        """Make a gap of a case that was found to differ."""
        family, compared, differing = self._unequal.pop(name)
        self.compared[family] -= compared
        self.differing[family] -= differing
        self.compared[family]["gaps"] += 1
        self.gaps[name] = reason
        self.differences = [one for one in self.differences if one.case != name]

    def _compare(self, case: Case) -> None:
        expected, found = compare(case, profile_of(case.profile_fields))
        compared = Counter(["cases", *expected])
        self.compared[case.family] += compared
        if found:
            differing = Counter(["cases", *(one.field for one in found)])
            self.differing[case.family] += differing
            self.differences += found
            self._unequal[case.name] = case.family, compared, differing

    def lines(self) -> Iterable[str]:
        for family, counts in sorted(self.compared.items()):
            wrong = self.differing[family]
            yield f"{family}: {_row(counts, wrong)}"
            yield "    " + "  ".join(
                f"{column} {_share(counts, wrong, column)}" for column in COLUMNS if counts[column]
            )
        yield f"all: {_row(_sum(self.compared), _sum(self.differing))}"
        for one in self.differences:
            yield f"\n{one.case}: {one.field}\n    expected {one.expected}\n    found    {one.found}"
        for title, cases in (("need more than is built", self.waiting), ("are deliberate gaps", self.gaps)):
            yield f"\n{len(cases)} cases {title}"
            yield from (f"    {name}: {reason}" for name, reason in cases.items())


def report_on(cases: Iterable[Case]) -> Report:
    report = Report()
    for case in cases:
        report.add(case)
    return report


def _sum(by_family: dict[str, Counter[str]]) -> Counter[str]:
    return sum(by_family.values(), Counter())


def _row(counts: Counter[str], wrong: Counter[str]) -> str:
    return f"{_share(counts, wrong, 'cases')} cases equal, {counts['needs more']} need more, {counts['gaps']} gaps"


def _share(counts: Counter[str], wrong: Counter[str], column: str) -> str:
    return f"{counts[column] - wrong[column]}/{counts[column]}"
