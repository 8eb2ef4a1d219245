"""WebhookNotifier: tells an HTTP receiver of every Pod that was bound, as a CloudEvent."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scheduler.framework.args import PluginArgs
from scheduler.framework.instructions import Notify, Receiver
from scheduler.framework.plugin import PostBindPlugin
from scheduler.model.pods import PodInfo

TYPE = "dev.vane.pod.bound"

# A scheme, a host without a user before it, perhaps a port, path and query; no fragment, nothing that is not ASCII.
_URL = re.compile(r"(https?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?([/?][!-\"$-~]*)?")


class WebhookNotifierArgs(PluginArgs, frozen=True):
    """`url` gets the events. `tokenFile` holds a bearer token, `caFile` authorities (PEM) in place of the system's."""

    url: str
    token_file: str | None = None
    ca_file: str | None = None

    def __post_init__(self) -> None:
        match = _URL.fullmatch(self.url)
        if match is None or (match[3] and not 0 < int(match[3][1:]) < 65536):
            # What stands there may hold a password.
            raise ValueError("url: must be http://HOST or https://HOST with port, path and query if need be, no user")
        for field, path in (("tokenFile", self.token_file), ("caFile", self.ca_file)):
            if path is not None and not path.startswith("/"):
                raise ValueError(f"{field}: must be an absolute path, got {path!r}. Begin it with /")
        if self.ca_file is not None and match[1] == "http":
            raise ValueError("caFile: has no effect with http://. Write https:// in url, or drop caFile")


class WebhookNotifier(PostBindPlugin):
    """Sends CloudEvents of type `dev.vane.pod.bound`.

    Their data are `namespace`, `name`, `uid`, `node` and `schedulerName`. The id is made of UID and node, so an event
    that arrives twice (a retry, a later replica) has the same one. While a receiver is down, events wait, then some are
    given up and counted; scheduling never waits for it.
    """

    Args = WebhookNotifierArgs

    def __init__(self, args: WebhookNotifierArgs) -> None:
        self._receiver = Receiver(args.url, args.token_file, args.ca_file)

    def postbind(self, state: object, pod: PodInfo, node_name: str) -> Sequence[Notify]:
        metadata = pod.pod.metadata
        data = {
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "node": node_name,
            "schedulerName": pod.pod.spec.scheduler_name,
        }
        return (Notify(self._receiver, f"{metadata.uid}.{node_name}", TYPE, pod.key, data),)
