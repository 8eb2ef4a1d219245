"""Where expressions come from: the tests of Prometheus itself, the mixins, and what Vane ships."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import yaml

from scheduler.promql.literals import read_string
from tests.controlplane.build import PROMETHEUS_MODULE

ROOT: Final = Path(__file__).resolve().parents[2]
_LITERAL: Final = r'("(?:[^"\\\n]|\\.)*"|`[^`]*`)'
_GO_QUERY: Final = re.compile(rf"\b(?:input|in|query|Query|expr|Expr|expected|out):\s*{_LITERAL}")
_EVALUATED: Final = re.compile(
    r"^eval(?:_\w+)? (?:instant at \S+|range from \S+ to \S+ step \S+)(?: with_timestamps)? +(.+?)\s*$", re.MULTILINE
)
_JSONNET_EXPR: Final = re.compile(r"\b(?:expr|query): (?:\|\|\|\n(.*?)\n *\|\|\||'((?:[^'\\]|\\.)*)')", re.DOTALL)
_FORMAT: Final = re.compile(r"%\((\w+)\)[.\d]*([sdgf])")
_GO_FILES: Final = ("promql/parser/*_test.go", "promql/*_test.go", "rules/*_test.go", "web/api/v1/*_test.go")


def upstream(go: str = "go") -> Iterator[str]:
    """Yield the expressions in the tests of the Prometheus that is built, and what stands there beside them."""
    command = [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "github.com/prometheus/prometheus"]
    done = subprocess.run(command, cwd=PROMETHEUS_MODULE, capture_output=True, text=True, check=True)
    module = Path(done.stdout.strip())
    for pattern in _GO_FILES:
        for path in sorted(module.glob(pattern)):
            for literal in _GO_QUERY.findall(path.read_text()):
                expr = read_string(literal)
                if expr is not None and is_text(expr):
                    yield expr
    for path in sorted((module / "promql" / "promqltest" / "testdata").glob("*.test")):
        yield from _EVALUATED.findall(path.read_text())


def mixins(go: str = "go") -> Iterator[str]:
    """Yield the expressions of the mixins of Prometheus, Alertmanager and node_exporter, those that are there."""
    done = subprocess.run([go, "env", "GOMODCACHE"], capture_output=True, text=True, check=True)
    for path in sorted(Path(done.stdout.strip(), "github.com", "prometheus").glob("*/doc*/*mixin/**/*.libsonnet")):
        for block, line in _JSONNET_EXPR.findall(path.read_text()):
            yield _FORMAT.sub(_filled, block or line.replace("\\'", "'")).replace("%%", "%")


def _filled(part: re.Match[str]) -> str:
    if part[2] != "s":
        return "5"
    return 'job="node"' if "elector" in part[1] else "name"


def is_text(expr: str) -> bool:
    """Whether it is UTF-8, as what stands in a file is."""
    return not any("\ud800" <= char <= "\udfff" for char in expr)


def shipped() -> Iterator[str]:
    """Yield the expressions of our rules, alerts and tests."""
    for path in sorted([*ROOT.glob("rules/**/*.yaml"), *ROOT.glob("deploy/**/*.yaml"), *ROOT.glob("tests/**/*.yaml")]):
        yield from expressions_in(path.read_text())


def expressions_in(text: str) -> Iterator[str]:
    """Yield what stands under `expr` or `lag` in the documents of a YAML file."""
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        return
    waiting = documents[::-1]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield from (str(item[key]) for key in ("expr", "lag") if isinstance(item.get(key), (str, int, float)))
            waiting.extend(list(item.values())[::-1])
        elif isinstance(item, list):
            waiting.extend(item[::-1])
