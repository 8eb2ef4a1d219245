"""The corpus: expressions, and what Prometheus' parser says of each. Made by `python -m tests.promql`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.promql.generator import expressions
from tests.promql.judging import Verdict
from tests.promql.sources import mixins, shipped, upstream

DATA: Final = Path(__file__).parent / "data" / "verdicts.jsonl.gz"
GENERATED_SEED: Final = 20_261_123
N_GENERATED: Final = 2_000


def sources() -> Mapping[str, Iterable[str]]:
    """Return all expressions by where they come from; Prometheus' own module must be there."""
    return {
        "prometheus": upstream(),
        "mixins": mixins(),
        "vane": shipped(),
        "written": Path(DATA.parent / "written.txt").read_text().splitlines(),
        "generated": expressions(GENERATED_SEED, N_GENERATED),
    }


def load() -> dict[str, list[tuple[str, Verdict]]]:
    """Return each expression with its verdict, by source."""
    found: dict[str, list[tuple[str, Verdict]]] = {}
    with gzip.open(DATA, "rt") as lines:
        for line in lines:
            fields = json.loads(line)
            source, expr = fields.pop("source"), fields.pop("expr")
            verdict = Verdict(**{**fields, "needs": tuple(fields.get("needs", ()))})
            found.setdefault(source, []).append((expr, verdict))
    return found


def write(verdicts: Mapping[str, Iterable[tuple[str, Verdict]]]) -> None:
    """Write them so that equal content makes equal bytes."""
    lines = []
    for source, judged in verdicts.items():
        for expr, verdict in judged:
            said = {name: value for name, value in vars(verdict).items() if value or name == "is_valid"}
            lines.append(json.dumps({"source": source, "expr": expr, **said}, sort_keys=True) + "\n")
    with DATA.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        packed.write("".join(lines).encode())
