from __future__ import annotations

from collections.abc import Mapping

import pytest

from scheduler.settings.prometheus import Flavor
from scheduler.signals.asking.client import ClientSettings, PrometheusClient
from scheduler.signals.asking.credentials import Access
from scheduler.signals.asking.query_errors import TooMuchData
from tests.signals.asking.scripted import Request, always, scripted, vector

GOOD = vector([({"node": "a"}, "1")])
ALWAYS = {"timeout": "4000ms", "limit": "101"}


def asked(flavor: Flavor, headers: Mapping[str, str]) -> Request:
    with scripted(always(GOOD)) as server:
        settings = ClientSettings(server.url, Access(headers=headers), max_series=100, flavor=flavor)
        PrometheusClient(settings).query("up", lookback_s=60.0)
        return server.requests[0]


@pytest.mark.parametrize(
    ("flavor", "expected"),
    [
        (Flavor.PROMETHEUS, {"lookback_delta": "60000ms", "partial_response": "false", "dedup": "true"}),
        (
            Flavor.THANOS,
            {
                "lookback_delta": "60000ms",
                "partial_response": "false",
                "dedup": "true",
                "max_source_resolution": "0s",
            },
        ),
        (Flavor.MIMIR, {"lookback_delta": "60000ms"}),
        (Flavor.VICTORIAMETRICS, {"max_lookback": "60000ms", "nocache": "1", "deny_partial_response": "1"}),
    ],
)
def test_each_flavor_gets_its_own_parameters(flavor: Flavor, expected: dict[str, str]) -> None:
    request = asked(flavor, {"X-Scope-OrgID": "shop"})
    assert {name: value for name, value in request.form.items() if name != "query"} == ALWAYS | expected
    assert request.headers["X-Scope-OrgID"] == "shop"
    assert request.headers.get("Cache-Control") == ("no-store" if flavor is Flavor.MIMIR else None)


def test_a_header_of_the_user_wins() -> None:
    assert asked(Flavor.MIMIR, {"Cache-Control": "max-age=5"}).headers["Cache-Control"] == "max-age=5"


def test_a_server_that_knows_no_limit_is_counted_here() -> None:
    body = vector([({"node": str(i)}, "1") for i in range(101)])
    with scripted(always(body)) as server:
        settings = ClientSettings(server.url, max_series=100, flavor=Flavor.VICTORIAMETRICS)
        with pytest.raises(TooMuchData, match="more than 100 series"):
            PrometheusClient(settings).query("up")


def test_a_partial_answer_of_victoriametrics_counts_as_a_warning() -> None:
    with scripted(always(vector([({"node": "a"}, "1")], isPartial=True))) as server:
        assert PrometheusClient(ClientSettings(server.url)).query("up").warnings == (
            "the server says that its answer is partial",
        )
    with scripted(always(vector([({"node": "a"}, "1")], isPartial=False))) as server:
        assert PrometheusClient(ClientSettings(server.url)).query("up").warnings == ()
