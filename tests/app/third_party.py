"""Packages of third parties: written to a folder, found by Python, offered through entry points."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, PathDistribution
from pathlib import Path

import pytest

from scheduler.app.profiles import build_profiles
from scheduler.errors import ConfigError
from scheduler.framework.profile import Profile
from scheduler.settings.load import load
from scheduler.settings.settings import Settings
from scheduler.settings.sources import FlagValue
from tests.configuration import write

PROFILE = "scheduler:\n  profiles:\n    - schedulerName: vane\n"

SOURCE = """\
from __future__ import annotations

from scheduler.framework.args import PluginArgs
from scheduler.framework.plugin import BindPlugin, FilterPlugin, Plugin, PreBindPlugin, QueueSortPlugin, ScorePlugin
from scheduler.framework.plugin import PostBindPlugin, ReservePlugin
from scheduler.framework.status import ScoreTerm


class RackArgs(PluginArgs, frozen=True):
    label_key: str
    spread: int = 1
    zones: list[str] = []

    def __post_init__(self):
        if self.spread > 9:
            raise ValueError(f"spread: got {self.spread}. Write at most 9")


class Rack(ScorePlugin):
    Args = RackArgs

    def __init__(self, args):
        self.args = args

    def score(self, state, pod, snapshot, rows):
        return [ScoreTerm(self.name, snapshot.nodes.n_pods[rows] * 0)]


class Both(FilterPlugin, ScorePlugin):
    def filter(self, state, pod, snapshot, rows):
        return ()

    def score(self, state, pod, snapshot, rows):
        return ()


class NodeName(Both):
    pass


class Order(QueueSortPlugin):
    Args = RackArgs

    def __init__(self, args):
        self.args = args

    def sort_key(self, entity):
        return (entity.added_s,)


class Slow(PreBindPlugin, ReservePlugin, PostBindPlugin):
    blocking = True

    def prebind(self, state, pod, node_name):
        return None

    def postbind(self, state, pod, node_name):
        return ()

    def reserve(self, state, pod, node_name):
        return None

    def unreserve(self, state, pod, node_name):
        return None


class Far(BindPlugin):
    def bind(self, state, pod, node_name):
        return None

    def clusters(self):
        return ("edge",)


class Half(FilterPlugin, ScorePlugin):
    pass


class Pointless(Plugin):
    pass


class Raising(Both):
    def __init__(self):
        raise RuntimeError("no licence")


class Renamed(Both):
    name = "other"


class Eventful(Both):
    def events(self):
        return ["Node"]


class LooseArgs(__import__("msgspec").Struct):
    a: int = 1


class Loose(Rack):
    Args = LooseArgs


class Untyped(Rack):
    Args = dict


no_plugin = Both()
"""


class ThirdParty:
    """What a user has installed and written: the module `acme`, imported afresh in each test."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.config = ""
        self.write("acme", SOURCE)
        monkeypatch.delitem(sys.modules, "acme", raising=False)
        monkeypatch.syspath_prepend(folder)

    def write(self, module: str, text: str) -> None:
        (self.folder / f"{module}.py").write_text(text)

    def offer(self, package: str, entries: Mapping[str, str]) -> list[EntryPoint]:
        """Install a package's metadata and return what it offers."""
        folder = self.folder / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[vane.plugins]", *lines, ""]))
        return list(PathDistribution(folder).entry_points)

    def settings(self, block: str, **flags: FlagValue) -> Settings:
        """Return the settings of a configuration file."""
        self.config = write(self.folder, block)
        named = {name.replace("_", "-"): value for name, value in flags.items()}
        return load({"config": self.config, **named}, {})

    def build(self, block: str, installed: list[EntryPoint] | None = None, **flags: FlagValue) -> Mapping[str, Profile]:
        return build_profiles(self.settings(block, **flags), installed or [])

    def problems(self, block: str, installed: list[EntryPoint] | None = None, **flags: FlagValue) -> list[str]:
        """Return what is said of a wrong one, without the file's name."""
        with pytest.raises(ConfigError) as caught:
            self.build(block, installed, **flags)
        lines = str(caught.value).splitlines()
        return [line.removeprefix(f"{self.config}:") for line in lines]
