from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.signals.files import read_rule_files
from scheduler.signals.format.rule_files import parse_rule_files
from scheduler.sim.phases import AFTER, BEFORE, edit_rules, timetable


def test_the_edit_changes_one_line_and_the_rules_still_load(tmp_path: Path) -> None:
    shipped = Path("scheduler/sim/rules/demo.yaml").read_text()
    file = tmp_path / "demo.yaml"
    file.write_text(shipped)
    diff = edit_rules(file)
    changed = [line for line in diff if line[0] in "+-" and not line.startswith(("+++", "---"))]
    assert changed == [f"-    {BEFORE}", f"+    {AFTER}"]
    assert [path.name for path in tmp_path.iterdir()] == ["demo.yaml"]
    rules = {rule.name: rule for rule in parse_rule_files(read_rule_files([tmp_path])).rules}
    limit = rules["avoid-hot-nodes"].filter
    assert limit is not None
    assert limit.max == 0.65
    with pytest.raises(ValueError, match="0 lines"):
        edit_rules(file)


@pytest.mark.parametrize("is_fast", [False, True])
def test_phases_follow_each_other_and_stay_under_a_minute(is_fast: bool) -> None:
    phases = timetable(is_fast)
    assert [phase.begins_s for phase in phases[1:]] == [phase.ends_s for phase in phases[:-1]]
    assert phases[0].begins_s == 0.0
    assert phases[-1].ends_s <= (20.0 if is_fast else 50.0)
