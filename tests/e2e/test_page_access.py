"""Who is let in to the pages: the real API server says whose token it is and what it may see."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.e2e.conftest import StartVane
from tests.support.audit import AuditLog
from tests.support.controlplane import ControlPlane
from tests.support.kubeapi import KubeApi
from tests.support.ports import own_address
from tests.support.vane import VaneProcess, grant_reviews
from tests.support.waiting import wait_until
from tests.support.watch_proxy import WatchProxy

ON_ALL_ADDRESSES = ("--bind-address", "0.0.0.0", "--leader-elect=false")
PAGES = ("metrics", "metrics/resources", "metrics/slis", "decisions", "signals")
PROBES = ("livez", "readyz", "healthz")


def status(vane: VaneProcess, path: str, token: str | None = None, method: str = "GET", host: str = "") -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"https://{host or own_address()}:{vane.port}/{path}"
    request = urllib.request.Request(url, headers=headers, method=method)
    context = ssl._create_unverified_context()  # noqa: SLF001 - its certificate is self-signed
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def let_read(api: KubeApi, account: str) -> None:
    """Allow an account of the namespace `default` to read /metrics."""
    metrics = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    api.grant(f"system:serviceaccount:default:{account}", metrics, name="metrics")


def test_only_who_was_granted_a_page_sees_it(
    api: KubeApi, control_plane: ControlPlane, audit: AuditLog, start_vane: StartVane
) -> None:
    vane = start_vane(flags=ON_ALL_ADDRESSES)
    scraper, stranger = map(control_plane.service_account_token, ("scraper", "stranger"))
    let_read(api, "scraper")

    # Without the right to ask, nobody is let in, and probes go on.
    assert status(vane, "metrics", scraper) == 500
    wait_until(lambda: "cannot create resource" in vane.process.log_text(), 10.0, "the reason in the log")
    assert status(vane, "livez") == status(vane, "readyz") == 200

    grant_reviews(api, "vane")
    wait_until(lambda: status(vane, "metrics", scraper) == 200, 10.0, "the scraper to be let in")
    assert [status(vane, "metrics", token) for token in (None, "made-up", stranger)] == [401, 401, 403]
    assert status(vane, "decisions", scraper) == 403

    since = audit.from_now()
    for _ in range(20):
        assert status(vane, "metrics", scraper) == 200
    assert len(since.events("create", "tokenreviews", user="vane")) <= 2

    api.delete("/api/v1/namespaces/default/serviceaccounts/scraper")
    wait_until(lambda: status(vane, "metrics", scraper) == 401, 15.0, "the token of a deleted account to be refused")


@pytest.mark.parametrize("host", ["", "127.0.0.1"], ids=["from elsewhere", "from loopback"])
def test_no_token_no_right_and_no_reviews_let_nobody_in_but_probes(
    api: KubeApi, control_plane: ControlPlane, start_vane: StartVane, tmp_path: Path, host: str
) -> None:
    proxy = WatchProxy(control_plane)
    proxy.start()
    try:
        vane = start_vane(kubeconfig=proxy.write_kubeconfig(tmp_path / "kubeconfig"), flags=ON_ALL_ADDRESSES)
        grant_reviews(api, "vane")
        scraper, stranger = map(control_plane.service_account_token, ("scraper", "stranger"))
        let_read(api, "scraper")
        wait_until(lambda: status(vane, "metrics", scraper, host=host) == 200, 10.0, "the scraper to be let in")

        assert {status(vane, page, host=host) for page in PAGES} == {401}
        assert status(vane, "permit/default/web", method="POST", host=host) == 401
        assert {status(vane, page, stranger, host=host) for page in PAGES} == {403}
        assert status(vane, "permit/default/web", scraper, "POST", host=host) == 403
        assert {status(vane, probe, host=host) for probe in PROBES} == {200}

        another = control_plane.service_account_token("scraper")
    finally:
        proxy.stop()
    assert {status(vane, page, another, host=host) for page in PAGES} == {500}
    assert {status(vane, page, host=host) for page in PAGES} == {401}
    assert {status(vane, probe, host=host) for probe in PROBES} == {200}
