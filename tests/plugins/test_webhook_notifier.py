from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.framework.instructions import Notify, Receiver
from scheduler.plugins.webhook_notifier import WebhookNotifier, WebhookNotifierArgs
from tests.builders import make_pod


def test_one_event_for_each_bound_pod() -> None:
    args = {"url": "https://hooks.example.com:8443/vane?a=b", "tokenFile": "/etc/token", "caFile": "/etc/ca.pem"}
    notifier = WebhookNotifier(msgspec.convert(args, WebhookNotifierArgs))

    (event,) = notifier.postbind(None, make_pod("web", namespace="shop", uid="u-1"), "n1")

    assert event == Notify(
        Receiver("https://hooks.example.com:8443/vane?a=b", "/etc/token", "/etc/ca.pem"),
        id="u-1.n1",
        type="dev.vane.pod.bound",
        subject="shop/web",
        data={"namespace": "shop", "name": "web", "uid": "u-1", "node": "n1", "schedulerName": "vane"},
    )


@pytest.mark.parametrize("url", ["http://h", "https://h.example:1/", "http://[::1]:8080/x", "http://10.0.0.1?x=%20"])
def test_urls(url: str) -> None:
    assert msgspec.convert({"url": url}, WebhookNotifierArgs).url == url


@pytest.mark.parametrize(
    ("args", "words"),
    [
        pytest.param({}, "missing required field `url`", id="no url"),
        pytest.param({"url": "ftp://h"}, "url: must be http://HOST or https://HOST", id="scheme"),
        pytest.param({"url": "https://user:pass@h"}, "url: must be http://HOST or https://HOST", id="user"),
        pytest.param({"url": "https://h:0"}, "url: must be", id="port 0"),
        pytest.param({"url": "https://h:65536"}, "url: must be", id="port beyond the last"),
        pytest.param({"url": "https://h/a b"}, "url: must be", id="space"),
        pytest.param({"url": "https://h/#top"}, "url: must be", id="fragment"),
        pytest.param({"url": "https://h", "tokenFile": "token"}, "tokenFile: must be an absolute path", id="relative"),
        pytest.param({"url": "http://h", "caFile": "/ca"}, "caFile: has no effect with http://", id="CA without TLS"),
        pytest.param({"url": "https://h", "token": "x"}, "unknown field `token`", id="unknown field"),
    ],
)
def test_arguments_are_checked(args: dict[str, Any], words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(args, WebhookNotifierArgs)
    assert words in str(caught.value)
    assert "pass" not in str(caught.value)
