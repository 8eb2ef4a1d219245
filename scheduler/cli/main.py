"""The `vane` command: reads the command line, calls what does the work, turns errors into exit codes.

Exit code 0: a normal end, `--help`, `version`. 1: everything else, wrong usage too, as kube-scheduler.
What a command needs is imported inside it, so that `vane check` does not wait for libraries of `vane run`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO

from scheduler import __version__
from scheduler.errors import ConfigError, VaneError

if TYPE_CHECKING:
    from scheduler.framework.profile import Profile
    from scheduler.settings.options import Option
    from scheduler.settings.settings import Settings

OK: Final = 0
FAILED: Final = 1

NOT_BUILT: Final = ("explain", "whatif", "simulate", "backtest", "doctor")
DEFAULT_RULES: Final = "rules"
_MAX_PORT: Final = 65_535
_MAX_NODES: Final = 5_000
_INTERRUPTED: Final = 130
_SHORTEST_INTERVAL_S: Final = 0.5

_USAGE: Final = f"""\
Vane places Pods by live business signals, written as PromQL.

usage: vane COMMAND [FLAGS]

  vane run              run the scheduler
  vane demo             see it at work: a simulated cluster, nothing to install
  vane check [PATH...]  check rule files
  vane rules test       run tests of rules
  vane rules export     write signals as recording rules of a Prometheus
  vane top [NAME]       show what signals say now, by node
  vane version          print the version

`vane COMMAND --help` lists the flags of a command.
Not built yet: {", ".join(NOT_BUILT)}.
"""


class _UsageError(Exception):
    """A command that cannot go on as it was given; the message is what the user reads."""


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """All that a command touches besides its arguments."""

    environ: Mapping[str, str]
    out: TextIO
    err: TextIO
    run: Callable[[Settings], int]


def main(
    argv: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
    run: Callable[[Settings], int] | None = None,
) -> int:
    """Run one command and return its exit code; what is not given is that of the process."""
    words = list(sys.argv[1:] if argv is None else argv)
    around = _Surroundings(
        os.environ if environ is None else environ, out or sys.stdout, err or sys.stderr, run or _run_scheduler
    )
    try:
        return _dispatch(words, around)
    except (_UsageError, ConfigError) as error:
        print(error, file=around.err)
        return FAILED


def _dispatch(words: Sequence[str], around: _Surroundings) -> int:
    if not words:
        raise _UsageError(_USAGE.rstrip())
    command, flags = words[0], [_dashed(word) for word in words[1:]]
    if command in ("-h", "--help", "help"):
        print(_USAGE, end="", file=around.out)
        return OK
    if command in ("version", "--version"):
        return _version(flags, around)
    commands = {"run": _run, "check": _check, "rules": _rules, "demo": _demo, "top": _top}
    if command in commands:
        return commands[command](flags, around)
    if command in NOT_BUILT:
        raise _UsageError(f"vane {command}: not built yet")
    known = f"{', '.join(commands)} or version"
    raise _UsageError(f"vane: no such command, got {command!r}. Write {known}; see vane --help")


def _run(words: Sequence[str], around: _Surroundings) -> int:
    parser = _Parser(
        prog="vane run",
        usage="vane run [FLAGS]",
        description="Run the scheduler. Flags win over the environment, that over the --config file.",
    )
    _add_options(parser, lambda _: True)
    if _is_help(words):
        return _help(parser, around)
    return around.run(_settings(vars(parser.parse_args(words)), around))


def _settings(given: Mapping[str, Any], around: _Surroundings) -> Settings:
    """Return the settings that parsed flags, environment and file make."""
    from scheduler.settings.load import load

    flags = {name.replace("_", "-"): value for name, value in given.items() if value is not None}
    return load(flags, around.environ)


def _add_options(parser: _Parser, is_wanted: Callable[[Option], bool]) -> None:
    """Add --config and the settings that are wanted."""
    from scheduler.settings.load import CONFIG_FLAG, CONFIG_VARIABLE, description_of
    from scheduler.settings.options import OPTIONS, Take

    parser.add_argument(
        f"--{CONFIG_FLAG}",
        metavar="FILE",
        help="Configuration file: kind VaneConfiguration of vane.dev/v1, or a KubeSchedulerConfiguration of"
        f" kubescheduler.config.k8s.io/v1 as it is ({CONFIG_VARIABLE})",
    )
    for option in OPTIONS:
        if not is_wanted(option):
            continue
        names = [f"--{option.flag}"]
        if option.flag == "verbosity":
            names = ["-v", "--v", *names]
        text, default = description_of(option)
        notes = [option.variable, *(["repeatable"] if option.repeatable else [])]
        if default is not None and default is not False and default != ():
            notes.append(f"default {'true' if default is True else default}")
        described = f"{text} ({', '.join(notes)})".replace("%", "%%")
        dest = option.flag.replace("-", "_")
        if option.take is Take.SWITCH:
            parser.add_argument(*names, dest=dest, nargs="?", const="true", metavar="true|false", help=described)
        else:
            action = "append" if option.repeatable else "store"
            parser.add_argument(*names, dest=dest, action=action, metavar=option.metavar, help=described)


def _run_scheduler(settings: Settings) -> int:
    # Columns are short: the threads that numpy would start cost more than they bring. Read when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from scheduler.app import run

    return run(settings)


def _check(words: Sequence[str], around: _Surroundings) -> int:
    parser = _Parser(
        prog="vane check",
        usage="vane check [PATH...] [--prometheus URL] [FLAGS]",
        description="Check rule files: every mistake with its place, then what would be in force. With --prometheus "
        "also ask each query once: what it covers, what it costs, and what the rules make of it now.",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help=f"file, or folder of *.yaml (default {DEFAULT_RULES})")
    if any(word.startswith("-") for word in words):  # the table of settings takes longer to load than files to check
        _add_options(parser, lambda option: option.flag.startswith("prometheus") or option.flag == "kubeconfig")
    if _is_help(words):
        return _help(parser, around)
    given = vars(parser.parse_args(words))
    paths = given.pop("paths") or [DEFAULT_RULES]
    if any(value is not None for value in given.values()):
        from scheduler.app.check.command import run_live_check

        return run_live_check(paths, _settings(given, around), around.out)

    from scheduler.signals.check import run_check

    return run_check(paths, around.out, _default_profile().fixed_weight)


def _default_profile() -> Profile:
    from scheduler.framework.profile import Profile
    from scheduler.plugins import default_chain

    return Profile.build("vane", default_chain())


def _rules(words: Sequence[str], around: _Surroundings) -> int:
    known = {"test": _rules_test, "export": _rules_export}
    if words and words[0] in known:
        return known[words[0]](words[1:], around)
    usage = f"usage: vane rules {'|'.join(known)} …; `vane rules test --help` lists its flags"
    if words and words[0] in ("-h", "--help"):
        print(usage, file=around.out)
        return OK
    found = f"no such command, got {words[0]!r}" if words else "what of it"
    raise _UsageError(f"vane rules: {found}. {usage[:1].upper()}{usage[1:]}")


def _rules_test(words: Sequence[str], around: _Surroundings) -> int:
    parser = _Parser(
        prog="vane rules test",
        usage="vane rules test FILE... [--real]",
        description="Run test files (kind RuleTests): input series, a time and a Pod against what each rule says "
        "of each node. Exit code 1 where one expectation does not hold.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="test file")
    parser.add_argument("--real", action="store_true", help="ask a real Prometheus, started for each test")
    parser.add_argument("--prometheus-dir", metavar="DIR", help="folder of the program prometheus (else from PATH)")
    if _is_help(words):
        return _help(parser, around)
    given = parser.parse_args(words)

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from scheduler.rule_tests.command import run_test_files
    from scheduler.rule_tests.servers import EmbeddedServer, RuleTestServer

    server: RuleTestServer = EmbeddedServer()
    if given.real or given.prometheus_dir is not None:
        from scheduler.rule_tests.real_server import RealServer, find_prometheus

        folder = None if given.prometheus_dir is None else Path(given.prometheus_dir)
        server = RealServer(find_prometheus(folder, around.environ))
    return run_test_files([Path(file) for file in given.files], server, around.out)


def _rules_export(words: Sequence[str], around: _Surroundings) -> int:
    parser = _Parser(
        prog="vane rules export",
        usage="vane rules export --prometheus [PATH...]",
        description="Write the signals as recording rules of a Prometheus, with alerts for signals without series.",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help=f"file, or folder of *.yaml (default {DEFAULT_RULES})")
    parser.add_argument("--prometheus", action="store_true", required=True, help="the one form there is")
    parser.add_argument("--server", metavar="NAME", help="only what this Prometheus is asked for ('': the unnamed one)")
    if _is_help(words):
        return _help(parser, around)
    given = parser.parse_args(words)

    from scheduler.signals.export import export_rules

    print(export_rules(given.paths or [DEFAULT_RULES], given.server), end="", file=around.out)
    return OK


def _demo(words: Sequence[str], around: _Surroundings) -> int:
    parser = _Parser(
        prog="vane demo",
        usage="vane demo [FLAGS]",
        description="Run Vane on a simulated cluster for a minute, beside the same Vane without rules, and compare. "
        "^C ends it at any time, with exit code 130; with --keep, after the tour, with 0.",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="which Pods come and how they behave (1)")
    parser.add_argument("--fast", action="store_true", help="the same tour in less than half the time, for CI")
    parser.add_argument("--keep", action="store_true", help="go on after the summary, and print how to use kubectl")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port of the API server (0: any free one)")
    parser.add_argument("--picture", metavar="FILE", help="save what the screen shows as SVG; needs rich")
    if _is_help(words):
        return _help(parser, around)
    given = parser.parse_args(words)
    if not 0 <= given.port <= _MAX_PORT:
        raise _UsageError(f"vane demo: --port: must be from 0 to {_MAX_PORT}, got {given.port}. Write 0 for any")

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from scheduler.sim.demo import Options, run_demo

    picture = None if given.picture is None else Path(given.picture)
    options = Options(given.seed, given.fast, given.keep, given.port, picture)
    try:
        return run_demo(options, around.environ, around.out)
    except VaneError as error:
        raise _UsageError(f"vane demo: {error}") from error


def _top(words: Sequence[str], around: _Surroundings) -> int:
    from scheduler.cli.top import FEW, MANY, Options, run_top
    from scheduler.cli.top_client import DEFAULT_URL, Server

    parser = _Parser(
        prog="vane top",
        usage="vane top [SIGNAL|NODE] [FLAGS]",
        description="Show what signals say now, node by node: in a terminal until ^C, in a pipe once.",
    )
    parser.add_argument("name", nargs="?", default="", metavar="SIGNAL|NODE", help="one signal, or one node in all")
    parser.add_argument(
        "--sort", default="value", metavar="value|age|name", help="order of nodes (value, highest first)"
    )
    parser.add_argument("--limit", type=int, metavar="N", help=f"nodes of each signal ({MANY}; {FEW} without a name)")
    parser.add_argument("--once", action="store_true", help="print once, in a terminal too")
    parser.add_argument("--interval", default="2s", metavar="DURATION", help="how often it is drawn (2s)")
    parser.add_argument("--output", default="table", metavar="table|json", help="json: the page /signals, once (table)")
    parser.add_argument("--url", default=DEFAULT_URL, metavar="URL", help=f"where Vane serves ({DEFAULT_URL})")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="a bearer token, not needed on one machine")
    parser.add_argument("--ca-file", type=Path, metavar="FILE", help="the authority of the certificate")
    parser.add_argument("--insecure-skip-tls-verify", action="store_true", help="take any certificate")
    if _is_help(words):
        return _help(parser, around)
    given = parser.parse_args(words)
    for flag, value, allowed in (
        ("sort", given.sort, ("value", "age", "name")),
        ("output", given.output, ("table", "json")),
    ):
        if value not in allowed:
            raise _UsageError(f"vane top: --{flag}: must be {' or '.join(allowed)}, got {value!r}")
    if given.limit is not None and not 1 <= given.limit <= _MAX_NODES:
        raise _UsageError(f"vane top: --limit: must be from 1 to {_MAX_NODES}, got {given.limit}")
    server = Server(given.url, given.token_file, given.ca_file, given.insecure_skip_tls_verify)
    options = Options(
        server, given.name, given.sort, given.limit, given.once, _interval_s(given.interval), given.output == "json"
    )
    try:
        run_top(options, around.out, around.err)
    except VaneError as error:
        raise _UsageError(f"vane top: {error}") from error
    except BrokenPipeError:
        # head and the like have read enough; what is still buffered must not be written at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), around.out.fileno())
    except KeyboardInterrupt:
        return _INTERRUPTED
    return OK


def _interval_s(text: str) -> float:
    from scheduler.model.duration import parse_duration

    try:
        interval_s = parse_duration(text)
    except ValueError as error:
        raise _UsageError(f"vane top: --interval: {error}") from error
    if interval_s < _SHORTEST_INTERVAL_S:
        raise _UsageError(f"vane top: --interval: must be at least {_SHORTEST_INTERVAL_S:g}s, got {text!r}")
    return interval_s


def _version(words: Sequence[str], around: _Surroundings) -> int:
    parser = _Parser(prog="vane version", usage="vane version", description="Print the version.")
    if _is_help(words):
        return _help(parser, around)
    parser.parse_args(words)
    print(f"vane {__version__}", file=around.out)
    return OK


class _Parser(argparse.ArgumentParser):
    """Raises where argparse would end the process."""

    def __init__(self, prog: str, usage: str, description: str) -> None:
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            add_help=False,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=30, width=110),
        )

    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{self.prog}: {message}. See {self.prog} --help")


def _help(parser: argparse.ArgumentParser, around: _Surroundings) -> int:
    print(parser.format_help(), end="", file=around.out)
    return OK


def _is_help(words: Sequence[str]) -> bool:
    return any(word in ("-h", "--help") for word in words)


def _dashed(word: str) -> str:
    """Take `_` for `-` in flag names, as Kubernetes programs do."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value
