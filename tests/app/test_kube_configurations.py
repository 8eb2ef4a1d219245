"""A KubeSchedulerConfiguration that a real kube-scheduler takes, Vane takes, and understands in the same way."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from scheduler.app.intree_args import read_intree_args
from scheduler.app.plugin_sources import NOT_BUILT, OURS
from scheduler.app.profiles import build_profiles
from scheduler.errors import ConfigError
from scheduler.framework.intree_args import INTREE_ARGS, InTreeArgs
from scheduler.settings.load import load
from scheduler.settings.scheduler import ProfileSettings
from scheduler.settings.settings import LeaderElectionSettings, Settings
from tests.app.kube_configurations import CASES, HEAD, Case
from tests.configuration import write

_KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "x", "user": {"token": "x"}}],
    "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
    "current-context": "x",
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_as_kube_scheduler(programs: Path, tmp_path: Path, case: Case) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(_KUBECONFIG))
    text = case.text.replace("KUBECONFIG", str(kubeconfig))
    if "clientConnection" not in text:
        text += f"clientConnection: {{kubeconfig: {kubeconfig}}}\n"
    config = write(tmp_path, text, HEAD)

    theirs = _completed_by_kube_scheduler(programs, config)
    if case.refused_here:
        assert isinstance(theirs, Mapping), theirs
        assert case.refused_here in _refusal(config)
    elif isinstance(theirs, str):
        assert f"{config}:" in _refusal(config), theirs
    else:
        for given in (config, str(_written(config))):
            _assert_alike(load({"config": given}, {}), theirs)
            _build(given)


def test_the_cases_reach_every_kind_of_arguments() -> None:
    assert len(CASES) >= 40
    for name in INTREE_ARGS:
        assert sum(f"name: {name}, args" in case.text for case in CASES.values()) >= 4


def test_every_plugin_takes_the_arguments_of_its_name() -> None:
    assert all(OURS[name].Args is INTREE_ARGS[name] for name in INTREE_ARGS if name in OURS)


def _completed_by_kube_scheduler(programs: Path, config: str) -> Mapping[str, Any] | str:
    """Return the configuration with all defaults, or why it is refused; nothing is connected to."""
    flags = [f"--config={config}", f"--write-config-to={_written(config)}", "--secure-port=0"]
    ended = subprocess.run(
        [str(programs / "kube-scheduler"), *flags, "--authentication-skip-lookup"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if ended.returncode:
        return ended.stderr
    completed: dict[str, Any] = yaml.safe_load(_written(config).read_text())
    return completed


def _written(config: str) -> Path:
    return Path(config).with_name("written.yaml")


def _build(config: str) -> None:
    """Make the profiles; plugins that are not built may be refused, by name and with nothing else."""
    try:
        build_profiles(load({"config": config}, {}), ())
    except ConfigError as error:
        lines = [line for line in str(error).splitlines() if " problems in the profiles:" not in line]
    else:
        lines = []
    assert all("of kube-scheduler: not built yet. Drop it" in line for line in lines), lines
    assert all(any(name in line for name in NOT_BUILT) for line in lines)


def _refusal(config: str) -> str:
    with pytest.raises(ConfigError) as caught:
        build_profiles(load({"config": config}, {}), ())
    return str(caught.value)


def _assert_alike(ours: Settings, theirs: Mapping[str, Any]) -> None:
    assert ours.scheduler.initial_backoff_s == theirs["podInitialBackoffSeconds"]
    assert ours.scheduler.max_backoff_s == theirs["podMaxBackoffSeconds"]
    assert str(ours.kubeconfig) == theirs["clientConnection"]["kubeconfig"]
    election = dict(theirs["leaderElection"])
    if ours.leader_election.resource_name == "vane":  # the one default that is another
        assert election.pop("resourceName") == "kube-scheduler"
    assert ours.leader_election == LeaderElectionSettings.model_validate(election)
    profiles = ours.scheduler.profiles or (ProfileSettings(),)
    for profile, there in zip(profiles, theirs["profiles"], strict=True):
        assert profile.scheduler_name in ("", there["schedulerName"])
        named = {one["name"]: _without_empty(one["args"]) for one in there.get("pluginConfig", ())}
        mine = {name: _without_empty(msgspec.to_builtins(args)) for name, args in _arguments(profile).items()}
        assert {name: one for name, one in mine.items() if name in named} == {
            name: {key: value for key, value in one.items() if key not in ("apiVersion", "kind")}
            for name, one in named.items()
            if name in INTREE_ARGS
        }


def _arguments(profile: ProfileSettings) -> dict[str, InTreeArgs]:
    ours = [config for config in profile.plugin_config if config.name in INTREE_ARGS]
    given = {config.name: read_intree_args(config.name, config) for config in ours}
    return {name: given.get(name, kind()) for name, kind in INTREE_ARGS.items()}


def _without_empty(value: Any) -> Any:
    """Return the value without what Go leaves out when it writes: it is the same when it is read again."""
    if isinstance(value, Mapping):
        inner = {key: _without_empty(one) for key, one in value.items()}
        return {key: one for key, one in inner.items() if type(one) is bool or one not in (None, "", [], {}, 0)}
    return [_without_empty(one) for one in value] if isinstance(value, list | tuple) else value
