"""The table of all settings: one row gives the flag, the variable, the field of the file and the words of messages."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final


class Take(enum.Enum):
    """How a flag or variable is written."""

    TEXT = "text"
    NUMBER = "number"
    SWITCH = "switch"
    PATH = "path"
    PATHS = "paths"
    PAIRS = "pairs"


@dataclass(frozen=True, slots=True)
class Option:
    """One setting: its flag, its place in the file, and what messages and `--help` say of it."""

    flag: str
    path: tuple[str, ...]
    take: Take
    expects: str
    example: str
    metavar: str = ""

    @property
    def variable(self) -> str:
        return "VANE_" + self.flag.upper().replace("-", "_")

    @property
    def repeatable(self) -> bool:
        return self.take in (Take.PATHS, Take.PAIRS)

    @property
    def secret(self) -> bool:
        return self.take is Take.PAIRS


OPTIONS: Final = (
    Option("kubeconfig", ("kubeconfig",), Take.PATH, "a path", "/etc/vane/kubeconfig", "FILE"),
    Option("rules", ("rules",), Take.PATHS, "a list of paths", "/etc/vane/rules", "PATH"),
    Option(
        "prometheus",
        ("prometheus", "url"),
        Take.TEXT,
        "an http or https URL without user, query and fragment",
        "http://prometheus.monitoring:9090",
        "URL",
    ),
    Option("prometheus-token-file", ("prometheus", "tokenFile"), Take.PATH, "a path", "/var/run/secrets/token", "FILE"),
    Option("prometheus-ca-file", ("prometheus", "caFile"), Take.PATH, "a path", "/etc/vane/ca.crt", "FILE"),
    Option(
        "prometheus-header",
        ("prometheus", "headers"),
        Take.PAIRS,
        "header names with their values as text",
        "X-Scope-OrgID=shop",
        "NAME=VALUE",
    ),
    Option("scheduler-name", ("schedulerName",), Take.TEXT, "1 to 253 characters without spaces", "vane", "NAME"),
    Option("secure-port", ("serving", "securePort"), Take.NUMBER, "a whole number from 0 to 65535", "10259", "PORT"),
    Option("bind-address", ("serving", "bindAddress"), Take.TEXT, "an IP address or localhost", "127.0.0.1", "ADDRESS"),
    Option("tls-cert-file", ("serving", "tlsCertFile"), Take.PATH, "a path", "/etc/vane/tls.crt", "FILE"),
    Option("tls-private-key-file", ("serving", "tlsPrivateKeyFile"), Take.PATH, "a path", "/etc/vane/tls.key", "FILE"),
    Option("unauthenticated-metrics", ("serving", "unauthenticatedMetrics"), Take.SWITCH, "true or false", "true"),
    Option("logging-format", ("logging", "format"), Take.TEXT, "text or json", "json", "text|json"),
    Option("verbosity", ("logging", "verbosity"), Take.NUMBER, "a whole number from 0 to 10", "4", "N"),
)
