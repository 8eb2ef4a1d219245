"""The nodes of a YAML text: mappings, lists and scalars that know their place. Nothing is merged or repaired."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import yaml
import yaml.constructor
import yaml.resolver

STRING_TAG: Final = "tag:yaml.org,2002:str"
NULL_TAG: Final = "tag:yaml.org,2002:null"

_RESOLVER: Final = yaml.resolver.Resolver()
# Numbers of YAML 1.2 that YAML 1.1 takes for text.
_NUMBER: Final = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d+)?|0o[0-7]+")


@dataclass(frozen=True, slots=True)
class YamlNode:
    """`line` and `column` count from 1; `start` and `end` are offsets into the text."""

    line: int
    column: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class YamlScalar(YamlNode):
    """`style` is the character that opens it: a quote, `|`, `>`, or empty for a plain scalar."""

    value: str
    style: str

    @property
    def is_text(self) -> bool:
        """Whether every reader of YAML takes it for text, not for a number, truth value, date or null."""
        return bool(self.style) or (self._tag == STRING_TAG and not _NUMBER.fullmatch(self.value))

    @property
    def is_null(self) -> bool:
        return not self.style and self._tag == NULL_TAG

    @property
    def plain(self) -> Any:
        """The value as YAML 1.1 types it: 32 for `0x20`, True for `yes`.

        Raises
        ------
        ValueError
            It looks like a value of a type, and there is none such, as in `2026-02-30`.
        """
        if self.style:
            return self.value
        node = yaml.ScalarNode(self._tag, self.value)
        try:
            return yaml.constructor.SafeConstructor().construct_object(node)
        except yaml.YAMLError as error:
            raise ValueError(str(error)) from error

    @property
    def _tag(self) -> str:
        tag: str = _RESOLVER.resolve(yaml.ScalarNode, self.value, (True, False))  # type: ignore[no-untyped-call]  # PyYAML's
        return tag


@dataclass(frozen=True, slots=True)
class YamlSequence(YamlNode):
    items: tuple[YamlNode, ...]


@dataclass(frozen=True, slots=True)
class YamlMapping(YamlNode):
    """`entries` keep the order of the file; a key that stands twice is there once."""

    entries: tuple[tuple[YamlScalar, YamlNode], ...]


@dataclass(frozen=True, slots=True)
class BrokenNode(YamlNode):
    """Stands where a problem has been reported already; readers pass over it."""


def is_broken(node: YamlNode | None) -> bool:
    """Whether there is nothing to read: absent, or reported already."""
    return node is None or isinstance(node, BrokenNode)
