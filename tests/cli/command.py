from __future__ import annotations

import io

from scheduler.cli.main import main
from scheduler.settings.settings import Settings

RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  cpu: {expr: node_load1, by: node, range: [0, 1]}
rules:
  - {name: cool, signal: cpu, score: {best: 0, worst: 1}}
"""


class Cli:
    """The command with everything around it in hand."""

    def __init__(self) -> None:
        self.out = ""
        self.err = ""
        self.ran: list[Settings] = []

    def __call__(self, *argv: str, environ: dict[str, str] | None = None, run_code: int = 0, stdin: bytes = b"") -> int:
        out, err = io.StringIO(), io.StringIO()

        def run(settings: Settings) -> int:
            self.ran.append(settings)
            return run_code

        code = main(argv, environ or {}, out, err, run, lambda n_bytes: stdin[:n_bytes])
        self.out, self.err = out.getvalue(), err.getvalue()
        return code
