from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.command import RULES, Cli


def test_check_reports_rule_files(vane: Cli, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(RULES)
    assert vane("check", str(tmp_path)) == 0
    assert "cool" in vane.out
    (tmp_path / "bad.yaml").write_text("apiVersion: vane.dev/v1\nkind: Rules\nsignal: {}\n")
    assert vane("check", str(tmp_path)) == 1
    assert f"{tmp_path}/bad.yaml:3:1: " in vane.out


def test_check_with_queries_reads_the_settings_of_run(vane: Cli) -> None:
    assert vane("check", "--prometheus", "ftp://p") == 1
    assert vane.err.startswith("--prometheus: ")
    assert vane("check", "--prometheus-token-file", "/a/file") == 1
    assert vane.err == "vane check: no Prometheus is configured. Write --prometheus URL\n"
    assert vane("check", "--secure-port", "1") == 1
    assert "unrecognized arguments: --secure-port" in vane.err


def test_check_starts_without_the_libraries_of_run() -> None:
    script = """
import io, sys
from scheduler.cli.main import main
main(["check", "/nonexistent"], {}, io.StringIO(), io.StringIO())
heavy = {"pydantic", "kubernetes", "aiohttp", "requests", "apscheduler"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True)
