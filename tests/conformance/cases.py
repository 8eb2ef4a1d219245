"""Cases: a small cluster, a Pod, and what kube-scheduler 1.37.1 answered, through the real model code."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler.kube.resources import KINDS
from scheduler.model.catalog import CatalogObject
from scheduler.model.pods import PodInfo
from scheduler.model.snapshot import Snapshot
from scheduler.model.unsupported import unsupported
from tests.builders import NO_SIGNALS, cluster_of, node_of, object_of, pod_of
from tests.conformance.profiles import refusal

DATA = Path(__file__).parent / "data"

ABSENT_PLUGINS = ("DynamicResources",)
"""Plugins of kube-scheduler's chain that are not built; what they did has to be nothing for a case to count."""


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a `.jsonl.gz` file."""

    name: str
    family: str
    objects: dict[str, list[dict[str, Any]]]
    pod_fields: dict[str, Any]
    expect: dict[str, Any]
    profile_fields: dict[str, Any] | None = None

    @classmethod
    def of(cls, line: dict[str, Any]) -> Case:
        """Return the case that one line of a file holds."""
        return cls(line["name"], line["family"], line["objects"], line["pod"], line["expect"], line.get("profile"))

    @property
    def gap(self) -> str:
        """Why the answers are not compared although all is built, "" for most cases."""
        reasons = {"crash": "kube-scheduler 1.37.1 crashes", "chance": "kube-scheduler does not do the same twice"}
        reason = reasons.get(self.expect["result"])
        outcome = self.expect.get("postfilter") or {}
        if outcome.get("message") == "not found" and not self._runs_preemption():
            return "DynamicResources, which Vane has not, speaks at PostFilter where DefaultPreemption is disabled"
        ended = (self.expect.get("prefilter") or {}).get("code") == "UnschedulableAndUnresolvable"
        if outcome and ended and self._disables("DynamicResources", "multiPoint"):
            return "DynamicResources, which Vane has not, does not speak at PostFilter where it is disabled"
        return f"{reason}: {self.expect['error']}" if reason else ""

    def _runs_preemption(self) -> bool:
        return not any(self._disables("DefaultPreemption", point) for point in ("multiPoint", "postFilter"))

    def _disables(self, plugin: str, point: str) -> bool:
        """Return whether the profile leaves out a plugin that it does not name again at this point."""
        sets = ((self.profile_fields or {}).get("plugins") or {}).get(point) or {}
        disabled = {one["name"] for one in sets.get("disabled") or ()}
        enabled = {one["name"] for one in sets.get("enabled") or ()}
        return bool(disabled & {"*", plugin}) and plugin not in enabled

    @property
    def pod(self) -> PodInfo:
        return pod_of(self.pod_fields)

    def snapshot(self) -> Snapshot:
        nodes = [node_of(fields) for fields in self.objects.get("nodes") or []]
        return Snapshot(cluster_of(nodes, self.existing_pods(), objects=self.others()), NO_SIGNALS, 0.0)

    def others(self) -> list[CatalogObject]:
        """Return the objects that are neither Pods nor Nodes, of the kinds that Vane reads."""
        return [
            object_of(kind, fields)
            for kind in KINDS
            if kind not in ("Node", "Pod")
            for fields in self.objects.get(_plural(kind)) or []
        ]

    def existing_pods(self) -> list[PodInfo]:
        """Return the Pods that count: neither Succeeded nor Failed. UIDs are made up where a fixture has none."""
        pods = []
        seen: set[str] = set()
        for number, fields in enumerate(self.objects.get("pods") or []):
            if (fields.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
                continue
            uid = fields["metadata"].get("uid") or f"{self.name}/{number}"
            uid = f"{uid}/{number}" if uid in seen else uid
            seen.add(uid)
            pods.append(pod_of({**fields, "metadata": {**fields["metadata"], "uid": uid}}))
        return pods

    def needs(self) -> tuple[str, ...]:
        """Return what the case needs beyond what is built; such a case is told, not compared."""
        needs = list(unsupported(self.pod.pod))
        refused = refusal(self.profile_fields)
        if refused is not None:
            needs.append(f"its profile: {refused}")
        needs += [
            f"scores of {plugin} that differ between nodes: not built yet"
            for plugin in ABSENT_PLUGINS
            if len(set((self.expect.get("scores") or {}).get(plugin, {}).values())) > 1
        ]
        return tuple(needs)


def _plural(kind: str) -> str:
    """Return a kind's name as in the API's paths and in the files."""
    return KINDS[kind].path.rpartition("/")[2]


def load(paths: Iterable[Path]) -> Iterator[Case]:
    """Yield the cases of all files, in order."""
    for path in paths:
        with gzip.open(path, "rt") as lines:
            for line in lines:
                yield Case.of(json.loads(line))
