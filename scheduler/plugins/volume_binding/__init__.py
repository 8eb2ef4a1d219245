"""VolumeBinding: a Pod goes where its volumes can be used, found or made, and has them bound there."""

from __future__ import annotations

from scheduler.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
