"""The README is true: what it tells to type works, what it shows is read, what it points at is there.

Its kubectl commands are typed at a cluster in tests/deploy/test_readme_commands.py.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from scheduler.cli.main import COMMANDS, main
from scheduler.settings.load import load
from scheduler.settings.options import OPTIONS
from scheduler.settings.settings import Settings
from scheduler.signals.format.rule_files import parse_rule_files
from tests.readme import CHECKOUT, README, blocks, commands

VANE = CHECKOUT / ".venv" / "bin" / "vane"


def test_every_shell_command_is_one_that_a_test_runs() -> None:
    for block in blocks("sh"):
        if any("vane" in line.split()[0] for line in block.text.splitlines() if line.split()):
            continue  # run as a whole, below
        for line in block.text.splitlines():
            assert line.split()[0] in ("make", "kubectl"), f"nothing runs this command of the README: {line}"


@pytest.mark.parametrize("command", commands("make"))
def test_make_knows_what_it_is_told_to_make(command: str) -> None:
    """The targets themselves are run elsewhere: `make test` runs this, tests/e2e/test_demo.py the demo."""
    words = [*shlex.split(command), "--dry-run", "--no-print-directory"]  # by `make test` it is a make within a make
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    last = done.stdout.splitlines()[-1]
    expected = {"demo": " vane demo", "test": " -m pytest", "run": "/vane run --kubeconfig"}
    assert expected[shlex.split(command)[1]] in last


def test_the_flags_of_make_run_are_flags_of_vane() -> None:
    (line,) = (line for line in commands("make") if "run" in line.split())
    (flags,) = (word.removeprefix("ARGS=") for word in shlex.split(line) if word.startswith("ARGS="))
    seen: list[Settings] = []

    def run(settings: Settings) -> int:
        seen.append(settings)
        return 0

    assert main(["run", *shlex.split(flags)], {}, run=run) == 0
    assert seen[0].prometheus.url == "http://localhost:9090"


def test_the_commands_about_rules_do_what_is_said(tmp_path: Path) -> None:
    """In one shell after the other, as typed, in a folder that looks like a checkout."""
    for name in ("rules", ".venv"):
        (tmp_path / name).symlink_to(CHECKOUT / name)
    typed = [block.text for block in blocks("sh") if block.section == "Rules in ten minutes"]
    assert len(typed) >= 3
    for text in typed:
        done = subprocess.run(
            ["sh", "-eu", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        wanted = " 0 failed" if "vane rules test" in text else " 0 problems"
        assert wanted in done.stdout, done.stdout
    changed = (tmp_path / "my-rules" / "node-utilisation.yaml").read_text()
    assert "max: 70%" in changed, "the README's sed finds nothing to change any more"


def test_the_files_shown_can_be_read(tmp_path: Path) -> None:
    kinds = []
    hooks = {hook["id"] for hook in yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text())}
    for block in blocks("yaml"):
        document = yaml.safe_load(block.text)
        kinds.append(str(document.get("kind", sorted(document))))
        if "rules" in document:
            text = f"apiVersion: vane.dev/v1\nkind: Rules\n{block.text}"
            assert parse_rule_files({"README.yaml": text.encode()}, 1).rules
        if "match" in document:
            rule = {"name": "r", "signal": "s", "filter": {"max": 1}, **document}
            whole = {"apiVersion": "vane.dev/v1", "kind": "Rules", "signals": {"s": {"expr": "up"}}, "rules": [rule]}
            (read,) = parse_rule_files({"README.yaml": yaml.safe_dump(whole).encode()}, 1).rules
            assert read.match.covers("shop-1", {"tier": "web"}, {"team": "web"})
            assert not read.match.covers("shop-1", {"tier": "web", "batch": ""}, {"team": "web"})
            assert not read.match.covers("shop-1", {"tier": "web"}, {"team": "web", "stage": "test"})
        if "tenants" in document:
            pack = CHECKOUT / "rules" / "node-utilisation.yaml"
            text = f"apiVersion: vane.dev/v1\nkind: Rules\n{block.text}"
            assert parse_rule_files({"README.yaml": text.encode(), "pack.yaml": pack.read_bytes()}, 1).tenants
        if "repos" in document:
            assert {hook["id"] for hook in document["repos"][0]["hooks"]} == hooks
        if document.get("kind") == "VaneConfiguration":
            file = tmp_path / "vane.yaml"
            file.write_text(block.text)
            settings = load({"config": str(file)}, {})
            assert settings.scheduler.profiles or settings.prometheus.servers
    configurations = ["VaneConfiguration", "VaneConfiguration"]
    others = ["['repos']", "['match']", "['tenants']", "['spec']", "Kustomization"]
    assert kinds == ["['rules', 'signals']", *others, *configurations]


def test_the_shortened_pack_is_the_pack() -> None:
    shown = yaml.safe_load(blocks("yaml")[0].text)
    pack = yaml.safe_load((CHECKOUT / "rules" / "node-utilisation.yaml").read_text())
    for name, signal in shown["signals"].items():
        whole = {key: " ".join(str(value).split()) for key, value in pack["signals"][name].items()}
        assert whole | {key: str(value) for key, value in signal.items()} == whole
    for rule in shown["rules"]:
        assert rule in pack["rules"]


def test_the_table_of_commands_is_that_of_the_program() -> None:
    text = README.read_text()
    rows = text[text.index("| command | does |") :].split("\n\n")[0]
    assert set(re.findall(r"`vane (\w+)", rows)) == {*COMMANDS}


def test_the_table_of_flags_says_their_defaults() -> None:
    rows = re.findall(r"^\| (`--[^|]+) \| [^|]+ \| (?:`([^`]*)`)? *\|$", README.read_text(), re.M)
    known = {option.flag: option for option in OPTIONS}
    defaults = {name: default for names, default in rows for name in re.findall(r"--([\w-]+)", names)}
    assert len(defaults) > 10
    settings = Settings()
    for flag, default in defaults.items():
        if flag == "config":
            continue
        assert flag in known
        value: object = settings
        for step in known[flag].path:
            value = _attribute(value, step)
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        assert default == ("" if value in (None, ()) else shown), flag


def _attribute(settings: object, alias: str) -> object:
    fields = type(settings).model_fields  # type: ignore[attr-defined] # every group is a pydantic model
    name = next(name for name, field in fields.items() if alias in (name, field.alias, _camel(name)))
    return getattr(settings, name)


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)


def test_what_is_linked_is_there() -> None:
    targets = [target for target in re.findall(r"\]\(([^)#]+)", README.read_text()) if "://" not in target]
    assert targets
    for target in targets:
        assert (CHECKOUT / target).exists(), target
