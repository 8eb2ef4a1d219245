from __future__ import annotations

from scheduler.framework.instructions import Bind
from scheduler.plugins.default_binder import DefaultBinder
from tests.builders import make_pod


def test_the_binding_carries_the_uid() -> None:
    pod = make_pod("web", namespace="shop", uid="u-1")

    assert DefaultBinder().bind(None, pod, "n") == Bind("shop", "web", "u-1", "n")
