"""The command `vane check --prometheus`: settings in, a report on both sides, Prometheus and cluster, out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from scheduler.app.check.cluster import read_cluster
from scheduler.app.check.live_check import check_live
from scheduler.app.check.report import report_lines
from scheduler.app.check.rule_files import check
from scheduler.app.profiles import build_profiles
from scheduler.app.prometheus_servers import make_clients, server_names
from scheduler.cluster.cache import Cache
from scheduler.errors import ConfigError, VaneError
from scheduler.kube.config import load_connection
from scheduler.kube.transport import Transport
from scheduler.rules.compiled import indexes_for
from scheduler.settings.settings import Settings

OK: Final = 0
FAILED: Final = 1


@dataclass(frozen=True, slots=True)
class ComparedCluster:
    """The cluster, or why there is none, in words."""

    cache: Cache | None
    words: str


def run_live_check(paths: Sequence[str | os.PathLike[str]], settings: Settings, out: TextIO) -> int:
    """Check the rule files, then ask each query; 0 where nothing is wrong and every signal has an answer, else 1.

    Raises
    ------
    ConfigError
        A setting, a profile or a path is wrong; nothing was asked.
    """
    profiles = build_profiles(settings)
    profile = profiles.get(settings.scheduler_name) or next(iter(profiles.values()))
    clients = make_clients(settings.prometheus, with_stats=True)
    if not clients:
        raise ConfigError("vane check: no Prometheus is configured. Write --prometheus URL")
    files = check(paths, profile.fixed_weight, server_names(settings.prometheus))
    print("\n".join(files.lines()), file=out)
    if files.problems:
        return FAILED
    found = _cluster(settings)
    addresses = [f"{name or 'Prometheus'} at {one.url}" for name, one in settings.prometheus.by_name().items()]
    print(f"\nAsked: {', '.join(addresses)}. {found.words}\n", file=out)
    report = check_live(files.rules, clients, found.cache, profile.fixed_weight)
    print("\n".join(report_lines(report)), file=out)
    for client in clients.values():
        client.close()
    return FAILED if report.unanswered else OK


def _cluster(settings: Settings) -> ComparedCluster:
    """Return the cluster that `vane run` would find; a check without one is a check all the same."""
    try:
        connection = load_connection(None if settings.kubeconfig is None else str(settings.kubeconfig))
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
