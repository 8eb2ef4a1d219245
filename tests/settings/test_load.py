from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pydantic import ValidationError

from scheduler.promql.nodes import Feature
from scheduler.settings.load import description_of, load
from scheduler.settings.options import OPTIONS
from scheduler.settings.prometheus import PrometheusSettings
from scheduler.settings.settings import ServingSettings, Settings
from scheduler.settings.sources import FlagValue
from tests.configuration import message, write


def test_defaults_need_no_source() -> None:
    settings = load({}, {})
    assert settings == Settings()
    assert (settings.scheduler_name, settings.rules, settings.kubeconfig) == ("vane", (), None)
    assert (settings.serving.secure_port, settings.serving.bind_address) == (10259, "127.0.0.1")
    assert settings.prometheus.url is None
    assert (settings.logging.format, settings.logging.verbosity) == ("text", 0)


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        "schedulerName: of-file\nserving: {securePort: 1, bindAddress: '::1'}\nlogging: {verbosity: 2, format: json}\n",
    )
    environ = {"VANE_CONFIG": config, "VANE_SECURE_PORT": "2", "VANE_VERBOSITY": "3", "VANE_PROMETHEUS": "http://e:1"}
    settings = load({"verbosity": "4", "prometheus": "http://f:2/prefix/"}, environ)
    assert settings.scheduler_name == "of-file"
    assert settings.serving == ServingSettings(secure_port=2, bind_address="::1")
    assert (settings.logging.format, settings.logging.verbosity) == ("json", 4)
    assert settings.prometheus.url == "http://f:2/prefix"


TOKEN = {"prometheus-token-file": "/t"}
BASIC = {"prometheus-username": "u", "prometheus-password-file": "/w"}


@pytest.mark.parametrize(
    ("one_way", "other_way", "written"),
    [(TOKEN, BASIC, "tokenFile: /t"), (BASIC, TOKEN, "username: u, passwordFile: /w")],
)
def test_every_field_can_be_set_from_every_source(
    tmp_path: Path, one_way: dict[str, str], other_way: dict[str, str], written: str
) -> None:
    values = {
        **one_way,
        "kubeconfig": "/k",
        "cluster": "edge=/e",
        "rules": "/r",
        "prometheus": "https://p:9090",
        "prometheus-flavor": "thanos",
        "prometheus-cert-file": "/cc",
        "prometheus-key-file": "/ck",
        "prometheus-ca-file": "/c",
        "prometheus-header": "X-Scope-OrgID=a=b",
        "prometheus-feature": "promql-duration-expr",
        "prometheus-matcher": "cluster=prod",
        "prometheus-max-series": "7",
        "prometheus-max-bytes": "2048",
        "scheduler-name": "other",
        "leader-elect": "false",
        "leader-elect-lease-duration": "1m30s",
        "leader-elect-renew-deadline": "1m",
        "leader-elect-retry-period": "500ms",
        "leader-elect-resource-lock": "leases",
        "leader-elect-resource-name": "vane-2",
        "leader-elect-resource-namespace": "vane",
        "secure-port": "8443",
        "bind-address": "0.0.0.0",
        "tls-cert-file": "/crt",
        "tls-private-key-file": "/key",
        "unauthenticated-metrics": "true",
        "logging-format": "json",
        "verbosity": "5",
    }
    options = [option for option in OPTIONS if option.flag not in other_way]
    assert set(values) == {option.flag for option in options}
    config = write(
        tmp_path,
        f"""
schedulerName: other
kubeconfig: /k
clusters: {{edge: /e}}
rules: [/r]
leaderElection:
  {{leaderElect: false, leaseDuration: 1m30s, renewDeadline: 1m, retryPeriod: 500ms, resourceLock: leases,
   resourceName: vane-2, resourceNamespace: vane}}
prometheus:
  {{url: "https://p:9090", flavor: thanos, {written}, certFile: /cc, keyFile: /ck, caFile: /c,
   headers: {{X-Scope-OrgID: a=b}}, features: [promql-duration-expr], matchers: {{cluster: prod}},
   maxSeries: 7, maxBytes: 2048}}
serving:
  {{securePort: 8443, bindAddress: 0.0.0.0, tlsCertFile: /crt, tlsPrivateKeyFile: /key, unauthenticatedMetrics: true}}
logging: {{format: json, verbosity: 5}}
""",
    )
    flags: dict[str, FlagValue] = {o.flag: [values[o.flag]] if o.repeatable else values[o.flag] for o in options}
    by_flags = load(flags, {})
    assert load({}, {option.variable: values[option.flag] for option in options}) == by_flags
    assert load({"config": config}, {}) == by_flags
    assert by_flags.prometheus.headers == (("X-Scope-OrgID", "a=b"),)
    assert by_flags.prometheus.features == (Feature.DURATIONS,)
    assert by_flags.clusters == (("edge", Path("/e")),)
    election = by_flags.leader_election
    assert (election.lease_duration_s, election.renew_deadline_s, election.retry_period_s) == (90.0, 60.0, 0.5)
    different = [
        name
        for name in Settings.model_fields
        if name != "scheduler" and getattr(by_flags, name) == getattr(Settings(), name)
    ]
    assert different == []


def test_lists_come_repeated_or_joined() -> None:
    assert load({"rules": ["a", "b"]}, {}).rules == (Path("a"), Path("b"))
    assert load({}, {"VANE_RULES": "a:b"}).rules == (Path("a"), Path("b"))
    assert load({}, {"VANE_PROMETHEUS_HEADER": "A=1\nB=2,3"}).prometheus.headers == (("A", "1"), ("B", "2,3"))


def test_relative_paths_of_the_file_are_relative_to_the_file(tmp_path: Path) -> None:
    settings = load({"config": write(tmp_path, "rules: [rules, /abs]\nprometheus: {caFile: ca.crt}\n")}, {})
    assert settings.rules == (tmp_path / "rules", Path("/abs"))
    assert settings.prometheus.ca_file == tmp_path / "ca.crt"


def test_settings_are_immutable_and_picklable() -> None:
    settings = load({"rules": ["a"]}, {})
    with pytest.raises(ValidationError, match="frozen"):
        settings.scheduler_name = "x"
    with pytest.raises(ValidationError, match="frozen"):
        settings.serving.secure_port = 1
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(load({"rules": ["a"]}, {}))


def test_headers_are_not_shown() -> None:
    assert "secret" not in repr(PrometheusSettings(headers=(("X-Api-Key", "secret"),)))
    assert "secret" not in message({"prometheus-header": ["X Api Key=secret"]})
    assert "secret" not in message({"prometheus-header": ["X-Api-Key= secret"]})
    assert "secret" not in message({"prometheus-header": ["X-Api-Key=secret\N{EURO SIGN}"]})
    assert "secret" not in message({"prometheus": "http://user:secret@h"})


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(
            {"secure-port": "65536"},
            "--secure-port: must be a whole number from 0 to 65535, got 65536. Write for example 10259",
            id="a port beyond the range",
        ),
        pytest.param(
            {"verbosity": "x"},
            "--verbosity: must be a whole number from 0 to 10, got 'x'. Write for example 4",
            id="no number",
        ),
        pytest.param(
            {"prometheus": "prom:9090"},
            "--prometheus: must be an http or https URL without user, query and fragment, got 'prom:9090'."
            " Write for example http://prometheus.monitoring:9090",
            id="a URL without scheme",
        ),
        pytest.param(
            {"rules": [""]},
            "--rules: must be a list of paths, got ''. Write for example /etc/vane/rules",
            id="an empty path",
        ),
        pytest.param(
            {"bind-address": "example.com"},
            "--bind-address: must be an IP address or localhost, got 'example.com'. Write for example 127.0.0.1",
            id="a name for an address",
        ),
    ],
)
def test_a_wrong_flag_is_explained(flags: dict[str, FlagValue], expected: str) -> None:
    assert message(flags) == expected


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_is_known_by_all_its_names(address: str) -> None:
    assert load({"bind-address": address}, {}).serving.is_loopback


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1"])
def test_other_addresses_are_not_loopback(address: str) -> None:
    assert not load({"bind-address": address}, {}).serving.is_loopback


def test_certificate_and_key_come_together() -> None:
    assert message({"tls-cert-file": "c"}).startswith("--tls-cert-file: also needs the private key.")
    assert message({}, {"VANE_TLS_PRIVATE_KEY_FILE": "k"}).startswith("VANE_TLS_PRIVATE_KEY_FILE: also needs the cert")


def test_all_problems_of_all_sources_come_at_once(tmp_path: Path) -> None:
    config = write(
        tmp_path,
        "schedulerNme: x\nrules: [a, 7]\nprometheus: {tokenfile: x}\nserving:\n  securePort: '1'\nlogging: 3\n",
    )
    assert message({"config": config, "secure-port": "-1"}, {"VANE_PROMETHEUS_URL": "x"}).splitlines() == [
        "6 problems in the settings:",
        "VANE_PROMETHEUS_URL: no such variable. Write VANE_PROMETHEUS, or drop it",
        f"{config}:4:12: rules[1]: must be a list of paths, got 7. Write for example /etc/vane/rules",
        f"{config}:5:14: prometheus: unknown field, got 'tokenfile' (did you mean \"tokenFile\"?). Write one of: url,"
        " flavor, tokenFile, username, passwordFile, certFile, keyFile, caFile, headers, features, matchers, maxSeries,"
        " maxBytes,"
        " servers",
        "--secure-port: must be a whole number from 0 to 65535, got -1. Write for example 10259",
        f"{config}:8:10: logging: must be a mapping, got 3. Write fields: format, verbosity",
        f"{config}:3:1: unknown field, got 'schedulerNme' (did you mean \"schedulerName\"?). Write one of:"
        " schedulerName, kubeconfig, rules, scheduler, clusters, leaderElection, prometheus, serving, logging",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("serving: {securePort: true}\n", "3:23: serving.securePort: must be a whole number", id="a bool"),
        pytest.param("serving: {securePort: '1'}\n", "3:23: serving.securePort: must be a whole number", id="a text"),
        pytest.param(
            "serving: {secure_port: 1}\n",
            "3:11: serving: unknown field, got 'secure_port' (did you mean \"securePort\"?). Write one of:",
            id="Python's spelling",
        ),
        pytest.param("rules: a\nrules: b\n", "4:1: 'rules' is given twice, first in line 3.", id="a key twice"),
        pytest.param("rules: &x [a]\nkubeconfig: *x\n", "4:13: an alias, got '*x'. Write", id="an alias"),
        pytest.param("rules: [a\n", "4:1: YAML: did not find expected ',' or ']'", id="broken YAML"),
        pytest.param("---\nrules: []\n", "3:1: a second document, got '---'. Write one", id="two documents"),
        pytest.param("a: " + "[" * 5000, "3:23: nested more than 20 deep.", id="brackets without end"),
        pytest.param(
            "kubeconfig: !!python/name:os.system\n",
            "3:13: a tag, got 'tag:yaml.org,2002:python",
            id="a foreign tag",
        ),
        pytest.param("rules: \x00\n", "3:8: a control character, got U+0000. Remove it", id="a control character"),
        pytest.param("prometheus: {headers: {A: 1}}\n", "prometheus.headers: must be header names", id="a number"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, expected: str) -> None:
    config = write(tmp_path, text)
    found = message({"config": config})
    assert expected in found
    assert config in found


def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    config = write(tmp_path, "", "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n")
    kinds = "VaneConfiguration of vane.dev/v1 or KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1"
    assert message({"config": config}) == (
        f"{config}:1:1: must be {kinds}, got apiVersion 'kubescheduler.config.k8s.io/v1beta3', kind"
        " 'KubeSchedulerConfiguration'. Write apiVersion: vane.dev/v1 and kind: VaneConfiguration"
    )
    write(tmp_path, "", "kind: Rules\n")
    assert f"must be {kinds}, got apiVersion None, kind 'Rules'" in message({"config": config})
    write(tmp_path, "", "- 1\n")
    assert "must be a mapping, got a list" in message({"config": config})
    write(tmp_path, "", "")
    assert "the file is empty. Write `apiVersion: vane.dev/v1` and `kind: VaneConfiguration`" in message(
        {"config": config}
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.yaml")
    assert message({"config": missing}).startswith(f"{missing}: cannot be read, got 'No such file or directory'")
    config = write(tmp_path, "#" * (1 << 20))
    assert message({"config": config}) == f"{config}:1:1: a file may have 1 MiB, got more. Split it, or write less"


def test_a_slip_in_a_variable_is_refused_but_not_what_kubernetes_sets() -> None:
    assert message({}, {"VANE_RULE": "x"}) == "VANE_RULE: no such variable. Write VANE_RULES, or drop it"
    links = {
        "VANE_SERVICE_HOST": "10.0.0.1",
        "VANE_SERVICE_PORT_HTTPS": "443",
        "VANE_PORT": "tcp://10.0.0.1:443",
        "VANE_PORT_443_TCP_ADDR": "10.0.0.1",
        "VANE_PROMETHEUS_SERVICE_HOST": "10.0.0.1",
        "VANE_PROMETHEUS_PORT": "tcp://10.0.0.1:443",
        "VANE_CACHE": "/somewhere",
    }
    assert load({}, links) == Settings()


def test_an_empty_variable_is_unset() -> None:
    assert load({}, {"VANE_KUBECONFIG": "", "VANE_SECURE_PORT": ""}) == Settings()


def test_only_the_named_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDULERNAME", "x")
    monkeypatch.setenv("VANE_SCHEDULER_NAME", "x")
    assert load({}, {}).scheduler_name == "vane"


def test_every_option_is_described() -> None:
    for option in OPTIONS:
        text, _ = description_of(option)
        assert len(text) > 20, option.flag
