"""The JSON schema of a rule file: which kind of value each field is, and what it means in the words of the README.

How to add a field is said in `strict_yaml.schema`. What a schema can't say is left to `vane check`: whatever needs
another part of the file (names of signals, the suffixes of a unit), what compares numbers, and PromQL.
"""

from __future__ import annotations

from typing import Final

from scheduler.model.labels import LABEL_KEY, LABEL_VALUE
from scheduler.model.quantity import QUANTITY
from scheduler.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from scheduler.model.rules import (
    MAX_WEIGHT,
    BuiltInKind,
    ByKind,
    Dialect,
    EffectKind,
    FilterMissing,
    Mode,
    Reduce,
    ScoreMissing,
    Unit,
)
from scheduler.signals.format import built_in, filter_and_score, inflight, keys, match, rollout, rule_keys, tenants
from scheduler.signals.format.rule_files import API_VERSION, FILE, KIND
from scheduler.signals.format.rules import NAME, RULE, WEIGHT
from scheduler.signals.format.signals import SIGNAL, SIGNAL_NAME
from scheduler.signals.format.units import SUFFIXES
from scheduler.strict_yaml.schema import (
    TEXT,
    TIME,
    Schema,
    amount,
    document_of,
    fields_of,
    has,
    list_of,
    mapping_of,
    matching,
    not_both,
    number_above,
    number_within,
    one_of,
    pair_of,
    percentage,
    says,
    told,
    when,
    without,
    words,
    words_or,
)

AMOUNT: Final = amount(suffix for suffixes in SUFFIXES.values() for suffix in suffixes)
_SHARE: Final = percentage(number_above(0, 1))
_WEIGHT: Final = number_within(0, MAX_WEIGHT)
_POINTS: Final = {**list_of(pair_of(AMOUNT, number_within(0, filter_and_score.MAX_SCORE))), "minItems": 2}
_QUERY: Final[Schema] = {"type": ["string", "number"], "minLength": 1}
_KEY: Final = matching(LABEL_KEY)
_LABELS: Final = mapping_of(matching(LABEL_VALUE), _KEY)
_GLOBS: Final = list_of(matching(match.NAMESPACE_GLOB, match.MAX_GLOB))
_OF_NAMESPACES: Final = mapping_of({"anyOf": [matching(LABEL_VALUE), list_of(matching(LABEL_VALUE))]}, _KEY)
_SERIES_LABEL: Final = matching(keys.SERIES_LABEL)
_SIGNAL: Final = told(TEXT, "the name of a signal, of this file or another")
_NAMED_RESOURCE: Final = {"type": "string", "pattern": "^(?:hugepages-|attachable-volumes-)|/"}
_SPREAD: Final = words(("same", "all"))


def rules_schema() -> Schema:
    """Return the schema of a rule file."""
    file = fields_of(
        FILE,
        {
            "apiVersion": {"const": API_VERSION},
            "kind": {"const": KIND},
            "signals": told(mapping_of(_signal(), matching(SIGNAL_NAME)), "what is measured, by name"),
            "rules": told(list_of(_rule()), "what to do with what is measured"),
            "tenants": told(list_of(_tenant()), "who may use how much of what nodes really have"),
            "dialect": told(words(Dialect), "the language of this file's expressions"),
        },
        one_of(("signals", "rules", "tenants")),
    )
    return document_of(file, f"{KIND} of {API_VERSION}", "A rule file of Vane; `vane check` checks more.")


def _signal() -> Schema:
    return when({"type": "object", **one_of(tuple(BuiltInKind))}, _built_in_signal(), _asked_signal())


def _asked_signal() -> Schema:
    workload = fields_of(keys.WORKLOAD, {"label": _SERIES_LABEL, "namespace": _SERIES_LABEL})
    pair = fields_of(keys.PAIR, {"label": _KEY, "from": _SERIES_LABEL, "to": _SERIES_LABEL})
    belong = [when(says("by", kind), has(kind), without([kind])) for kind in (ByKind.WORKLOAD, ByKind.PAIR)]
    return fields_of(
        SIGNAL,
        {
            "expr": told(_QUERY, "PromQL, an instant vector (or a scalar for `by: cluster`)"),
            "by": told(
                words_or(keys.BY_WORDS, _KEY),
                "what one series stands for: `node`, a node label such as `topology.kubernetes.io/zone`, `cluster`, "
                "or `gpu`, `workload` or `pair`",
            ),
            "node_label": told(
                matching(keys.ANY_SERIES_LABEL),
                "the one series label that names the node, as `target` or `k8s.node.name`: a node's name or address, "
                "also with scheme, port and path; for `by: node`, `gpu` and `workload`",
            ),
            "unit": told(
                words(Unit),
                "`s`, `ms`, `bytes`, `ratio`, `percent`, `watt`, `celsius`, `none`; limits may carry a suffix of it",
            ),
            "interval": told(TIME, "how often the query runs"),
            "max_age": told(TIME, "the age from which samples count as missing"),
            "range": told(pair_of(AMOUNT, AMOUNT), "samples outside this range are dropped and counted"),
            "reduce": told(words(Reduce), "`max`, `min`, `avg`, `sum`: how to combine several series of one node"),
            "inflight": told(
                _inflight(),
                "what a placed Pod adds until samples show it: `{cpu: request}`, `{cpu: 200m}`, `{cpu: learned}`, "
                "`{value: …}`; for Pods without a request also `{cpu: request, without_request: 500m}`",
            ),
            "window": told(TIME, "how far back one value looks"),
            "smoothing": told(
                TIME, "the half-life of past samples: a node's value is their mean, and newer samples weigh more"
            ),
            "lag": told(
                _QUERY,
                "PromQL with the same labels: by how many seconds the samples are late, as "
                "`time() - max by (instance) (push_time_seconds)`",
            ),
            "server": told(TEXT, "which Prometheus is queried, by its name in the configuration"),
            "workload": told({"anyOf": [_SERIES_LABEL, workload]}, "the series labels that name the workload"),
            "pair": told(pair, "the node label of the domains, and the series labels of the two ends"),
        },
        *belong,
        when(has("node_label", "by"), {"properties": {"by": words((ByKind.NODE, ByKind.GPU, ByKind.WORKLOAD))}}),
        not_both("smoothing", "inflight"),
    )


def _inflight() -> Schema:
    words_of_resources = words((EffectKind.REQUEST, EffectKind.LEARNED))
    quantity: Schema = {"type": ["number", "string"], "pattern": matching(QUANTITY)["pattern"]}
    own = (inflight.VALUE, inflight.WITHOUT_REQUEST)
    with_floor = {
        "minProperties": 2,
        "maxProperties": 2,
        "properties": {inflight.VALUE: False, inflight.WITHOUT_REQUEST: True},
        "additionalProperties": words_of_resources,
    }
    return {
        "type": "object",
        "minProperties": 1,
        "propertyNames": words_or((CPU, MEMORY, EPHEMERAL_STORAGE, *own), _NAMED_RESOURCE),
        "properties": {
            inflight.VALUE: {"anyOf": [words((EffectKind.LEARNED,)), AMOUNT]},
            inflight.WITHOUT_REQUEST: told(quantity, "what a Pod adds that requests nothing of it"),
        },
        "additionalProperties": {"anyOf": [words_of_resources, quantity]},
        **when(has(inflight.WITHOUT_REQUEST), with_floor, {"maxProperties": 1}),
    }


def _built_in_signal() -> Schema:
    count = fields_of(
        built_in.COUNT,
        {
            "same": told({**list_of(_KEY), "uniqueItems": True}, "labels of the Pod"),
            "window": told(TIME, "also those that have gone and were placed within it"),
            "namespaces": _SPREAD,
        },
    )
    known = words_or((CPU, MEMORY, EPHEMERAL_STORAGE, PODS), _NAMED_RESOURCE)
    resource = told(known, "`cpu`, `memory`, `ephemeral-storage` or a full name, as `nvidia.com/gpu`")
    own_keys = {"not": words((ByKind.GPU, ByKind.WORKLOAD, ByKind.PAIR))}
    return fields_of(
        built_in.SIGNAL,
        {
            BuiltInKind.COUNT: told(count, "Pods there with this Pod's values of these labels"),
            BuiltInKind.PODS: told({"type": "object", "maxProperties": 0}, "all Pods there"),
            BuiltInKind.REQUESTED: resource,
            BuiltInKind.ALLOCATABLE: resource,
            "by": words_or((ByKind.NODE, ByKind.CLUSTER), {**_KEY, **own_keys}),
            "unit": words(Unit),
        },
        {"oneOf": [has(kind) for kind in BuiltInKind]},
    )


def _rule() -> Schema:
    labels_alone = without(("signal", "filter", "score", "weight"))
    measured = {**has("signal"), **one_of(("filter", "score"))}
    return fields_of(
        RULE,
        {
            "name": matching(NAME),
            "match": told(
                _match(),
                "the Pods that the rule applies to, all if left out: `namespaces` (globs), `labels`, "
                '`matchExpressions`, `requests` (names of resources, as `["nvidia.com/*"]`; the Pod requests one of '
                "them), and by the labels of the Pod's namespace: `namespace_labels`, `namespaceSelector`; all of "
                "these hold together, see below",
            ),
            "signal": _SIGNAL,
            "filter": told(
                _filter(),
                "`max`, `min`, `clear` (hysteresis), `hold` (how long a changed verdict stays at least), `valve` (if "
                "more than this share of nodes were refused, only score), `missing: allow|reject`, `soft_after` (for a "
                "Pod that has waited longer, as `10m`, only score)",
            ),
            "score": told(
                _score(),
                "`best` and `worst`, or `points: [[x, y], …]` with y from 0 to 100; `missing: neutral|best|worst`",
            ),
            "weight": told(
                {"anyOf": [_WEIGHT, _weight_signal()]},
                "0 to 100, or `{signal: …, points: …}`: a weight that a cluster-wide signal sets",
            ),
            "label_match": told(
                {"anyOf": [_KEY, fields_of(match.LABEL_MATCH, {"pod": _KEY, "node": _KEY})]},
                "used alone, without a signal: the node's label must have the value of the Pod's label, as "
                "`{pod: tenant, node: example.com/tenant}`; a Pod without the label may go anywhere",
            ),
            "workload": told(_KEY, "the label of the Pod that names its workload"),
            "calls": told(_calls(), "the Pods that the Pod calls"),
            "gpus": told(list_of(matching(rule_keys.CARD_NAME)), "the resources that are cards"),
            "mode": told(
                words(Mode), "`shadow`: the rule acts on no Pod; each decision records what the rule would have done"
            ),
            "canary": told(
                _canary(),
                'the Pods on which the rule acts, `{percent: 10, namespaces: ["test-*"]}`; for all others it only '
                "records what it would do. Rules with the same percentage act on the same Pods",
            ),
            "max_share": told(
                _SHARE,
                "the largest share of the sum of all weights that this weight may have, as `50%`; default `30%`; "
                "`100%` means no cap",
            ),
            "max_age": told(
                TIME,
                "the age from which samples are absent for this rule, from two intervals to the signal's `max_age`",
            ),
        },
        when(has("label_match"), {**labels_alone, **not_both("max_age")}, measured),
        {"dependencies": {"weight": ["score"], "max_share": ["score"]}},
        {"not": {**says("mode", Mode.SHADOW), "required": ["mode", "canary"]}},
    )


def _match() -> Schema:
    of_namespace = fields_of(match.SELECTOR, {"matchLabels": _LABELS, "matchExpressions": _expressions()})
    return fields_of(
        match.MATCH,
        {
            "namespaces": _GLOBS,
            "labels": _LABELS,
            "requests": told(
                list_of(matching(match.RESOURCE_GLOB)), "resources, as globs; the Pod requests one of them"
            ),
            "matchExpressions": _expressions(),
            "namespace_labels": told(_OF_NAMESPACES, "labels of the Pod's Namespace, for each one of the values"),
            "namespaceSelector": told(of_namespace, "a label selector for the Pod's Namespace"),
        },
    )


def _expressions() -> Schema:
    values = {"type": "array", "items": matching(LABEL_VALUE)}
    operators = words((*match.WITH_VALUES, *match.INSTEAD))
    takes_some = {"properties": {"operator": words(match.WITH_VALUES)}, "required": ["operator"]}
    some: Schema = {"properties": {"values": {"minItems": 1}}, "required": ["values"]}
    none: Schema = {"properties": {"values": {"maxItems": 0}}}
    known = {"key": _KEY, "operator": operators, "values": values}
    return list_of(fields_of(match.EXPRESSION, known, when(takes_some, some, none)))


def _limits() -> dict[str, Schema]:
    return {
        "max": told(AMOUNT, "above it a node is refused"),
        "min": told(AMOUNT, "below it a node is refused"),
        "clear": told(AMOUNT, "where a refusal ends"),
        "hold": told(TIME, "how long a changed verdict stays at least"),
    }


def _filter() -> Schema:
    more = {
        "valve": told(_SHARE, "if more than this share of nodes were refused, the rule only scores"),
        "missing": told(words(FilterMissing), "what becomes of a node without a sample"),
        "soft_after": told(TIME, "for a Pod that has waited longer, as `10m`, the rule only scores"),
    }
    return fields_of(
        filter_and_score.FILTER, {**_limits(), **more}, one_of(("max", "min")), not_both("max", "min", "clear")
    )


def _score() -> Schema:
    return fields_of(
        filter_and_score.SCORE,
        {
            "best": told(AMOUNT, "the value that gives 100 points"),
            "worst": told(AMOUNT, "the value that gives 0 points"),
            "points": told(_POINTS, "pairs [value, points], values rising, points from 0 to 100"),
            "missing": told(words(ScoreMissing), "what a node without a sample gets"),
        },
        when(has("points"), without(("best", "worst")), has("best", "worst")),
    )


def _weight_signal() -> Schema:
    return fields_of(WEIGHT, {"signal": _SIGNAL, "points": _POINTS, "missing": _WEIGHT})


def _calls() -> Schema:
    return fields_of(
        rule_keys.CALLS,
        {
            "labels": told(_LABELS, "labels of the Pods that are called"),
            "namespaces": _SPREAD,
            "pod_label": told(_KEY, "the label of the Pod that names the domain"),
        },
        when(has("pod_label"), without(("labels", "namespaces")), has("labels")),
    )


def _canary() -> Schema:
    return fields_of(rollout.CANARY, {"percent": percentage(number_above(0, 100)), "namespaces": _GLOBS})


def _tenant() -> Schema:
    resource = words_or((CPU, MEMORY, EPHEMERAL_STORAGE), _NAMED_RESOURCE)
    bound = fields_of(
        tenants.BOUND, {"signal": _SIGNAL, **_limits()}, one_of(("max", "min")), not_both("max", "min", "clear")
    )
    return fields_of(
        tenants.TENANT,
        {
            "name": matching(NAME),
            "match": fields_of(tenants.MATCH, {"namespaces": _GLOBS, "namespace_labels": _OF_NAMESPACES}),
            "overcommit": told(matching(tenants.PERCENTAGE), "a percentage of the real allocatable, as `105%`"),
            "resources": told({**list_of(resource), "uniqueItems": True}, "to which resources it applies"),
            "while": told(list_of(bound), "what must be measured for more than 100 %"),
        },
    )
