"""Put known faults into a copy of the package, one at a time, and see whether the tests find each: `make mutants`."""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.catalog import MUTANTS
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "dist")
_ALL_PASSED, _SOME_FAILED = 0, 1
_TEST_TIMEOUT_S = 120


def problems(mutants: Iterable[Mutant], root: Path = ROOT) -> list[str]:
    """Return what in the list is not so any more: texts that don't occur once, files that are gone."""
    found = []
    for mutant in mutants:
        source = root / "scheduler" / mutant.path
        n_found = source.read_text().count(mutant.old) if source.is_file() else None
        if n_found is None:
            found.append(f"{mutant.bug}: there is no scheduler/{mutant.path}")
        elif n_found != 1:
            found.append(f"{mutant.bug}: scheduler/{mutant.path} has its old text {n_found} times: {mutant.old!r}")
        found += [
            f"{mutant.bug}: there is no tests/{one}" for one in mutant.tests if not (root / "tests" / one).exists()
        ]
    return found


class Copy:
    """A copy of the repository to put one mutant after the other into."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "vane"
        shutil.copytree(ROOT, self.root, ignore=_LEFT_OUT)
        self._environ = {**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, tests: Sequence[str]) -> tuple[int, str]:
        """Return pytest's exit code and the last lines of what it said."""
        options = ["-q", "-x", "--no-header", "-p", "no:cacheprovider", f"--timeout={_TEST_TIMEOUT_S}"]
        argv = [sys.executable, "-m", "pytest", *options, "-m", "not controlplane", *(f"tests/{one}" for one in tests)]
        done = subprocess.run(argv, cwd=self.root, env=self._environ, capture_output=True, text=True, check=False)
        return done.returncode, "\n".join((done.stdout + done.stderr).splitlines()[-12:])

    def is_found(self, mutant: Mutant) -> tuple[bool, str]:
        """Run the tests on a mutant; return whether one failed, and what pytest said last."""
        source = self.root / "scheduler" / mutant.path
        original = source.read_text()
        source.write_text(original.replace(mutant.old, mutant.new))
        try:
            code, said = self.run(mutant.tests)
        finally:
            source.write_text(original)
        return code == _SOME_FAILED, said


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at a time")
    parser.add_argument("--only", default="", help="those in whose fault or file this pattern is found")
    options = parser.parse_args(arguments)
    mutants = [one for one in MUTANTS if re.search(options.only, f"{one.bug} {one.path}")]
    wrong = problems(mutants)
    if wrong:
        _say(*wrong, f"{len(wrong)} mutants do not fit the code any more. Write them anew in tests/mutants/catalog.py")
        return 1
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vane-mutants-") as folder:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for i in range(options.workers):
            copies.put(Copy(Path(folder) / str(i)))
        missed = _try_all(mutants, copies, options.workers)
    for mutant, said in missed:
        _say("", f"NOT found: {mutant.bug} (scheduler/{mutant.path})", said)
    took_s = time.monotonic() - started_s
    _say("", f"{len(mutants) - len(missed)} of {len(mutants)} mutants found in {took_s:.0f} s")
    return 1 if missed else 0


def _try_all(mutants: Sequence[Mutant], copies: queue.SimpleQueue[Copy], n_workers: int) -> list[tuple[Mutant, str]]:
    """Return the mutants that no test finds; where the tests fail without any, that is all that is said."""

    def attempt(mutant: Mutant) -> tuple[bool, str]:
        copy = copies.get()
        try:
            is_found, said = copy.is_found(mutant)
        finally:
            copies.put(copy)
        _say(f"{'found' if is_found else 'NOT found':9} {mutant.bug}")
        return is_found, said

    copy = copies.get()
    code, said = copy.run(sorted({one for mutant in mutants for one in mutant.tests}))
    copies.put(copy)
    if code != _ALL_PASSED:
        raise SystemExit(f"The tests fail without any mutant:\n{said}")
    with ThreadPoolExecutor(n_workers) as pool:
        outcomes = list(pool.map(attempt, mutants))
    return [(mutant, said) for mutant, (is_found, said) in zip(mutants, outcomes, strict=True) if not is_found]


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
