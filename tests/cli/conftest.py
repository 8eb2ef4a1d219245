from __future__ import annotations

from tests.serve.conftest import server, source

__all__ = ["server", "source"]
