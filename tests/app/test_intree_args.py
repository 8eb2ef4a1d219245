"""Arguments of kube-scheduler's own plugins: complete, or every mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.app.intree_args import ArgumentMistakes, read_intree_args
from scheduler.framework.intree_args import InTreeArgs, NodeResourcesFitArgs, PodTopologySpreadArgs, ResourceSpec
from scheduler.settings.load import load
from tests.configuration import write


def read(folder: Path, name: str, args: str) -> InTreeArgs:
    config = write(folder, f"scheduler: {{profiles: [{{pluginConfig: [{{name: {name}, args: {args}}}]}}]}}\n")
    (found,) = load({"config": config}, {}).scheduler.profiles[0].plugin_config
    return read_intree_args(name, found)


@pytest.mark.parametrize("args", ["{}", "~", "{defaultingType: ~, defaultConstraints: ~}", "{defaultingType: ''}"])
def test_null_and_nothing_are_unset(tmp_path: Path, args: str) -> None:
    assert read(tmp_path, "PodTopologySpread", args) == PodTopologySpreadArgs()


def test_a_null_item_of_a_list_is_an_object_without_fields(tmp_path: Path) -> None:
    with pytest.raises(ArgumentMistakes, match=r"defaultConstraints\[0\]\.maxSkew: must be 1 or more, got 0"):
        read(tmp_path, "PodTopologySpread", "{defaultingType: List, defaultConstraints: [~]}")


def test_a_whole_number_may_have_a_point(tmp_path: Path) -> None:
    args = read(
        tmp_path,
        "NodeResourcesFit",
        "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3.0}, {name: memory}]}}",
    )
    assert isinstance(args, NodeResourcesFitArgs)
    assert args.scoring_strategy.resources == (
        ResourceSpec(name="cpu", weight=3),
        ResourceSpec(name="memory", weight=1),
    )


def test_all_mistakes_come_at_once_with_their_places(tmp_path: Path) -> None:
    args = "{kind: PodArgs, bindTimeoutSecond: 1, bindTimeoutSeconds: soon, shape: [{utilization: a}]}"
    with pytest.raises(ArgumentMistakes) as caught:
        read(tmp_path, "VolumeBinding", args)
    at, path = f"{tmp_path}/vane.yaml:3:", "scheduler.profiles[0].pluginConfig[0].args"
    assert [problem.removeprefix(at) for problem in caught.value.problems] == [
        f"75: {path}.kind: must be VolumeBindingArgs, got 'PodArgs'. Write it, or drop the line",
        f"84: {path}: unknown field, got 'bindTimeoutSecond' (did you mean \"bindTimeoutSeconds\"?)."
        " Write one of: bindTimeoutSeconds, shape",
        f"126: {path}.bindTimeoutSeconds: Expected `int`, got `str`. Write another value",
        f"154: {path}.shape[0].utilization: Expected `int`, got `str`. Write another value",
    ]
