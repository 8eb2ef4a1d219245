from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.app.prometheus_servers import (
    check_addresses,
    client_settings,
    features_of,
    make_clients,
    server_names,
)
from scheduler.app.run import run
from scheduler.errors import ConfigError
from scheduler.settings.prometheus import Flavor, PrometheusSettings
from scheduler.settings.settings import Settings

RULES = """\
apiVersion: vane.dev/v1
kind: Rules
signals:
  load: {expr: max by (node) (load), server: fair}
rules:
  - {name: busy, signal: load, filter: {max: 8}}
"""


def settings_of(*urls: str, **nameless: object) -> PrometheusSettings:
    servers = [{"name": f"s{i}", "url": url} for i, url in enumerate(urls)]
    return PrometheusSettings.model_validate({**nameless, "servers": servers})


def test_every_field_of_the_settings_reaches_the_client() -> None:
    fields = {
        "flavor": "victoriametrics",
        "username": "u",
        "passwordFile": "/p",
        "certFile": "/c",
        "keyFile": "/k",
        "caFile": "/ca",
        "headers": {"A": "b"},
        "maxSeries": 7,
        "maxBytes": 2048,
    }
    made = client_settings(settings_of(**fields), "https://p")
    assert (made.url, made.flavor, made.max_series, made.bounds.max_bytes) == (
        "https://p",
        Flavor.VICTORIAMETRICS,
        7,
        2048,
    )
    access = made.access
    assert (access.username, access.password_file) == ("u", Path("/p"))
    assert (access.cert_file, access.key_file, access.ca_file) == (Path("/c"), Path("/k"), Path("/ca"))
    assert access.headers == {"A": "b"}
    assert client_settings(settings_of(tokenFile="/t"), "http://p").access.bearer_token_file == Path("/t")


def test_each_server_has_the_features_of_its_settings() -> None:
    servers = [{"name": "far", "url": "http://f", "features": ["promql-duration-expr"]}]
    settings = PrometheusSettings.model_validate({"features": ["promql-binop-fill-modifiers"], "servers": servers})
    assert features_of(settings) == {"": {"promql-binop-fill-modifiers"}, "far": {"promql-duration-expr"}}


def test_only_servers_with_an_address_are_asked() -> None:
    assert make_clients(settings_of()) == {}
    settings = settings_of("http://a", "http://b")
    assert list(make_clients(settings)) == ["s0", "s1"]
    assert server_names(settings) == {"s0", "s1"}
    assert list(make_clients(settings_of("http://a", url="http://b"))) == ["", "s0"]


def test_every_address_is_checked_before_anything_starts() -> None:
    check_addresses(settings_of("http://a", url="http://b"))
    with pytest.raises(ConfigError, match=r"http://b/api/v1.*before /api"):
        check_addresses(settings_of("http://a", "http://b/api/v1"))


def test_a_run_refuses_a_rule_that_asks_an_unknown_server(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    settings = Settings(rules=(path,), prometheus=settings_of("http://a"))
    with pytest.raises(ConfigError, match=r"rules\.yaml:4:46: signal 'load', server: unknown server.*known: s0"):
        run(settings)
