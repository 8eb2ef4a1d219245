"""The JSON schema of a file of rule tests; how to add a field is said in `strict_yaml.schema`."""

from __future__ import annotations

from typing import Final

from scheduler.model.labels import LABEL_KEY, LABEL_VALUE
from scheduler.model.quantity import QUANTITY
from scheduler.rule_tests import objects, reader
from scheduler.rule_tests.reader import FILE, KIND, MOMENT, SERIES, TEST
from scheduler.signals.format.rule_files import API_VERSION
from scheduler.strict_yaml.schema import (
    ANY_TEXT,
    NUMBER,
    TEXT,
    TIME,
    TRUTH,
    Schema,
    document_of,
    fields_of,
    has,
    list_of,
    mapping_of,
    matching,
    one_of,
    told,
    when,
    without,
    words,
    words_or,
)

_LABELS: Final = mapping_of(matching(LABEL_VALUE), matching(LABEL_KEY))
_AMOUNTS: Final = mapping_of({"type": ["number", "string"], "pattern": matching(QUANTITY)["pattern"]})
_NAMESPACES: Final = mapping_of(_LABELS)
_NOTED: Final[Schema] = {"type": ["string", "number"], "minLength": 1}
_AT: Final = told(TIME, "the time from the start at which the rules are asked")


def rule_tests_schema() -> Schema:
    """Return the schema of a file of rule tests."""
    file = fields_of(
        FILE,
        {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": KIND},
            "rule_files": told(list_of(TEXT), "paths of rule files, relative to this file"),
            "nodes": told(list_of(_node()), "the nodes of every test that names none"),
            "namespaces": told(_NAMESPACES, "the labels of Namespaces, by their names"),
            "pods": told(list_of(_placed_pod()), "Pods on nodes, in every test"),
            "tests": told(list_of(_test()), "each has samples, a time, a Pod, and what each rule should do"),
        },
    )
    return document_of(file, f"{KIND} of {API_VERSION}", "Tests of rules, for `vane rules test`.")


def _node() -> Schema:
    fields = {
        "name": TEXT,
        "labels": _LABELS,
        "allocatable": told(_AMOUNTS, "what Pods may request of it, as `{cpu: 4, memory: 16Gi, pods: 110}`"),
        "addresses": told(list_of(TEXT), "internal addresses, by which series may name it"),
        "provider_id": TEXT,
    }
    return {"anyOf": [TEXT, fields_of(objects.NODE, fields)]}


def _pod_fields() -> dict[str, Schema]:
    return {
        "name": TEXT,
        "namespace": TEXT,
        "uid": TEXT,
        "labels": _LABELS,
        "annotations": mapping_of(ANY_TEXT),
        "requests": told(_AMOUNTS, "what its container requests, as `{cpu: 500m}`"),
    }


def _placed_pod() -> Schema:
    own = {
        "node": told(TEXT, "where it is"),
        "placed": told(TIME, "when it was placed; long ago if left out"),
        "started": told(words_or(("never",), TIME), "when its container ran; as it was placed if left out"),
        "gone": told(TIME, "when it ended"),
    }
    return fields_of(objects.PLACED_POD, _pod_fields() | own)


def _test() -> Schema:
    expect = told(list_of(_rule()), "what each rule should do then")
    pod = told(fields_of(objects.POD, _pod_fields()), "the Pod that is to be placed")
    moment = fields_of(MOMENT, {"at": _AT, "pod": pod, "expect": expect})
    values = told(_NOTED, "as promtool writes them: `0.5`, `0+10x5`, `1x5`, `_`, `stale`, with spaces between")
    series = fields_of(SERIES, {"series": told(_NOTED, 'a name and labels, as `up{node="a"}`'), "values": values})
    return fields_of(
        TEST,
        {
            "name": TEXT,
            "nodes": told(list_of(_node()), "in place of those of the file"),
            "pods": told(list_of(_placed_pod()), "beside those of the file"),
            "interval": told(TIME, "from one value of a series to the next"),
            "input_series": told(list_of(series), "what Prometheus has"),
            "at": _AT,
            "pod": pod,
            "expect": expect,
            "moments": told(list_of(moment), "several times, one after another"),
        },
        when(has("moments"), without(MOMENT.fields), has("at", "expect")),
    )


def _rule() -> Schema:
    node = fields_of(reader.NODE, {"refused": TRUTH, "missing": TRUTH, "score": NUMBER, "value": NUMBER})
    verdict = {"anyOf": [words(("refused", "allowed", "missing")), NUMBER, node]}
    return fields_of(
        reader.RULE,
        {
            "rule": told(TEXT, "the rule's name"),
            "nodes": told(
                mapping_of(verdict), "by node: `refused`, `allowed`, `missing`, a score, or several of these"
            ),
            "concerns": told(TRUTH, "whether the rule applies to the Pod"),
            "acts": told(TRUTH, "whether the rule acts on the Pod, and does not only record"),
            "weight": told(NUMBER, "what the rule weighs then"),
        },
        one_of(reader.RULE.fields[1:]),
    )
