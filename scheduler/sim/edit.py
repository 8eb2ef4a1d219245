"""The edit of a rule file that the tour shows."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Final

BEFORE: Final = "filter: {max: 80%, clear: 70%, valve: 50%}"
AFTER: Final = "filter: {max: 65%, clear: 60%, valve: 50%}"


def edit_rules(file: Path) -> list[str]:
    """Lower the limit of the first rule, as an operator would, and return the diff.

    Raises
    ------
    ValueError
        If the file does not have that line exactly once.
    """
    before = file.read_text()
    if before.count(BEFORE) != 1:
        raise ValueError(f"{file}: {before.count(BEFORE)} lines with {BEFORE!r}")
    after = before.replace(BEFORE, AFTER)
    # Written beside it and moved over it, so that nobody reads half a file.
    new = file.with_suffix(".new")
    new.write_text(after)
    os.replace(new, file)
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), file.name, file.name, n=2, lineterm="")
    return list(diff)
