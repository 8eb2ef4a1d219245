"""What kube-scheduler 1.37.1 answered with arguments in the profile, from the configuration file to the decision."""

from __future__ import annotations

import functools
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scheduler.app.plugin_sources import OURS
from scheduler.app.profiles import build_profiles
from scheduler.framework.profile import Profile
from scheduler.settings.load import load
from tests.app.arguments import ARGUMENTS, profile_of, recorded
from tests.app.kube_configurations import HEAD
from tests.builders import default_profile
from tests.configuration import write
from tests.conformance.cases import Case
from tests.conformance.compare import compare

KINDS = [kind for kind, (plugin, _) in ARGUMENTS.items() if plugin in OURS]
LINES = [line for line in recorded() if line["family"] in KINDS]


def case_of(line: dict[str, Any]) -> Case:
    return Case(line["name"], line["family"], line["objects"], line["pod"], line["expect"])


@functools.cache
def profile_from_file(kind: str) -> Profile:
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps({"profiles": [profile_of(kind)]})  # JSON is YAML
        config = write(Path(folder), "profiles:" + text.removeprefix('{"profiles":').removesuffix("}") + "\n", HEAD)
        return build_profiles(load({"config": config}, {}), ())["default-scheduler"]


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line['family']}: {line['name']}")
def test_arguments_act_as_in_kube_scheduler(line: dict[str, Any]) -> None:
    case = case_of(line)
    assert line["profile"] == profile_of(case.family)
    if not case.needs():
        assert compare(case, profile_from_file(case.family))[1] == []


@pytest.mark.parametrize("kind", KINDS)
def test_they_make_a_difference(kind: str) -> None:
    cases = [case_of(line) for line in LINES if line["family"] == kind]
    assert any(compare(case, default_profile())[1] for case in cases if not case.needs())


def test_every_kind_of_arguments_has_cases() -> None:
    assert min(Counter(line["family"] for line in LINES)[kind] for kind in KINDS) >= 5
