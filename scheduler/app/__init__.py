"""The composition root: builds every object of the three processes, starts them and ends them in order."""

from __future__ import annotations

from scheduler.app.run import run

__all__ = ["run"]
