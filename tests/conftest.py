from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["tests.support.plugin"]

# How long an example takes says how busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
