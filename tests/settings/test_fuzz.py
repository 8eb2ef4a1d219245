"""Whatever a configuration file holds, a load ends with Settings or with ConfigError, and all problems have places."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.errors import ConfigError
from scheduler.settings.load import load
from scheduler.settings.settings import Settings

RICH = """apiVersion: vane.dev/v1
kind: VaneConfiguration
schedulerName: gpu
rules: [a, /b]
clusters: {edge: /e}
prometheus:
  url: https://p:9090
  headers: {X-Scope-OrgID: a}
  maxSeries: 7
  servers: [{name: far, url: https://f, certFile: c, keyFile: k}]
serving: {securePort: 1, bindAddress: 127.0.0.1, unauthenticatedMetrics: true}
logging: {verbosity: 3, format: json}
scheduler:
  parallelism: 16
  podMaxBackoffSeconds: 20
  leaderElection: {leaderElect: true, leaseDuration: 30s, resourceName: vane}
  clientConnection: {qps: 50, burst: 100}
  profiles:
    - schedulerName: gpu
      plugins: {score: {enabled: [{name: ImageLocality, weight: 3}], disabled: [{name: "*"}]}}
      pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]
"""
VALUE = re.compile(r"(?<=: )[^\s,{}\[\]]+|(?<=\[)[^\s,{}\[\]]+")
NAME = re.compile(r"[A-Za-z]+(?=: )")
WORDS = (
    *"~ true yes 1 -1 4.0 1.5 0x20 .inf .nan '' '1' a * 101 = << [] {} [1] [~] 2026-01-01 2026-02-30 10s *x".split(),
    *("", "a b", "{a: 1}", "{a: 1, a: 2}", "{[]: 1}", "&x 1", "!!str 1", "name", "url", "scheduler", '"', "- "),
    *("9" * 30, "9" * 5000, "x" * 300, "[" * 30, "\n- 1", "\x00"),
)


@contextmanager
def file_of(text: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vane.yaml"
        path.write_text(text)
        yield path


def swapped(text: str, pattern: re.Pattern[str], number: int, word: str) -> str:
    places = list(pattern.finditer(text))
    place = places[number % len(places)]
    return text[: place.start()] + word + text[place.end() :]


def test_the_rich_file_is_right() -> None:
    with file_of(RICH) as path:
        assert load({"config": str(path)}, {}).scheduler_name == "gpu"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from((VALUE, NAME)), st.integers(0, 99), st.sampled_from(WORDS)), min_size=1, max_size=3
    )
)
def test_a_load_ends_with_settings_or_with_places(swaps: list[tuple[re.Pattern[str], int, str]]) -> None:
    text = RICH
    for pattern, number, word in swaps:
        text = swapped(text, pattern, number, word)
    with file_of(text) as path:
        try:
            assert isinstance(load({"config": str(path)}, {}), Settings)
        except ConfigError as error:
            lines = str(error).splitlines()
            problems = lines[1:] if len(lines) > 1 else lines
            place = re.compile(re.escape(str(path)) + r":(\d+):(\d+): .")
            for problem in problems:
                found = place.match(problem)
                assert found, problem
                assert int(found[1]) <= text.count("\n") + 1, problem
