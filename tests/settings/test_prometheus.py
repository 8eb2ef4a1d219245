from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.settings.load import load
from scheduler.settings.prometheus import Flavor
from scheduler.settings.sources import FlagValue
from tests.configuration import message, write

SERVERS = """\
prometheus:
  url: http://near:9090
  servers:
  - name: long-term
    url: https://far/prometheus/
    flavor: mimir
    username: vane
    passwordFile: secrets/password
    certFile: /tls/client.crt
    keyFile: tls/client.key
    caFile: ca.crt
    headers: {X-Scope-OrgID: shop, under_score: x}
    matchers: {cluster: prod, k8s_region: "9", "k8s.zone": é}
    maxSeries: 10
    maxBytes: 4096
  - {name: logs, url: "http://victoria:8428", flavor: victoriametrics, tokenFile: token}
"""


def test_servers_by_name_have_all_fields_of_the_one_without(tmp_path: Path) -> None:
    prometheus = load({"config": write(tmp_path, SERVERS)}, {}).prometheus
    servers = prometheus.by_name()
    assert list(servers) == ["", "long-term", "logs"]
    far, logs = servers["long-term"], servers["logs"]
    assert (far.url, far.flavor, logs.flavor) == ("https://far/prometheus", Flavor.MIMIR, Flavor.VICTORIAMETRICS)
    assert (far.username, far.password_file) == ("vane", tmp_path / "secrets/password")
    assert (far.cert_file, far.key_file) == (Path("/tls/client.crt"), tmp_path / "tls/client.key")
    assert (far.ca_file, logs.token_file) == (tmp_path / "ca.crt", tmp_path / "token")
    assert far.headers == (("X-Scope-OrgID", "shop"), ("under_score", "x"))
    assert (far.max_series, far.max_bytes, logs.max_series) == (10, 4096, servers[""].max_series)
    assert far.matchers == (("cluster", "prod"), ("k8s_region", "9"), ("k8s.zone", "é"))
    assert logs.matchers == ()
    assert "shop" not in repr(prometheus), "a header may be a password"


def test_a_server_without_a_name_needs_no_address_where_others_have_names(tmp_path: Path) -> None:
    config = write(tmp_path, "prometheus: {servers: [{name: a, url: 'http://a'}]}\n")
    assert list(load({"config": config}, {}).prometheus.by_name()) == ["a"]
    assert list(load({"config": config, "prometheus": "http://b"}, {}).prometheus.by_name()) == ["", "a"]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(
            {"prometheus-username": "u"},
            "--prometheus-username: also needs passwordFile. Write it, or drop username",
            id="a user without a password",
        ),
        pytest.param(
            {"prometheus-password-file": "/p"},
            "--prometheus-password-file: also needs username. Write it, or drop passwordFile",
            id="a password without a user",
        ),
        pytest.param(
            {"prometheus-cert-file": "/c"},
            "--prometheus-cert-file: also needs keyFile. Write it, or drop certFile",
            id="a certificate without a key",
        ),
        pytest.param(
            {"prometheus-token-file": "/t", "prometheus-username": "u", "prometheus-password-file": "/p"},
            "--prometheus-password-file: Authorization is also set by tokenFile. Drop one of the two",
            id="a token and a password",
        ),
        pytest.param(
            {"prometheus-username": "u", "prometheus-password-file": "/p", "prometheus-header": ["authorization=x"]},
            "--prometheus-header: Authorization is also set by passwordFile. Drop one of the two",
            id="a password and a header",
        ),
        pytest.param(
            {"prometheus": "http://p", "prometheus-cert-file": "/c", "prometheus-key-file": "/k"},
            "--prometheus-cert-file: a certificate needs https, got 'http://p'. Write https://...",
            id="a certificate without TLS",
        ),
        pytest.param(
            {"prometheus-username": "a:b", "prometheus-password-file": "/p"},
            "--prometheus-username: must be a name without colon, got 'a:b'. Write for example vane",
            id="a colon in a user's name",
        ),
        pytest.param(
            {"prometheus-flavor": "cortex"},
            "--prometheus-flavor: must be prometheus, thanos, mimir or victoriametrics, got 'cortex'."
            " Write for example thanos",
            id="an unknown flavor",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(flags: dict[str, FlagValue], expected: str) -> None:
    assert message(flags) == expected


MATCHERS = "must be label names (not __name__), each once, with their values as text, none of them empty"
AS_MATCHERS = " Write for example cluster=prod"


@pytest.mark.parametrize(
    "given", [["cluster"], ["cluster="], ["=prod"], ["__name__=up"], ["a=b", "a=c"], ["cluster=\udcff"]]
)
def test_matchers_are_label_names_with_values(given: list[str]) -> None:
    assert message({"prometheus-matcher": given}) == f"--prometheus-matcher: {MATCHERS}, got {given!r}.{AS_MATCHERS}"


def test_matchers_come_from_flags_and_variables_too() -> None:
    assert load({"prometheus-matcher": ["a=b=c", "d e=f"]}, {}).prometheus.matchers == (("a", "b=c"), ("d e", "f"))
    assert load({}, {"VANE_PROMETHEUS_MATCHER": "a=b:c\nd=e"}).prometheus.matchers == (("a", "b:c"), ("d", "e"))


OF_A_SERVER = (
    " Write one of: url, flavor, tokenFile, username, passwordFile, certFile, keyFile, caFile, headers, features,"
    " matchers, maxSeries, maxBytes, name"
)


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        pytest.param(
            "[{name: a, url: 'http://a'}, {name: a, url: 'http://b'}]",
            "{config}:3:59: prometheus.servers[1].name: 'a' is used twice, first at"
            " {config}:3:31: prometheus.servers[0].name. Rename one",
            id="a name twice",
        ),
        pytest.param(
            "[{name: a}]", "{config}:3:24: prometheus.servers[0].url: `url` is missing. Write it", id="no address"
        ),
        pytest.param(
            "[{url: 'http://a'}]",
            "{config}:3:24: prometheus.servers[0].name: `name` is missing. Write it",
            id="no name",
        ),
        pytest.param(
            "[{name: Long Term, url: 'http://a'}]",
            "{config}:3:31: prometheus.servers[0].name: must be a name (small letters, digits and -), got 'Long Term'."
            " Write for example long-term",
            id="a name with a space",
        ),
        pytest.param(
            "[{name: a, url: 'ftp://a'}]",
            "{config}:3:39: prometheus.servers[0].url: must be an http or https URL without user, query and fragment,"
            " got 'ftp://a'. Write for example http://prometheus.monitoring:9090",
            id="another scheme",
        ),
        pytest.param(
            "[{name: a, url: 'http://a', tokenfile: t}]",
            "{config}:3:51: prometheus.servers[0]: unknown field, got 'tokenfile' (did you mean \"tokenFile\"?)."
            + OF_A_SERVER,
            id="a slip",
        ),
        pytest.param(
            "[{name: a, url: 'http://a', token_file: t}]",
            "{config}:3:51: prometheus.servers[0]: unknown field, got 'token_file' (did you mean \"tokenFile\"?)."
            + OF_A_SERVER,
            id="Python's spelling",
        ),
        pytest.param(
            "[{name: a, url: 'https://a', certFile: c}]",
            "{config}:3:62: prometheus.servers[0].certFile: also needs keyFile. Write it, or drop certFile",
            id="a certificate without a key",
        ),
        pytest.param(
            "[{name: a, url: 'http://a', headers: {X-Key: secret, Y: 1}}]",
            "{config}:3:60: prometheus.servers[0].headers: must be header names with their values as text,"
            " got something else. Write for example X-Scope-OrgID=shop",
            id="headers",
        ),
        pytest.param(
            "[{name: a, url: 'http://a', matchers: {cluster: 1}}]",
            "{config}:3:61: prometheus.servers[0].matchers: " + MATCHERS + ", got {{'cluster': 1}}." + AS_MATCHERS,
            id="a number as a value",
        ),
        pytest.param(
            "[{name: a, url: 'http://a', matchers: [cluster]}]",
            "{config}:3:61: prometheus.servers[0].matchers: " + MATCHERS + ", got ['cluster']." + AS_MATCHERS,
            id="a list",
        ),
        pytest.param(
            "{a: 'http://a'}",
            "{config}:3:23: prometheus.servers: must be a list of servers, got {{'a': 'http://a'}}."
            " Write each as `- name: ...` and its fields",
            id="a mapping",
        ),
        pytest.param(
            "[a]",
            "{config}:3:24: prometheus.servers[0]: must be a mapping, got 'a'. Write fields: url, flavor, tokenFile,"
            " username, passwordFile, certFile, keyFile, caFile, headers, features, matchers, maxSeries,"
            " maxBytes, name",
            id="a word",
        ),
    ],
)
def test_a_wrong_server_of_the_file_is_explained(tmp_path: Path, servers: str, expected: str) -> None:
    config = write(tmp_path, f"prometheus: {{servers: {servers}}}\n")
    assert message({"config": config}) == expected.format(config=config)
    assert "secret" not in message({"config": config})
