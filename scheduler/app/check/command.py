"""The command `vane check --prometheus`: settings in, a report on both sides, Prometheus and cluster, out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TextIO

from scheduler.app.check.cluster import read_cluster
from scheduler.app.check.findings import Output, for_machines
from scheduler.app.check.live_check import check_live
from scheduler.app.check.report import notes_of, report_lines
from scheduler.app.check.rule_files import How, check, run_check
from scheduler.app.profiles import build_profiles
from scheduler.app.prometheus_servers import features_of, make_clients, matchers_of, server_names
from scheduler.cluster.cache import Cache
from scheduler.errors import ConfigError, VaneError
from scheduler.kube.config import load_connection
from scheduler.kube.transport import Transport
from scheduler.rules.compiled import indexes_for
from scheduler.settings.prometheus import ServerSettings
from scheduler.settings.settings import Settings
from scheduler.signals.format.promql_matchers import selector_text

OK: Final = 0
FAILED: Final = 1


@dataclass(frozen=True, slots=True)
class ComparedCluster:
    """The cluster, or why there is none, in words."""

    cache: Cache | None
    words: str


def run_live_check(
    files: Mapping[str, bytes], settings: Settings, out: TextIO, how: How, context: str | None = None
) -> int:
    """Check rule files, content by name, then ask each query; only features and no address given, ask none.

    `context` is one of the kubeconfig.

    Return 0 if nothing is wrong and every signal has an answer, else 1; a note on an answer is a warning.

    Raises
    ------
    ConfigError
        A setting or a profile is wrong; nothing was asked.
    """
    profiles = build_profiles(settings)
    profile = profiles.get(settings.scheduler_name) or next(iter(profiles.values()))
    servers = settings.prometheus
    clients = make_clients(servers, with_stats=True)
    features = features_of(servers)
    if not clients and any(features.values()):
        return run_check(files, out, how, profile.fixed_weight, features)
    if not clients:
        raise ConfigError("vane check: no Prometheus is configured. Write --prometheus URL")
    matchers = matchers_of(servers)
    checked = check(files, profile.fixed_weight, server_names(servers), features, matchers)
    if how.output is Output.TEXT:
        print("\n".join(checked.lines(how.width)), file=out)
    elif checked.problems:
        print(for_machines(how.output, checked.findings, checked.counts), file=out)
    if checked.problems:
        return FAILED
    found = _cluster(settings, context)
    report = check_live(checked.rules, clients, found.cache, profile.fixed_weight, matchers=matchers)
    notes = [replace(note, problem=checked.located([note.problem])[0]) for note in notes_of(report)]
    if how.output is Output.TEXT:
        asked = ", ".join(_asked_text(name, one) for name, one in settings.prometheus.by_name().items())
        print(f"\nAsked: {asked}. {found.words}\n", file=out)
        print("\n".join(report_lines(report, notes, how.width)), file=out)
    else:
        findings = [*checked.findings, *notes]
        counts = {**checked.counts, "unanswered": len(report.unanswered), "notes": len(notes)}
        print(for_machines(how.output, findings, counts), file=out)
    for client in clients.values():
        client.close()
    has_warnings = bool(checked.warnings or notes)
    return FAILED if report.unanswered or (how.is_strict and has_warnings) else OK


def _asked_text(name: str, server: ServerSettings) -> str:
    only = f" for {{{selector_text(server.matchers)}}}" if server.matchers else ""
    return f"{name or 'Prometheus'} at {server.url}{only}"


def _cluster(settings: Settings, context: str | None) -> ComparedCluster:
    """Return the cluster that `vane run` would find; a check without one is a check all the same."""
    try:
        connection = load_connection(None if settings.kubeconfig is None else str(settings.kubeconfig), context)
        transport = Transport(connection)
        try:
            cache = read_cluster(transport, indexes_for(()))
        finally:
            transport.close()
    except VaneError as error:
        return ComparedCluster(None, f"No cluster to compare with: {error}")
    counts = cache.counts()
    words = f"Compared with {counts['nodes']} nodes and {counts['pods']} Pods of {connection.host}."
    return ComparedCluster(cache, words)
