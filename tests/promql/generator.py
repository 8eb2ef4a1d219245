"""Makes expressions: most of them PromQL, many with something changed, so that about half are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

from scheduler.promql.functions import AGGREGATIONS, FUNCTIONS
from scheduler.promql.nodes import Type
from tests.promql.patterns import pattern

_BINARY: Final = "+ - * / % ^ == != < <= > >= and or unless atan2 </ >/".split()
_WORDS: Final = (
    "sum avg by without on ignoring group_left group_right bool offset start end step range max_of min_of "
    "smoothed anchored fill fill_left fill_right and or unless atan2 inf nan Inf NaN topk count_values"
).split()
_SIGNS: Final = "( ) [ ] { } , : @ = == != =~ !~ + - * / % ^ < > <= >= </ >/ \" ' ` # \\ ! ~ ; $ _ . é \ufffd".split()
_METRICS: Final = ("up", "foo", "node:cpu:rate5m", "http_requests_total", "sum", "by", "offset", "smoothed", "anchored")
_USUAL_METRICS: Final = 4
_LABELS: Final = (
    "job",
    "instance",
    "le",
    "by",
    '"a.b"',
    "on",
    "without",
    "'é'",
    "a:b",
    "__name__",
    '""',
    "inf",
    "bool",
)
_USUAL: Final = 9
"""So many numbers and durations at the beginning are right."""
_NUMBERS: Final = (
    *(
        "1",
        "2.5",
        ".5",
        "1.",
        "1e3",
        "1e-3",
        "1E+3",
        "1_000",
        "0x1F",
        "0",
        "1_0.5",
        "0X_1f",
        "0x",
        "0b1",
        "017",
        "08",
        "1e",
        "1e400",
    ),
    *(
        "0xaee",
        "0xee5",
        "0x1.5",
        "1__0",
        "1_",
        "_1",
        "0.5.5",
        "1e5e5",
        "Inf",
        "NaN",
        "+inf",
        "1e5m",
        "9223372036854775808",
        "1._5",
    ),
)
_DURATIONS: Final = (
    *(
        "5m",
        "1h30m",
        "1y2w",
        "100ms",
        "5s5ms",
        "5",
        "1.5",
        "1e2",
        "292y",
        "1m1h",
        "0s",
        "0",
        "300y",
        "1h1h",
        "5ms5s",
        "1d1y",
        "5mm",
    ),
    *("5hs", "1.5m", "1_0m", "0x5m", "1y1y", "9999999999999999999s", "1e-20", "292y", "293y", "1w1d1h1m1s1ms", "05m"),
)


class Maker:
    def __init__(self, random: Random) -> None:
        self._random = random
        self.is_odd = False
        """Whether also what is rare or wrong is made."""

    def _one(self, options: Sequence[str], n_usual: int = 0) -> str:
        """Choose one; unless odd, one of the first so many."""
        return self._random.choice(options if self.is_odd or not n_usual else options[:n_usual])

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def expression(self, depth: int, wanted: Type = Type.VECTOR) -> str:
        if self._chance(0.03 if self.is_odd else 0.003):
            wanted = self._random.choice(list(Type))
        makers: dict[Type, Callable[[int], str]] = {
            Type.VECTOR: self._vector,
            Type.SCALAR: self._scalar,
            Type.MATRIX: self._matrix,
            Type.STRING: self._string,
        }
        made = makers[wanted](depth)
        if self._chance(0.08):
            return f"({made})"
        return f"{self._one('+-')}{made}" if self._chance(0.05) else made

    def _vector(self, depth: int) -> str:
        if depth <= 0 or self._chance(0.25):
            return self._selector() + self._moves()
        makers: list[Callable[[int], str]] = [self._binary, self._aggregation, self._call, self._call]
        return self._random.choice(makers)(depth - 1)

    def _scalar(self, depth: int) -> str:
        if depth <= 0 or self._chance(0.6):
            return self._one(_NUMBERS, _USUAL)
        if self._chance(0.3):
            return self._binary(depth - 1, Type.SCALAR)
        return self._one(
            ("time()", "pi()", "step()", "range()", "start()", "end()", f"scalar({self._vector(depth - 1)})")
        )

    def _matrix(self, depth: int) -> str:
        if depth > 0 and self._chance(0.3):
            step = self._duration() if self._chance(0.6) else ""
            return f"{self.expression(depth - 1)}[{self._duration()}:{step}]{self._moves()}"
        mode = self._one(("", "", "", "", " smoothed", " anchored"))
        inner = f"{self._blank()}{self._duration()}{self._blank()}"
        return f"{self._selector()}{self._moves(0.03)}[{inner}]{mode}{self._moves()}"

    def _string(self, _: int = 0) -> str:
        usual = ("a", "x.*y", "a b", "é", "\\n", "\\\\d", "\\x41", "\\101", "\\u00e9")
        inner = self._one((*usual, "", "\\d", "\\xff", "\\777"), len(usual))
        inner += self._one(("", "", "b", "#", "\\U0001F600", "\\'", '\\"', "\n", "\\ud800", "`", "\\8"), 5)
        quote = self._one(('"', '"', "'", "`"))
        return f"{quote}{inner}{quote}"

    def _binary(self, depth: int, wanted: Type = Type.VECTOR) -> str:
        op = self._one(_BINARY)
        sides = [wanted, wanted]
        if self._chance(0.3):
            sides[self._random.randrange(2)] = Type.SCALAR
        bool_ = " bool" if self._chance(0.35 if op in ("==", "<", ">=") else 0.04 if self.is_odd else 0) else ""
        left, right = (self.expression(depth, side) for side in sides)
        return f"{left}{self._space()}{op}{bool_}{self._matching()} {right}"

    def _matching(self) -> str:
        made = ""
        if self._chance(0.2):
            made += f" {self._one(('on', 'ignoring', 'ON'))}{self._space()}{self._labels()}"
            if self._chance(0.3):
                made += f" {self._one(('group_left', 'group_right'))}{self._one(('', ' ' + self._labels()))}"
        if self._chance(0.06):
            sides = self._one(
                ("fill", "fill_left", "fill_right", "fill_left fill_right", "fill_right fill_left", "fill fill"), 5
            )
            made += "".join(f" {side}({self._one(('0', '-1', '5m', '+2', 'x', ''), 4)})" for side in sides.split())
        return made

    def _labels(self) -> str:
        labels = ",".join(self._one(_LABELS, 5) for _ in range(self._random.randrange(4)))
        return f"({labels}{',' if labels and self._chance(0.1) else ''})"

    def _aggregation(self, depth: int) -> str:
        op = self._one(tuple(AGGREGATIONS))
        kind = AGGREGATIONS[op]
        args = self.expression(depth)
        if kind is not None and not (self.is_odd and self._chance(0.06)):
            args = f"{self.expression(1, kind)}, {args}"
        modifier = f" {self._one(('by', 'without', 'BY'))} {self._labels()} " if self._chance(0.5) else ""
        return f"{op}{modifier}({args})" if self._chance(0.6) else f"{op}({args}){modifier}"

    def _call(self, depth: int) -> str:
        function = self._random.choice(list(FUNCTIONS.values()))
        kinds = list(function.arguments)
        if function.variadic and self._chance(0.5):
            kinds = kinds[:-1]
        elif function.variadic:
            kinds += [kinds[-1]] * self._random.randrange(3) if kinds else []
        if self.is_odd and self._chance(0.05):
            kinds = kinds[1:] if self._chance(0.5) else [*kinds, Type.SCALAR]
        return f"{function.name}({', '.join(self.expression(depth, kind) for kind in kinds)})"

    def _selector(self) -> str:
        name = self._one((*_METRICS, "Sum", "", self._one(_WORDS), "x{}", '{"quoted.name"}'), _USUAL_METRICS)
        if name and self._chance(0.5):
            return name
        if not self.is_odd and self._chance(0.1):
            return f'{{"quoted.name",job="a",{self._matcher()}}}'
        matchers = [self._matcher() for _ in range(self._random.randrange(4))]
        return f"{name}{{{','.join(matchers)}{',' if matchers and self._chance(0.1) else ''}}}"

    def _matcher(self) -> str:
        label = self._one(("job", "a", "le", "sum", '"a.b"', "'q'", '"up"', "__name__", "é", "a:b"), 6)
        operator = self._one(("=", "=", "!=", "=~", "=~", "!~", "=="), 6)
        if label.startswith('"') and self._chance(0.3):
            return label
        if operator in ("=~", "!~"):
            return f"{label}{operator}{_quoted(pattern(self._random, is_odd=self.is_odd), self._random)}"
        return f"{label}{self._blank()}{operator}{self._blank()}{self._string()}"

    def _moves(self, share: float = 0.15) -> str:
        made = ""
        share = share if self.is_odd else share / 2
        while self._chance(share):
            ways: list[Callable[[], str]] = [
                lambda: f" offset {self._duration(0.3)}",
                lambda: f" offset {self._one(('-', '+', '- -', '-+'))}{self._duration(0.3)}",
                lambda: f" @ {self._one(('', '-', '+'))}{self._one(_NUMBERS, _USUAL)}",
                lambda: f" @ {self._one(('start()', 'end()', 'start', 'step()', 'now()'), 2)}",
                lambda: f" {self._one(('smoothed', 'anchored', 'SMOOTHED'))}",
            ]
            made += self._random.choice(ways)()
        return made

    def _duration(self, share: float = 0.12) -> str:
        if not self._chance(share):
            return self._one(("5m", "1h", self._one(_DURATIONS, _USUAL)))
        one, other = self._duration(0.2), self._duration(0.2)
        ways: list[Callable[[], str]] = [
            lambda: f"{one}{self._space()}{self._one('+-*/%^')}{self._space()}{other}",
            lambda: f"({one})",
            lambda: f"{self._one('+-')}{one}",
            lambda: self._one(("step()", "range()", "STEP()", "step ( )", "step(1)", "foo()"), 4),
            lambda: f"{self._one(('max_of', 'min_of', 'max'), 2)}({one},{other})",
            lambda: f"({one} {self._one('+-*/%^')} {other})",
        ]
        return self._random.choice(ways)()

    def _blank(self) -> str:
        return self._one(("", "", "", " ", "\n", "# c\n", "\t"))

    def _space(self) -> str:
        return self._one(("", " ", " ", " ", "  ", " # c\n "))

    def changed(self, expr: str) -> str:
        """Change a few characters or words of an expression."""
        for _ in range(self._random.choice((1, 1, 1, 2, 3))):
            start = self._random.randrange(len(expr) + 1)
            end = min(len(expr), start + self._random.choice((0, 0, 1, 1, 2, 5)))
            put = self._one(
                ("", "", " ", self._one(_SIGNS), self._one(_WORDS), self._one(_NUMBERS), self._one(_DURATIONS))
            )
            expr = expr[:start] + put + expr[end:]
        return expr


def _quoted(text: str, random: Random) -> str:
    if "`" not in text and random.random() < 0.3:
        return f"`{text}`"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def expressions(seed: int, number: int) -> Iterator[str]:
    """Yield so many distinct expressions; the same for a seed, however many are asked for."""
    random = Random(seed)
    maker, seen = Maker(random), set[str]()
    while len(seen) < number:
        maker.is_odd = random.random() < 0.4
        expr = maker.expression(random.randrange(4), random.choice((*[Type.VECTOR] * 3, *Type)))
        if maker.is_odd and random.random() < 0.5:
            expr = maker.changed(expr)
        if expr not in seen:
            seen.add(expr)
            yield expr
