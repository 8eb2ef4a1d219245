"""Every good file of the project is valid by its schema, and names the schema, which is the one of this program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from scheduler.app.schemas import SCHEMAS, file_name, schema_text
from tests.cli.command import Cli
from tests.readme import CHECKOUT, README, blocks
from tests.schema.editor import faults
from tests.settings.test_kube_scheduler import BLOCK

COMMITTED = CHECKOUT / "rules" / "schemas"
FILES = sorted(path for folder in ("rules", "deploy/base") for path in (CHECKOUT / folder).rglob("*.yaml"))
OURS = [path for path in FILES if "apiVersion: vane.dev/v1" in path.read_text()]
MODELINE = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")


def _kind(text: str) -> str:
    document = yaml.safe_load(text)
    return str(document.get("kind", "Rules"))


def test_the_files_are_there() -> None:
    assert len(OURS) >= 25


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(CHECKOUT))) for path in OURS])
def test_a_good_file_is_valid(path: Path) -> None:
    assert faults(_kind(path.read_text()), path.read_text()) == []


@pytest.mark.parametrize("path", [pytest.param(path, id=str(path.relative_to(CHECKOUT))) for path in OURS])
def test_a_file_tells_editors_where_its_schema_is(path: Path) -> None:
    line = MODELINE.match(path.read_text())
    assert line is not None, "write `# yaml-language-server: $schema=…` as its first line"
    assert (path.parent / line[1]).resolve() == COMMITTED / file_name(_kind(path.read_text()))


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_committed_schema_is_the_one_that_is_printed(kind: str) -> None:
    vane = Cli()
    assert vane("schema", kind) == 0
    assert vane.out == schema_text(kind)
    committed = (COMMITTED / file_name(kind)).read_text()
    assert committed == vane.out, "write them anew: .venv/bin/vane schema --write rules/schemas"


def test_what_the_readme_shows_is_valid() -> None:
    shown = [
        block.text
        for block in blocks("yaml")
        if re.search(r"^(signals|rules|tenants|prometheus|scheduler):", block.text, re.M)
    ]
    assert len(shown) > 3
    for text in shown:
        whole = text if "apiVersion" in text else f"apiVersion: vane.dev/v1\nkind: Rules\n{text}"
        assert faults(_kind(whole), whole) == []


def test_a_block_of_kube_scheduler_is_valid_in_a_configuration() -> None:
    assert faults("VaneConfiguration", f"apiVersion: vane.dev/v1\nkind: VaneConfiguration\n{BLOCK}") == []


@pytest.mark.parametrize(("table", "field"), [("signal", "signals"), ("rule", "rules")])
def test_editors_say_what_the_readme_says(table: str, field: str) -> None:
    items = SCHEMAS["Rules"]()["properties"][field]
    fields = (items["additionalProperties"]["else"] if table == "signal" else items["items"])["properties"]
    text = README.read_text()
    rows = text[text.index(f"| field of a {table} | meaning") :].split("\n\n")[0].splitlines()[2:]
    assert len(rows) > 8
    for row in rows:
        cells = re.split(r"(?<!\\)\|", row)
        names, meaning = re.findall(r"`(\w+)`", cells[1]), cells[2].strip().replace("\\|", "|")
        assert names, row
        assert "; ".join(fields[name]["description"] for name in names) == meaning
