"""The table of all settings: one row gives the flag, the variable, the field of the file and the words of messages."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from scheduler.promql.nodes import Feature


class OptionType(enum.Enum):
    """How a flag or variable is written."""

    TEXT = "text"
    NUMBER = "number"
    SWITCH = "switch"
    PATH = "path"
    PATHS = "paths"
    WORDS = "words"
    PAIRS = "pairs"
    MATCHERS = "matchers"
    DURATION = "duration"
    NAMED_PATHS = "named paths"


@dataclass(frozen=True, slots=True)
class Option:
    """One setting: its flag, its place in the file, and what messages and `--help` say of it."""

    flag: str
    path: tuple[str, ...]
    type: OptionType
    expects: str
    example: str
    metavar: str = ""

    @property
    def variable(self) -> str:
        return "VANE_" + self.flag.upper().replace("-", "_")

    @property
    def repeatable(self) -> bool:
        return self.type in (
            OptionType.PATHS,
            OptionType.WORDS,
            OptionType.PAIRS,
            OptionType.MATCHERS,
            OptionType.NAMED_PATHS,
        )

    @property
    def secret(self) -> bool:
        return self.type is OptionType.PAIRS


_DURATION: Final = "a duration with units as in 1m30s"

OPTIONS: Final = (
    Option("kubeconfig", ("kubeconfig",), OptionType.PATH, "a path", "/etc/vane/kubeconfig", "FILE"),
    Option(
        "cluster",
        ("clusters",),
        OptionType.NAMED_PATHS,
        "names of clusters (small letters, digits, - and .), each once, with the paths of their kubeconfig files",
        "edge=/etc/vane/edge.kubeconfig",
        "NAME=FILE",
    ),
    Option("rules", ("rules",), OptionType.PATHS, "a list of paths", "/etc/vane/rules", "PATH"),
    Option(
        "prometheus",
        ("prometheus", "url"),
        OptionType.TEXT,
        "an http or https URL without user, query and fragment",
        "http://prometheus.monitoring:9090",
        "URL",
    ),
    Option(
        "prometheus-flavor",
        ("prometheus", "flavor"),
        OptionType.TEXT,
        "prometheus, thanos, mimir or victoriametrics",
        "thanos",
        "FLAVOR",
    ),
    Option(
        "prometheus-token-file",
        ("prometheus", "tokenFile"),
        OptionType.PATH,
        "a path",
        "/var/run/secrets/token",
        "FILE",
    ),
    Option("prometheus-username", ("prometheus", "username"), OptionType.TEXT, "a name without colon", "vane", "USER"),
    Option(
        "prometheus-password-file",
        ("prometheus", "passwordFile"),
        OptionType.PATH,
        "a path",
        "/etc/vane/password",
        "FILE",
    ),
    Option(
        "prometheus-cert-file", ("prometheus", "certFile"), OptionType.PATH, "a path", "/etc/vane/client.crt", "FILE"
    ),
    Option("prometheus-key-file", ("prometheus", "keyFile"), OptionType.PATH, "a path", "/etc/vane/client.key", "FILE"),
    Option("prometheus-ca-file", ("prometheus", "caFile"), OptionType.PATH, "a path", "/etc/vane/ca.crt", "FILE"),
    Option(
        "prometheus-header",
        ("prometheus", "headers"),
        OptionType.PAIRS,
        "header names with their values as text",
        "X-Scope-OrgID=shop",
        "NAME=VALUE",
    ),
    Option(
        "prometheus-feature",
        ("prometheus", "features"),
        OptionType.WORDS,
        f"a list of {', '.join(Feature)}",
        "promql-experimental-functions",
        "FEATURE",
    ),
    Option(
        "prometheus-matcher",
        ("prometheus", "matchers"),
        OptionType.MATCHERS,
        "label names (not __name__), each once, with their values as text, none of them empty",
        "cluster=prod",
        "LABEL=VALUE",
    ),
    Option(
        "prometheus-max-series",
        ("prometheus", "maxSeries"),
        OptionType.NUMBER,
        "a whole number from 1 to 10000000",
        "100000",
        "N",
    ),
    Option(
        "prometheus-max-bytes",
        ("prometheus", "maxBytes"),
        OptionType.NUMBER,
        "a whole number from 1024 to 4294967296",
        "67108864",
        "N",
    ),
    Option("scheduler-name", ("schedulerName",), OptionType.TEXT, "1 to 253 characters without spaces", "vane", "NAME"),
    Option("leader-elect", ("leaderElection", "leaderElect"), OptionType.SWITCH, "true or false", "false"),
    Option(
        "leader-elect-lease-duration",
        ("leaderElection", "leaseDuration"),
        OptionType.DURATION,
        f"{_DURATION}, at least 1s",
        "15s",
        "DURATION",
    ),
    Option(
        "leader-elect-renew-deadline",
        ("leaderElection", "renewDeadline"),
        OptionType.DURATION,
        f"{_DURATION}, above 0",
        "10s",
        "DURATION",
    ),
    Option(
        "leader-elect-retry-period",
        ("leaderElection", "retryPeriod"),
        OptionType.DURATION,
        f"{_DURATION}, above 0",
        "2s",
        "DURATION",
    ),
    Option(
        "leader-elect-resource-lock", ("leaderElection", "resourceLock"), OptionType.TEXT, "leases", "leases", "leases"
    ),
    Option(
        "leader-elect-resource-name",
        ("leaderElection", "resourceName"),
        OptionType.TEXT,
        "the name of a Lease (small letters, digits, - and .)",
        "vane",
        "NAME",
    ),
    Option(
        "leader-elect-resource-namespace",
        ("leaderElection", "resourceNamespace"),
        OptionType.TEXT,
        "the name of a namespace (small letters, digits and -)",
        "kube-system",
        "NAME",
    ),
    Option(
        "secure-port", ("serving", "securePort"), OptionType.NUMBER, "a whole number from 0 to 65535", "10259", "PORT"
    ),
    Option(
        "bind-address",
        ("serving", "bindAddress"),
        OptionType.TEXT,
        "an IP address or localhost",
        "127.0.0.1",
        "ADDRESS",
    ),
    Option("tls-cert-file", ("serving", "tlsCertFile"), OptionType.PATH, "a path", "/etc/vane/tls.crt", "FILE"),
    Option(
        "tls-private-key-file", ("serving", "tlsPrivateKeyFile"), OptionType.PATH, "a path", "/etc/vane/tls.key", "FILE"
    ),
    Option(
        "unauthenticated-metrics", ("serving", "unauthenticatedMetrics"), OptionType.SWITCH, "true or false", "true"
    ),
    Option("logging-format", ("logging", "format"), OptionType.TEXT, "text or json", "json", "text|json"),
    Option("verbosity", ("logging", "verbosity"), OptionType.NUMBER, "a whole number from 0 to 10", "4", "N"),
)
