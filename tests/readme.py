"""What the README tells a reader to type, and the files it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]
README = CHECKOUT / "README.md"


class Block(NamedTuple):
    """A fenced block: the section it stands in, its language, its text."""

    section: str
    language: str
    text: str


def blocks(language: str, page: Path = README) -> list[Block]:
    """Return the blocks of one language, in order."""
    found, section = [], ""
    for heading, info, text in re.findall(r"^#+ ([^\n]+)$|^```(\w+)\n(.*?)^```$", page.read_text(), re.M | re.S):
        section = heading or section
        if info == language:
            found.append(Block(section, info, text))
    return found


def commands(program: str) -> list[str]:
    """Return the commands of one program in the README's shell blocks, in order."""
    lines = [line for block in blocks("sh") for line in block.text.splitlines()]
    return [line for line in lines if line.split()[:1] == [program]]
