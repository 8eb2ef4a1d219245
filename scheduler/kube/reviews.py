"""Who calls and whether they may: asked of the API server, as kube-scheduler does for its own pages.

Source: k8s.io/apiserver v1.37 authentication/request/bearertoken and plugin/pkg/{authenticator,authorizer} (behaviour).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from scheduler.errors import VaneError
from scheduler.kube.transport import Transport
from scheduler.model.structs import MALFORMED_JSON

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"  # nosec B105 # a path
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_TIMEOUT_S = 10.0

_encode = msgspec.json.Encoder().encode


class MalformedReviewError(VaneError):
    """The API server's answer is not a review."""


class Caller(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The user to whom a token belongs, as the API server says."""

    username: str = ""
    uid: str = ""
    groups: list[str] = msgspec.field(default_factory=list)
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: Caller = Caller()


class _TokenReview(msgspec.Struct):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False


class _AccessReview(msgspec.Struct):
    status: _AccessStatus = _AccessStatus()


_token_reviews = msgspec.json.Decoder(_TokenReview)
_access_reviews = msgspec.json.Decoder(_AccessReview)


class AccessReviews:
    """Asks one question a call, and waits for the answer; for any thread that may wait.

    Needs what the ClusterRole system:auth-delegator grants.

    Raises
    ------
    ApiError, TransportError, MalformedReviewError
        There is no answer, so access is denied.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def caller(self, token: str) -> Caller | None:
        """Return whose token this is, None for one that the API server does not accept."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        try:
            status = _token_reviews.decode(self._ask(_TOKEN_REVIEWS, body)).status
        except MALFORMED_JSON as error:
            raise MalformedReviewError(f"TokenReview: {error}") from error
        return status.user if status.authenticated else None

    def allows(self, caller: Caller, verb: str, path: str) -> bool:
        """Return whether a caller may do this with a path that is no resource."""
        spec = {
            "user": caller.username,
            "uid": caller.uid,
            "groups": caller.groups,
            "extra": caller.extra,
            "nonResourceAttributes": {"verb": verb, "path": path},
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        try:
            return _access_reviews.decode(self._ask(_ACCESS_REVIEWS, body)).status.allowed
        except MALFORMED_JSON as error:
            raise MalformedReviewError(f"SubjectAccessReview: {error}") from error

    def _ask(self, path: str, body: Mapping[str, object]) -> bytes:
        return self._transport.request("POST", path, body=_encode(body), timeout_s=_TIMEOUT_S)
