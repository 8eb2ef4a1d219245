"""The rule files of the rows, without servers: the good ones load, and each that is meant to be refused is."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.errors import ConfigError
from scheduler.signals.loader import RuleLoader
from tests.faults.bench.churn import Churn
from tests.faults.row import Row
from tests.faults.rows import ROWS
from tests.faults.rows.rule_files import POISON


def loader(path: Path) -> RuleLoader:
    return RuleLoader([path], lambda _: None, lambda _: None)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_rules_of_a_row_load(row: Row, tmp_path: Path) -> None:
    churn = Churn([], tmp_path / "rules.yaml")
    churn.signals, churn.rules = row.setting.signals, row.setting.rules
    churn.edit_rules()
    loaded = loader(tmp_path / "rules.yaml").load()
    assert len(loaded.rules) == 3 + row.setting.rules.count("name:")


@pytest.mark.parametrize("name", POISON)
def test_a_poisoned_file_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_bytes(b"")
    POISON[name](path)
    with pytest.raises(ConfigError):
        loader(path).load()
