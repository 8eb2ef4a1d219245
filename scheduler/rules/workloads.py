"""Workloads: a Pod reads the samples of its own workload, named by one of its labels, on each node.

A workload that has no sample anywhere is new: all nodes are missing, and none is refused for that, since it could never
get a sample.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.model.arrays import BoolArray, FloatArray, IntArray
from scheduler.model.keyed import KeyedColumn
from scheduler.model.memo import Memo
from scheduler.model.pods import PodInfo
from scheduler.model.rules import Rule, Signal
from scheduler.model.snapshot import Snapshot
from scheduler.rules.keyed import KeyedReading, group_names


class GroupReading(KeyedReading):
    """Reads the group that a label of the Pod names: workloads, and pairs to the one domain that a label names."""

    def __init__(self, rule: Rule, signal: Signal | None, kept: Memo) -> None:
        super().__init__(rule, signal, kept)
        self._label = rule.pod_label if rule.calls is None else rule.calls.pod_label
        self._has_namespace = signal is not None and signal.workload is not None and bool(signal.workload.namespace)
        self.is_choosy = bool(self._label)

    def concerns(self, pod: PodInfo) -> bool:
        return not self._label or bool(pod.labels.get(self._label))

    def group_name(self, pod: PodInfo) -> str:
        """Return what the Pod's label names, empty where it has none."""
        value = pod.labels.get(self._label, "")
        return f"{pod.namespace}/{value}" if value and self._has_namespace else value

    def _values(self, pod: PodInfo, samples: KeyedColumn, snapshot: Snapshot) -> tuple[FloatArray, str]:
        name = self.group_name(pod)
        group = samples.groups.get(name)
        if group is None:
            return self._nothing(samples), ""
        known: FloatArray | None = self._kept.known((self._values_of, group), samples)
        if known is None:
            known = self._kept.get((self._values_of, group), (samples,), lambda: samples.of_group(group))
        return known, name

    def _tripped(self, pod: PodInfo, samples: KeyedColumn, snapshot: Snapshot) -> BoolArray | None:
        group = samples.groups.get(self.group_name(pod))
        if group is None:
            return None
        known: BoolArray | None = self._kept.known((self._trips_of, group), samples)
        if known is None:
            known = self._kept.get(
                (self._trips_of, group), (samples,), lambda: samples.tripped_of_group(group, self.rule.name)
            )
        return known

    def _keys(self, samples: KeyedColumn, names: Sequence[str], at: IntArray) -> list[str]:
        return group_names(samples, at)


class WorkloadReading(GroupReading):
    """Reads `by: workload`."""

    def _is_due_a_sample(self, pod: PodInfo | None, snapshot: Snapshot) -> bool:
        if pod is None:
            return True
        samples, name = snapshot.signals.keyed.get(self.rule.signal), self.group_name(pod)
        if samples is None or not name:
            return bool(name)
        group = samples.groups.get(name)
        return group is not None and bool(samples.starts[group] < samples.starts[group + 1])
