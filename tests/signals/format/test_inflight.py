from __future__ import annotations

import pytest

from scheduler.errors import RuleFilesError
from scheduler.model.rules import Effect, EffectKind
from scheduler.signals.format.rule_files import parse_rule_files

HEAD = "apiVersion: vane.dev/v1\nkind: Rules\n"


def inflight(text: str, unit: str = "ratio", by: str = "node") -> Effect | None:
    body = f"    expr: max by (instance, zone) (use)\n    by: {by}\n    unit: {unit}\n    inflight: {text}\n"
    rules = parse_rule_files({"a.yaml": f"{HEAD}signals:\n  use:\n{body}".encode()})
    return rules.signals["use"].inflight


@pytest.mark.parametrize(
    ("text", "unit", "effect"),
    [
        ("{cpu: request}", "ratio", Effect(EffectKind.REQUEST, "cpu")),
        ("{cpu: learned}", "percent", Effect(EffectKind.LEARNED, "cpu")),
        ("{cpu: request, without_request: 500m}", "ratio", Effect(EffectKind.REQUEST, "cpu", 0.0, 500.0)),
        ("{without_request: 1Gi, memory: learned}", "ratio", Effect(EffectKind.LEARNED, "memory", 0.0, 2.0**30)),
        ("{cpu: 200m}", "ratio", Effect(EffectKind.CONSTANT, "cpu", 200.0)),
        ("{cpu: 0.2}", "ratio", Effect(EffectKind.CONSTANT, "cpu", 200.0)),
        ("{memory: 512Mi}", "bytes", Effect(EffectKind.CONSTANT, "memory", 512 * 2.0**20)),
        ("{nvidia.com/gpu: request}", "ratio", Effect(EffectKind.REQUEST, "nvidia.com/gpu")),
        ("{value: 12.5}", "watt", Effect(EffectKind.CONSTANT, "", 12_500_000.0)),
        ("{value: 5%}", "ratio", Effect(EffectKind.CONSTANT, "", 50_000.0)),
        ("{value: 1GiB}", "bytes", Effect(EffectKind.CONSTANT, "", 2.0**30)),
        ("{value: learned}", "ms", Effect(EffectKind.LEARNED, "")),
    ],
)
def test_what_a_pod_adds(text: str, unit: str, effect: Effect) -> None:
    assert inflight(text, unit) == effect


def test_a_signal_by_node_label_takes_it_too() -> None:
    assert inflight("{cpu: request}", by="topology.kubernetes.io/zone") == Effect(EffectKind.REQUEST, "cpu")


@pytest.mark.parametrize(
    ("text", "unit", "by", "message"),
    [
        ("{cpu: request, memory: request}", "ratio", "node", "must be one resource, or `value`, got 2"),
        ("{without_request: 1}", "ratio", "node", "must be one resource, or `value`, got 0"),
        ("{cpu: 1, without_request: 1}", "ratio", "node", "every Pod adds the same, whatever it requests. Drop it"),
        ("{value: learned, without_request: 1}", "watt", "node", "without_request: no resource. Drop it"),
        (
            "{cpu: request, without_request: some}",
            "ratio",
            "node",
            "must be an amount, got 'some'. Write one, as `200m`",
        ),
        ("{cpu: request, without_request: 0}", "ratio", "node", "not an amount that a Pod can add, got 0"),
        ("request", "ratio", "node", "must be a mapping, got 'request'"),
        ("{cqu: request}", "ratio", "node", "not a resource, got 'cqu' (did you mean \"cpu\"?)"),
        ("{cpu: requests}", "ratio", "node", "must be `request`, `learned` or an amount, got 'requests'"),
        ("{cpu: -200m}", "ratio", "node", "not an amount that a Pod can add, got '-200m'"),
        ("{cpu: 0}", "ratio", "node", "not an amount that a Pod can add, got 0"),
        ("{cpu: request}", "ms", "node", "does not follow from cpu: its unit is ms"),
        ("{cpu: request}", "bytes", "node", "does not follow from cpu: its unit is bytes"),
        ("{value: request}", "watt", "node", "`request` needs a resource, got 'request'"),
        ("{value: 5ms}", "watt", "node", "'ms' does not convert to watt"),
        ("{value: 0}", "watt", "node", "not an amount that a Pod can add, got 0"),
        ("{cpu: request}", "ratio", "cluster", "Pods add to what is measured by node or by node label"),
    ],
)
def test_what_is_refused(text: str, unit: str, by: str, message: str) -> None:
    with pytest.raises(RuleFilesError) as caught:
        inflight(text, unit, by)

    assert message in str(caught.value)
    assert "inflight" in str(caught.value)
