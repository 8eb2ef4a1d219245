"""What a Pod reads of a signal whose values differ from Pod to Pod: its cards, its workload, the Pods that it calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from scheduler.model.labels import is_label_key
from scheduler.model.rules import ByKind, Calls, RuleScore
from scheduler.signals.format.match import read_labels
from scheduler.signals.format.signals import Declared
from scheduler.strict_yaml.fields import Fields, Shape, read_fields, read_list
from scheduler.strict_yaml.nodes import YamlNode
from scheduler.strict_yaml.report import Scope, got
from scheduler.strict_yaml.values import read_text, read_word

KEY_FIELDS: Final = ("workload", "calls", "gpus")
CALLS: Final = Shape(fields=("labels", "namespaces", "pod_label"))

# NVIDIA's and AMD's device plugins name parts of cards after their size, and Intel's has one name for each driver.
CARDS: Final = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/mig-*",
    "amd.com/gpu",
    "amd.com/*_nps*",
    "gpu.intel.com/i915",
    "gpu.intel.com/xe",
)
"""The resources that are cards or parts of them, where a rule does not say which."""

_KINDS: Final = {"workload": ByKind.WORKLOAD, "calls": ByKind.PAIR, "gpus": ByKind.GPU}
_WRITE: Final = {
    "workload": "Write the Pod label that names the workload, as `workload: app.kubernetes.io/name`",
    "calls": "Write which Pods are called, as `calls: {labels: {app: cart}}`",
    "gpus": "Write the resources that are cards, as `gpus: [nvidia.com/gpu]`",
}
CARD_NAME: Final = re.compile(
    r"(?=[^/]{1,253}/)[a-z0-9*]([-a-z0-9.*]*[a-z0-9*])?/[A-Za-z0-9*]([-A-Za-z0-9_.*]{0,61}[A-Za-z0-9*])?"
)


@dataclass(frozen=True, slots=True)
class RuleKeys:
    """The fields of Rule that say what a Pod reads."""

    pod_label: str = ""
    calls: Calls | None = None
    gpu_resources: tuple[str, ...] = ()


def read_rule_keys(fields: Fields, signal: Declared | None, score: RuleScore | None) -> RuleKeys:
    """Return what Pods read of the rule's signal, after saying what is missing for that and what is out of place."""
    by = None if signal is None else signal.by
    for name, kind in _KINDS.items():
        if name in fields and ("signal" not in fields or by not in (kind, None)):
            found = f"'{signal.name}' is {_shown(by)}" if signal and by else "the rule has none"
            what = f"belongs to a signal `by: {kind.value}`, and {found}"
            fields.scope.inner(name).problem(fields.at(name), f"{what}. Drop the line, or take another signal")
        elif name not in fields and signal is not None and by is kind and kind is not ByKind.GPU:
            what = f"signal '{signal.name}' is `by: {kind.value}`, and `{name}` is missing"
            fields.scope.problem(fields.node, f"{what}: nothing says what a Pod reads. {_WRITE[name]}")
    pod_label = _pod_label(fields.get("workload"), fields.scope.inner("workload"), _WRITE["workload"])
    calls = _calls(fields)
    gpus = _gpus(fields)
    if by is ByKind.GPU:
        _check_monotone(fields, score)
    return RuleKeys(pod_label, calls, gpus or CARDS if by is ByKind.GPU else ())


def _shown(by: ByKind) -> str:
    return "by a node label" if by is ByKind.LABEL else f"`by: {by.value}`"


def _pod_label(node: YamlNode | None, scope: Scope, write: str) -> str:
    text = read_text(node, scope)
    if text is None or node is None:
        return ""
    if not is_label_key(text):
        scope.problem(node, f"not a label's key, {got(node)}. {write}")
        return ""
    return text


def _calls(fields: Fields) -> Calls | None:
    scope = fields.scope.inner("calls")
    inner = read_fields(fields.get("calls"), scope, CALLS)
    if inner is None:
        return None
    write = f"{_WRITE['calls']}, or `calls: {{pod_label: example.com/calls-zone}}`"
    if "labels" not in inner and "pod_label" not in inner:
        scope.problem(inner.node, f"neither labels nor pod_label: no Pod is called. {write}")
    for name in ("labels", "namespaces"):
        if "pod_label" in inner and name in inner:
            what = f"pod_label and {name} exclude each other, got both"
            scope.problem(inner.at(name), f"{what}. Keep one of the two forms")
    labels = read_labels(inner.get("labels"), scope.inner("labels"))
    spread = read_word(inner.get("namespaces"), scope.inner("namespaces"), ("same", "all"))
    pod_label = _pod_label(inner.get("pod_label"), scope.inner("pod_label"), write)
    return Calls(labels, all_namespaces=spread == "all", pod_label=pod_label)


def _gpus(fields: Fields) -> tuple[str, ...]:
    scope = fields.scope.inner("gpus")
    names = []
    for item in read_list(fields.get("gpus"), scope, _WRITE["gpus"]) or ():
        name = read_text(item, scope)
        if name is not None and not CARD_NAME.fullmatch(name):
            write = f"{_WRITE['gpus']}; `*` stands for anything"
            scope.problem(item, f"not the name of an extended resource, {got(item)}. {write}")
        elif name is not None:
            names.append(name)
    return tuple(names)


def _check_monotone(fields: Fields, score: RuleScore | None) -> None:
    """Cards are ranked from the best to the worst, so a score has to say which end is which."""
    if score is None:
        return
    steps = [after - before for before, after in pairwise(score.curve.ys)]
    if any(step > 0 for step in steps) and any(step < 0 for step in steps):
        what = "the points of a signal `by: gpu` must only rise or only fall, because they rank the cards"
        fields.scope.inner("score").problem(fields.at("score"), f"{what}. Write `best: …` and `worst: …`")
