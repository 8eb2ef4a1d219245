from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.third_party import ThirdParty


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ThirdParty:
    return ThirdParty(tmp_path, monkeypatch)
