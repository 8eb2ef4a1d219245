"""PodSelection: the `pods` argument by which a plugin that is not for every Pod says which ones it takes."""

from __future__ import annotations

import msgspec

from scheduler.errors import InvalidObjectError
from scheduler.framework.args import PluginArgs
from scheduler.model.labels import check_requirement, is_label_key, requirement_holds
from scheduler.model.pods import PodInfo
from scheduler.model.structs import Requirement

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class LabelExpression(PluginArgs, frozen=True):
    """A requirement on labels, as in a LabelSelector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.operator not in _OPERATORS:
            raise ValueError(f"operator: got {self.operator!r}. Write {', '.join(_OPERATORS)}")
        try:
            check_requirement(self.requirement)
        except InvalidObjectError as error:
            raise ValueError(str(error)) from error

    @property
    def requirement(self) -> Requirement:
        return Requirement(key=self.key, operator=self.operator, values=list(self.values))


class PodSelection(PluginArgs, frozen=True):
    """Which Pods: those for which all of it holds; an empty one takes every Pod.

    `matchLabels` and `matchExpressions` are those of a LabelSelector; `matchAnnotations` asks annotations for a value.
    """

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[LabelExpression, ...] = ()
    match_annotations: dict[str, str] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, keys in (("matchLabels", self.match_labels), ("matchAnnotations", self.match_annotations)):
            for key in keys:
                check_key(name, key)

    def takes(self, pod: PodInfo) -> bool:
        labels, annotations = pod.labels, annotations_of(pod)
        return (
            all(labels.get(key) == value for key, value in self.match_labels.items())
            and all(annotations.get(key) == value for key, value in self.match_annotations.items())
            and all(requirement_holds(one.requirement, labels) for one in self.match_expressions)
        )


EVERY_POD = PodSelection()


def check_key(field: str, key: str) -> None:
    """Raise ValueError where `key` cannot be the key of a label or an annotation."""
    if not is_label_key(key):
        raise ValueError(f"{field}: got the key {key!r}. Write a qualified name, as vane.dev/node")


def annotations_of(pod: PodInfo) -> dict[str, str]:
    return pod.pod.metadata.annotations or {}
