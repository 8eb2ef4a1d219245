"""`kubectl vane`: the commands for a Vane in a cluster. kubectl finds the program `kubectl-vane` on the PATH.

What needs no cluster is as in `vane`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final, TextIO

from scheduler.cli.command_line import FAILED, OK, HelpAsked, Parser, Surroundings, UsageError, unknown_word
from scheduler.cli.main import main as vane
from scheduler.errors import VaneError

if TYPE_CHECKING:
    from scheduler.kube.leader import Wanted

PROGRAM: Final = "kubectl vane"
RULES: Final = "vane-rules"
"""The ConfigMap with the rules, as deploy/base names it."""

_AS_IN_VANE: Final = ("rules", "schema", "version")
_COMMANDS: Final = ("top", "check", *_AS_IN_VANE)
_MISUSED: Final = 2

_USAGE: Final = """\
Look at the Vane that runs in a cluster.

usage: kubectl vane COMMAND [FLAGS]

  kubectl vane top [NAME]       show what signals measure now, by node
  kubectl vane check            check the rules that are deployed
  kubectl vane check PATH...    check rule files
  kubectl vane rules test       run tests of rules
  kubectl vane rules export     write signals as recording rules for Prometheus
  kubectl vane schema [KIND]    print the JSON schema of a kind of file, for editors
  kubectl vane version          print the version

top and check take --kubeconfig, --context and -n. They reach the replica that leads through the API server; no port is
opened on this machine. `kubectl vane COMMAND --help` lists all flags.
"""


def main(
    argv: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> int:
    """Run one command and return its exit code; what is not given is that of the process."""
    words = list(sys.argv[1:] if argv is None else argv)
    around = Surroundings(
        os.environ if environ is None else environ,
        out or sys.stdout,
        err or sys.stderr,
        stdin=lambda n_bytes: sys.stdin.buffer.read(n_bytes),
    )
    try:
        return _dispatch(words, around)
    except HelpAsked as help_text:
        print(help_text, end="", file=around.out)
        return OK
    except UsageError as error:
        print(error, file=around.err)
        return FAILED


def _dispatch(words: Sequence[str], around: Surroundings) -> int:
    if not words:
        raise UsageError(_USAGE.rstrip())
    command = words[0]
    if command in ("-h", "--help", "help"):
        print(_USAGE, end="", file=around.out)
        return OK
    if command == "top":
        return _top(words[1:], around)
    if command == "check":
        return _check(words[1:], around)
    if command in _AS_IN_VANE:
        return vane(words, around.environ, around.out, around.err)
    raise UsageError(f"{PROGRAM}: {unknown_word('command', command, _COMMANDS)}; see {PROGRAM} --help")


def _top(words: Sequence[str], around: Surroundings) -> int:
    from scheduler.cli import top
    from scheduler.cli.top_client import ServerAccess
    from scheduler.cli.way_to_leader import Door, WayToLeader

    parser = top.parser(PROGRAM, has_address=False)
    _add_cluster(parser, "where Vane's Pods are (vane-system, else wherever the leader is)")
    parser.add_argument("--kubeconfig", metavar="FILE", help="kubeconfig file; unset: what kubectl would use")
    parser.add_argument(
        "--lease", default="kube-system/vane", metavar="NAMESPACE/NAME", help="names the leader (kube-system/vane)"
    )
    parser.add_argument("--pod", default="", metavar="NAME", help="this Pod, whoever leads")
    parser.add_argument(
        "--service-account",
        default="vane-reader",
        metavar="NAME",
        help="whose token is sent to Vane, made for ten minutes; never your own (vane-reader)",
    )
    given = parser.read(words)
    try:
        door = Door(given.kubeconfig, given.context, _wanted(given), given.service_account)
        with closing(WayToLeader(door, around.environ)) as way:
            server = ServerAccess(token_file=given.token_file, way=way)
            return top.show(given, server, around, PROGRAM)
    except VaneError as error:
        raise UsageError(f"{PROGRAM} top: {error}") from error


def _wanted(given: argparse.Namespace) -> Wanted:
    from scheduler.kube.leader import Wanted

    namespace, slash, lease = given.lease.partition("/")
    if not (namespace and slash and lease) or "/" in lease:
        raise UsageError(f"{PROGRAM} top: --lease: must be NAMESPACE/NAME, got {given.lease!r}. Write kube-system/vane")
    return Wanted(given.namespace, lease, namespace, given.pod)


def _check(words: Sequence[str], around: Surroundings) -> int:
    from scheduler.cli import check
    from scheduler.signals.files import read_rule_files

    parser = check.parser(PROGRAM, without_paths="the rules that are deployed")
    _add_cluster(parser, "where the ConfigMap is (vane-system)")
    parser.add_argument("--config-map", default=RULES, metavar="NAME", help=f"ConfigMap with the rules ({RULES})")
    given = vars(parser.read(words))
    paths, context = given.pop("paths"), given.pop("context")
    namespace, name = given.pop("namespace"), given.pop("config_map")
    try:
        if paths:
            files = read_rule_files(paths, around.stdin)
        else:
            files = _deployed(given["kubeconfig"], context, namespace, name, around)
        if all(value is None for flag, value in given.items() if flag not in ("kubeconfig", "output", "strict")):
            given.pop("kubeconfig")  # without a Prometheus there is nothing to compare with the cluster
        return check.judge(files, given, around, context)
    except VaneError as error:
        print(f"{PROGRAM} check: {error}", file=around.err)
        return _MISUSED


def _deployed(
    kubeconfig: str | None, context: str | None, namespace: str, name: str, around: Surroundings
) -> Mapping[str, bytes]:
    from scheduler.kube.config import load_connection
    from scheduler.kube.deployed_rules import read_config_map
    from scheduler.kube.leader import NAMESPACE
    from scheduler.kube.transport import Transport

    with closing(Transport(load_connection(kubeconfig, context, around.environ))) as transport:
        return read_config_map(transport, namespace or NAMESPACE, name)


def _add_cluster(parser: Parser, namespace: str) -> None:
    parser.add_argument("-n", "--namespace", default="", metavar="NAME", help=namespace)
    parser.add_argument("--context", metavar="NAME", help="context of the kubeconfig; unset: the current one")
