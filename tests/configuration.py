"""Configuration files to read, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.errors import ConfigError
from scheduler.settings.load import load
from scheduler.settings.sources import FlagValue

HEAD = "apiVersion: vane.dev/v1\nkind: VaneConfiguration\n"


def write(folder: Path, text: str, head: str = HEAD) -> str:
    path = folder / "vane.yaml"
    path.write_text(head + text)
    return str(path)


def message(flags: dict[str, FlagValue], environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load(flags, environ or {})
    return str(caught.value)
