"""`vane rules test` and `vane rules export`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scheduler.cli.command_line import (
    DEFAULT_RULES,
    OK,
    Parser,
    Surroundings,
    UsageError,
    add_options,
    keep_numpy_on_one_thread,
    settings_of,
    unknown_word,
)


def parsers() -> dict[str, Parser]:
    return {"test": _test_parser(), "export": _export_parser()}


def command(words: Sequence[str], around: Surroundings) -> int:
    known = {"test": _test, "export": _export}
    if words and words[0] in known:
        return known[words[0]](words[1:], around)
    usage = f"usage: vane rules {'|'.join(known)} …; `vane rules test --help` lists its flags"
    if words and words[0] in ("-h", "--help"):
        print(usage, file=around.out)
        return OK
    found = unknown_word("command", words[0], tuple(known)) if words else "no command given"
    raise UsageError(f"vane rules: {found}. {usage[:1].upper()}{usage[1:]}")


def _test_parser() -> Parser:
    parser = Parser(
        prog="vane rules test",
        usage="vane rules test FILE... [--real]",
        description="Run test files (kind RuleTests). A test has input series, a time, a Pod, and what each rule "
        "should do with each node. Exit code 1 if an expectation does not hold.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="test file")
    parser.add_argument("--real", action="store_true", help="query a real Prometheus, started for each test")
    parser.add_argument("--prometheus-dir", metavar="DIR", help="folder of the program prometheus (else from PATH)")
    return parser


def _test(words: Sequence[str], around: Surroundings) -> int:
    given = _test_parser().read(words)

    keep_numpy_on_one_thread()
    from scheduler.rule_tests.command import run_test_files
    from scheduler.rule_tests.servers import EmbeddedServer, RuleTestServer

    server: RuleTestServer = EmbeddedServer()
    if given.real or given.prometheus_dir is not None:
        from scheduler.rule_tests.real_server import RealServer, find_prometheus

        folder = None if given.prometheus_dir is None else Path(given.prometheus_dir)
        server = RealServer(find_prometheus(folder, around.environ))
    return run_test_files([Path(file) for file in given.files], server, around.out)


def _export_parser() -> Parser:
    parser = Parser(
        prog="vane rules export",
        usage="vane rules export --prometheus [PATH...] [FLAGS]",
        description="Write the signals as recording rules for Prometheus, with alerts for signals without series. "
        "Matchers of a server, from --config or as a flag, stand in each expression and on what it records.",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help=f"file, or folder of *.yaml (default {DEFAULT_RULES})")
    parser.add_argument("--prometheus", action="store_true", required=True, help="required: the only form so far")
    parser.add_argument("--server", metavar="NAME", help="only signals of this Prometheus ('': the unnamed one)")
    add_options(parser, lambda option: option.flag == "prometheus-matcher")
    return parser


def _export(words: Sequence[str], around: Surroundings) -> int:
    given = vars(_export_parser().read(words))
    paths, server, _ = given.pop("paths"), given.pop("server"), given.pop("prometheus")

    from scheduler.app.prometheus_servers import matchers_of
    from scheduler.signals.export import export_rules

    matchers = matchers_of(settings_of(given, around).prometheus)
    print(export_rules(paths or [DEFAULT_RULES], server, matchers), end="", file=around.out)
    return OK
