"""Pages seen from elsewhere: the real API server says whose token it is and what it may see."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request

from tests.e2e.conftest import StartVane
from tests.support.audit import AuditLog
from tests.support.kubeapi import KubeApi
from tests.support.ports import own_address
from tests.support.vane import VaneProcess
from tests.support.waiting import wait_until

DELEGATION = [
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
]
"""What the ClusterRole system:auth-delegator grants."""


def account(api: KubeApi, name: str) -> str:
    """Create a service account and return a token of it."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    api.post(accounts, {"metadata": {"name": name}})
    answer = api.post(f"{accounts}/{name}/token", {"apiVersion": "authentication.k8s.io/v1", "spec": {}})
    return str(answer["status"]["token"])


def status(vane: VaneProcess, path: str, token: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"https://{own_address()}:{vane.port}/{path}", headers=headers)
    context = ssl._create_unverified_context()  # noqa: SLF001 - its certificate is self-signed
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_only_who_was_granted_a_page_sees_it(api: KubeApi, audit: AuditLog, start_vane: StartVane) -> None:
    vane = start_vane(flags=["--bind-address", "0.0.0.0"])
    scraper, stranger = account(api, "scraper"), account(api, "stranger")
    metrics = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    api.grant("system:serviceaccount:default:scraper", metrics, name="metrics")

    # Without the right to ask, nobody is let in, and probes and this machine go on.
    assert status(vane, "metrics", scraper) == 500
    wait_until(lambda: "cannot create resource" in vane.process.log_text(), 10.0, "the reason in the log")
    assert status(vane, "livez") == status(vane, "readyz") == 200
    assert "scheduler_pending_pods" in vane.page("metrics")

    api.grant("vane", DELEGATION, name="delegation")
    wait_until(lambda: status(vane, "metrics", scraper) == 200, 10.0, "the scraper to be let in")
    assert [status(vane, "metrics", token) for token in (None, "made-up", stranger)] == [401, 401, 403]
    assert status(vane, "decisions", scraper) == 403

    since = audit.from_now()
    for _ in range(20):
        assert status(vane, "metrics", scraper) == 200
    assert len(since.events("create", "tokenreviews", user="vane")) <= 2

    api.delete("/api/v1/namespaces/default/serviceaccounts/scraper")
    wait_until(lambda: status(vane, "metrics", scraper) == 401, 15.0, "the token of a deleted account to be refused")
