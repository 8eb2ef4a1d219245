"""The profile that a case was answered with, read by Vane's own configuration code."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from scheduler.app.profiles import build_profiles
from scheduler.errors import ConfigError
from scheduler.framework.profile import Profile
from scheduler.settings.load import load
from tests.builders import default_profile


def profile_of(fields: dict[str, Any] | None) -> Profile:
    """Return the profile that a KubeSchedulerConfiguration with these fields makes; None means the default one.

    Raises
    ------
    ConfigError
        Vane does not take it, as where it names a plugin that is not built.
    """
    return _default() if fields is None else _configured(json.dumps(fields))


def refusal(fields: dict[str, Any] | None) -> str | None:
    """Return why Vane does not take the profile, None where it does."""
    try:
        profile_of(fields)
    except ConfigError as error:
        return str(error).rpartition(": ")[2]
    return None


@cache
def _default() -> Profile:
    return default_profile()


@cache
def _configured(fields: str) -> Profile:
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile.yaml"
        path.write_text(json.dumps(head | {"profiles": [json.loads(fields)]}))
        (profile,) = build_profiles(load({"config": str(path)}, {})).values()
    return profile
