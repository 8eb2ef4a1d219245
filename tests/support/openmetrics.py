"""Samples with timestamps from OpenMetrics text, as `promtool tsdb create-blocks-from openmetrics` reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from scheduler.evaluator.store import SeriesStore
from scheduler.evaluator.values import NAME

_STRING: Final = r'"(?:\\.|[^"\\])*"'
_LABEL: Final = re.compile(rf"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*({_STRING})\s*(,|$)")
_SAMPLE: Final = re.compile(
    rf"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{{((?:{_STRING}|[^\"}}])*)\}})?[ ]+(\S+)(?:[ ]+([^\s#]\S*))?(?:[ ]+#.*)?"
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "\\": "\\", '"': '"'}


def parse_openmetrics(text: str) -> Iterator[tuple[dict[str, str], int, float]]:
    """Yield labels, Unix milliseconds and value of each sample; exemplars, types and help are passed over.

    Raises
    ------
    ValueError
        With the line, what is wrong with it and what to write.
    """
    lines = text.split("\n")
    has_end = False
    for number, line in enumerate(lines, start=1):
        if has_end and line:
            raise ValueError(f"line {number}: text after # EOF. Remove it")
        if line.startswith("#"):
            has_end = line == "# EOF"
        elif line:
            yield _sample(line, number)
    if not has_end:
        raise ValueError(f"line {len(lines)}: the text ends without # EOF. Write it as the last line")


def load_openmetrics(store: SeriesStore, text: str) -> int:
    """Add the samples of an OpenMetrics text to a store and return how many they are; each must have a timestamp.

    Raises
    ------
    ValueError
        With the number of the line that is none, or for samples as `SeriesStore.append`.
    """
    samples = sorted(parse_openmetrics(text), key=lambda sample: sample[1])
    for labels, at_ms, value in samples:
        store.append(labels, at_ms / 1000, value)
    return len(samples)


def _sample(line: str, number: int) -> tuple[dict[str, str], int, float]:
    match = _SAMPLE.fullmatch(line)
    if match is None:
        raise ValueError(f'line {number}: no sample, got {line!r}. Write name{{label="value"}} 1.5 1700000000')
    name, labels, value, time = match.groups()
    if time is None:
        raise ValueError(f"line {number}: no timestamp, got {line!r}. Write Unix seconds after the value")
    try:
        # Cut, not rounded, as promtool does.
        return {**_labels(labels or "", number), NAME: name}, int(float(time) * 1000.0), float(value)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"line {number}: {error}") from error


def _labels(text: str, number: int) -> dict[str, str]:
    found: dict[str, str] = {}
    place = 0
    while place < len(text) and text[place:].strip():
        match = _LABEL.match(text, place)
        if match is None:
            raise ValueError(f'no label in {text[place:]!r}. Write label="value"')
        found[match[1]] = _ESCAPED.sub(lambda escaped: _ESCAPES.get(escaped[1], escaped[0]), match[2][1:-1])
        place = match.end()
    return found
