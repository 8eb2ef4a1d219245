"""Makes regular expressions, valid ones and others."""

from __future__ import annotations

from random import Random
from typing import Final

_USUAL: Final = (
    "a",
    "b",
    "foo",
    ".",
    "-",
    "é",
    "\\.",
    "\\d",
    "\\w+",
    "[a-z]",
    "^",
    "$",
    "\\b",
    "(?i)",
    "[[:alpha:]]",
    "\\p{Greek}",
    "a-b",
)
_ATOMS: Final = (
    *(
        "a",
        "b",
        "foo",
        ".",
        "-",
        "/",
        "é",
        " ",
        "\\.",
        "\\d",
        "\\w+",
        "\\s",
        "\\b",
        "\\B",
        "\\A",
        "\\z",
        "\\Z",
        "\\C",
        "\\pL",
    ),
    *(
        "\\p{Greek}",
        "\\p{^Han}",
        "\\P{Lu}",
        "\\p{Nope}",
        "\\pé",
        "\\x41",
        "\\x{1F600}",
        "\\x{110000}",
        "\\x4",
        "\\x{}",
        "\\1",
    ),
    *(
        "\\12",
        "\\0",
        "\\07",
        "\\8",
        "\\q",
        "\\_",
        "\\é",
        "\\-",
        "\\Q.*\\E",
        "\\Qa",
        "^",
        "$",
        "(?i)",
        "(?-)",
        "(?s-m:a)",
        "(?ii)",
    ),
    *(
        "[abc]",
        "[^a]",
        "[]a]",
        "[^]a]",
        "[a-z]",
        "[z-a]",
        "[a-]",
        "[-a]",
        "[a-\\d]",
        "[\\d-z]",
        "[[:alpha:]]",
        "[[:^word:]]",
    ),
    *(
        "[[:nope:]]",
        "[[:alpha:]",
        "[\\pL]",
        "[\\b]",
        "[a",
        "[]",
        "[\\x41-\\x{43}]",
        "[[a]]",
        "{",
        "}",
        "{a}",
        "{,3}",
        "{01}",
        "]",
    ),
)
_REPEATS: Final = (
    *(
        "*",
        "+",
        "?",
        "*?",
        "+?",
        "??",
        "**",
        "*+",
        "{2}",
        "{2,}",
        "{2,5}",
        "{5,2}",
        "{0}",
        "{0,}",
        "{0,0}",
        "{2}?",
        "{2}{3}",
    ),
    *("{1000}", "{1001}", "{500}", "{0,1000}", "{1,1001}", "{1000000000}", "{,2}", "{02}"),
)
_GROUPS: Final = (
    "(",
    "(",
    "(?:",
    "(?i:",
    "(?P<n>",
    "(?<n>",
    "(?P<>",
    "(?P<é>",
    "(?=",
    "(?!",
    "(?P=n)",
    "(?#",
    "(?mi-s:",
    "(?'n'",
)


def pattern(random: Random, depth: int = 2, *, is_odd: bool = True) -> str:
    made: list[str] = []
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        atom = random.choice(_ATOMS if is_odd and random.random() < 0.4 else _USUAL)
        if depth and random.random() < 0.3:
            opener = random.choice(_GROUPS if is_odd and random.random() < 0.4 else ("(", "(?:"))
            closer = "" if is_odd and random.random() < 0.03 else ")"
            atom = f"{opener}{pattern(random, depth - 1, is_odd=is_odd)}{closer}"
        if atom != "(?i)" and random.random() < 0.3:
            atom += random.choice(_REPEATS if is_odd and random.random() < 0.3 else ("*", "?", "{2}", "{2,5}", "*?"))
        made.append(atom)
        if random.random() < 0.2:
            made.append("|")
    return "".join(made)
