from __future__ import annotations

from typing import Any

import pytest

from scheduler.strict_yaml.composer import compose
from scheduler.strict_yaml.nodes import BrokenNode, YamlScalar, is_broken
from scheduler.strict_yaml.report import Report


def scalar(text: str) -> YamlScalar:
    root = compose(text.encode(), Report("a.yaml"), "Rules")
    assert isinstance(root, YamlScalar)
    return root


@pytest.mark.parametrize("text", ["web", "'5'", '"true"', "a b", "1.2.3", "|\n 5", "0x"])
def test_text_is_what_every_reader_takes_for_text(text: str) -> None:
    assert scalar(text).is_text
    assert isinstance(scalar(text).plain, str)


@pytest.mark.parametrize(
    ("text", "plain"),
    [("5", 5), ("0x20", 32), ("1.5", 1.5), ("true", True), ("yes", True), ("off", False), ("1:30", 90), ("-0", 0)],
)
def test_what_is_no_text_has_a_type(text: str, plain: Any) -> None:
    assert not scalar(text).is_text
    assert scalar(text).plain == plain
    assert type(scalar(text).plain) is type(plain)


@pytest.mark.parametrize("text", ["1e3", "0o17", "1_000"])
def test_a_number_of_one_version_of_yaml_alone_is_no_text(text: str) -> None:
    assert not scalar(text).is_text


@pytest.mark.parametrize("text", ["~", "null", "Null"])
def test_null_is_known_in_all_its_spellings(text: str) -> None:
    assert scalar(text).is_null
    assert scalar(text).plain is None
    assert not scalar(f"'{text}'").is_null


@pytest.mark.parametrize("text", ["2026-02-30", "=", "1" * 5000])
def test_what_looks_like_a_value_and_is_none_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        _ = scalar(text).plain


def test_nothing_can_be_read_of_what_is_absent_or_broken() -> None:
    assert is_broken(None)
    assert is_broken(BrokenNode(1, 1, 0, 0))
    assert not is_broken(scalar("a"))
