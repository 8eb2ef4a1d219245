"""The rights that the shipped roles grant, one by one, and what an audited request needs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.support.kubeapi import KubeApi
from tests.support.manifests import Json

_RBAC = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True)
class Right:
    """One verb on one resource, everywhere or in one namespace, on all objects or on one by name."""

    namespace: str
    group: str
    resource: str
    name: str
    verb: str

    def __str__(self) -> str:
        words = [self.verb, self.resource, self.group, self.name, self.namespace]
        return " ".join(word for word in words if word)

    def covers(self, event: Json) -> bool:
        """Return whether an audited request could be made by this right."""
        asked = event.get("objectRef", {})
        resource = "/".join(filter(None, (asked.get("resource"), asked.get("subresource"))))
        return (
            (asked.get("apiGroup", ""), resource, event["verb"]) == (self.group, self.resource, self.verb)
            and self.namespace in ("", asked.get("namespace"))
            and self.name in ("", asked.get("name"))
        )


def rights(role: Json) -> list[Right]:
    """Return what a Role or ClusterRole grants."""
    namespace = role["metadata"].get("namespace", "")
    return [
        Right(namespace, group, resource, name, verb)
        for rule in role["rules"]
        for group, resource, name, verb in itertools.product(
            rule["apiGroups"], rule["resources"], rule.get("resourceNames", [""]), rule["verbs"]
        )
    ]


def write(api: KubeApi, role: Json, granted: Iterable[Right]) -> None:
    """Let an applied role grant exactly these rights."""
    metadata = role["metadata"]
    scope = f"/namespaces/{metadata['namespace']}/roles" if role["kind"] == "Role" else "/clusterroles"
    rules = [
        {
            "apiGroups": [right.group],
            "resources": [right.resource],
            "verbs": [right.verb],
            **({"resourceNames": [right.name]} if right.name else {}),
        }
        for right in granted
    ]
    api.patch(f"{_RBAC}{scope}/{metadata['name']}", {"rules": rules})


def is_allowed(api: KubeApi, event: Json) -> bool:
    """Return whether the API server would let the same user make an audited request now."""
    asked = event["objectRef"]
    names = {"group": "apiGroup", "resource": "resource", "subresource": "subresource", "name": "name"}
    attributes: dict[str, Any] = {field: asked.get(key, "") for field, key in names.items()}
    attributes |= {"verb": event["verb"], "namespace": asked.get("namespace", "")}
    spec = {"user": event["user"]["username"], "groups": event["user"]["groups"], "resourceAttributes": attributes}
    answer = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    return bool(answer["status"]["allowed"])
