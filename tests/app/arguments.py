"""Cases with arguments in the profile: asks kube-scheduler's framework for them, and reads what it answered.

`python -m tests.app.arguments ORACLE CASES…` writes data/arguments.jsonl.gz anew: ORACLE is the program that
`tests/controlplane/build.py` builds from `oracle/`, CASES are files of cases as in tests/conformance/data. Of each
kind of arguments those cases are kept whose answer they change.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).parent / "data" / "arguments.jsonl.gz"
_ASKED, _KEPT = 120, 12
_FAMILIES: Final = {"InterPodAffinity": "interpod", "PodTopologySpread": "spread", "VolumeBinding": "volume"}
"""In whose cases arguments are tried out; those of other plugins in all but the ones about volumes."""
_DECIDED: Final = ("filter", "raw", "scores", "total", "failure_message")

Json = dict[str, Any]


def _required(*terms: Json) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


def _label(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


_RESOURCES: Final[list[Json]] = [
    {"name": "nvidia.com/gpu", "weight": 5},
    {"name": "cpu", "weight": 3},
    {"name": "memory"},
    {"name": "ephemeral-storage", "weight": 2},
    {"name": "example.com/foo", "weight": 7},
]
_BENT: Final = [{"utilization": 0, "score": 0}, {"utilization": 35, "score": 9}, {"utilization": 80, "score": 2}]
_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"

ARGUMENTS: Final[dict[str, tuple[str, Json]]] = {
    "most allocated": ("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated", "resources": _RESOURCES}}),
    "least allocated": ("NodeResourcesFit", {"scoringStrategy": {"type": "LeastAllocated", "resources": _RESOURCES}}),
    "a resource twice": (
        "NodeResourcesFit",
        {"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu"}, {"name": "cpu", "weight": 9}]}},
    ),
    "a shape": (
        "NodeResourcesFit",
        {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": _RESOURCES,
                "requestedToCapacityRatio": {"shape": _BENT},
            }
        },
    ),
    "ignored resources": (
        "NodeResourcesFit",
        {"ignoredResources": ["example.com/foo", "cpu"], "ignoredResourceGroups": ["nvidia.com"]},
    ),
    "balance of five": (
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": one["name"]} for one in _RESOURCES]},
    ),
    "balance of one": ("NodeResourcesBalancedAllocation", {"resources": [{"name": "memory"}]}),
    "added affinity": (
        "NodeAffinity",
        {
            "addedAffinity": {
                **_required(_label(_ZONE, "Exists"), _label("disk", "In", "ssd")),
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 7, "preference": _label("disk", "Exists")},
                    {"weight": 3, "preference": _label(_ZONE, "NotIn", "zone-a")},
                ],
            }
        },
    ),
    "added affinity to nothing": ("NodeAffinity", {"addedAffinity": _required({})}),
    "hard affinity weighs": (
        "InterPodAffinity",
        {"hardPodAffinityWeight": 50, "ignorePreferredTermsOfExistingPods": True},
    ),
    "hard affinity does not weigh": ("InterPodAffinity", {"hardPodAffinityWeight": 0}),
    "own constraints": (
        "PodTopologySpread",
        {
            "defaultingType": "List",
            "defaultConstraints": [
                {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule"},
                {"maxSkew": 2, "topologyKey": _HOST, "whenUnsatisfiable": "ScheduleAnyway"},
            ],
        },
    ),
    "a shape of volumes": ("VolumeBinding", {"shape": [{**one, "score": one["score"] + 1} for one in _BENT]}),
    "no constraints": ("PodTopologySpread", {"defaultingType": "List"}),
}
"""Arguments by what they ask for, with the plugin that takes them."""


def profile_of(kind: str) -> Json:
    plugin, args = ARGUMENTS[kind]
    return {"schedulerName": "default-scheduler", "pluginConfig": [{"name": plugin, "args": args}]}


def recorded() -> Iterator[Json]:
    with gzip.open(DATA, "rt") as lines:
        yield from map(json.loads, lines)


def _answered(oracle: Path, kind: str, cases: list[Json]) -> list[Json]:
    """Return the cases with this profile and its answers, as far as the answer is another than it was."""
    asked = [{**case, "family": kind, "profile": profile_of(kind)} for case in cases]
    lines = "".join(json.dumps(case) + "\n" for case in asked)
    ended = subprocess.run([oracle], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    return [
        answer
        for case, answer in zip(cases, answers, strict=True)
        if answer["expect"]["result"] != "crash"
        and any(answer["expect"].get(field) != case["expect"].get(field) for field in _DECIDED)
    ]


def _record(oracle: Path, files: list[Path]) -> None:
    cases = [json.loads(line) for file in files for line in gzip.open(file, "rt")]
    cases = [case for case in cases if case["expect"]["result"] != "error"]
    with gzip.open(DATA, "wt", compresslevel=9) as out:
        for i, kind in enumerate(ARGUMENTS):
            own = _FAMILIES.get(ARGUMENTS[kind][0])
            here = [case for case in cases if (own in case["family"] if own else "volume" not in case["family"])]
            changed = _answered(oracle, kind, here[i % 7 :: max(1, len(here) // _ASKED)])
            small = sorted(changed, key=lambda case: len(json.dumps(case)))[:_KEPT]
            out.writelines(json.dumps(case, sort_keys=True) + "\n" for case in small)


if __name__ == "__main__":
    _record(Path(sys.argv[1]), [Path(file) for file in sys.argv[2:]])
