"""Expressions made by chance have the same answer from the evaluator and from a real Prometheus."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.evaluator.comparing import asked, difference, evaluated
from tests.evaluator.conftest import Twins
from tests.evaluator.samples import N_STEPS, STEP_MS, T0_S

LABELS = ("node", "zone", "job", "instance", "code", "kind", "arch")
ANY = ('zone!="none"', 'job=~".*"')
MATCHERS = {
    "requests_total": ('job="web"', 'code!="500"', 'instance=~"[abd]"'),
    "errors_total": ('job="web"', 'instance!="a"'),
    "wild_total": ('kind=~"n.*|inf"', 'kind!="huge"'),
    "uneven_total": ('kind="counter"',),
    "temperature": ('zone="z1"', 'zone!=""', 'node=~"n[1-3]"'),
    "capacity": ('node!~"n1|n4"',),
    "node_info": ('zone!="z1"', 'arch="x86"', 'node=~"n[^2]"'),
    "level": ('node=~"n[1-6]"', 'node!="n3"'),
    "same_name": (),
    "other_name": ('node="n1"',),
}
# None that a library computes in its own way: what is compared has to be the same to the last bits.
OPERATORS = ("+", "-", "*", "/", "%", ">", "<", ">=", "<=", "==", "!=")
COMPARISONS = OPERATORS[5:]
OVER_RANGE = (
    *("rate", "irate", "increase", "delta", "idelta", "changes", "resets"),
    *(f"{each}_over_time" for each in ("avg", "min", "max", "sum", "count", "last", "stddev", "present")),
)
AGGREGATIONS = ("sum", "avg", "min", "max", "count", "stddev", "group")

numbers = st.sampled_from(("0", "1", "-1", "0.5", "2", "20", "1e3", "NaN", "Inf", "-Inf"))
spans = st.sampled_from(("15s", "40s", "1m", "5m", "20m"))


@st.composite
def selectors(draw: st.DrawFn, span: str = "") -> str:
    name = draw(st.sampled_from(tuple(MATCHERS)))
    matchers = draw(st.lists(st.sampled_from((*MATCHERS[name], *ANY)), max_size=2, unique=True))
    offset = draw(st.sampled_from(("", "", "", " offset 1m", " offset -2m", f" @ {T0_S + 611.5}")))
    return f"{name}{'{' + ', '.join(matchers) + '}' if matchers else ''}{f'[{span}]' if span else ''}{offset}"


@st.composite
def over_range(draw: st.DrawFn) -> str:
    selector = draw(selectors(draw(spans)))
    if draw(st.integers(0, 5)) == 0:
        return f"quantile_over_time({draw(st.sampled_from(('0', '0.3', '0.99', '1', '2')))}, {selector})"
    return f"{draw(st.sampled_from(OVER_RANGE))}({selector})"


def extended(vectors: SearchStrategy[str]) -> SearchStrategy[str]:
    return st.one_of(aggregations(vectors), calls(vectors), operations(vectors), with_scalars(vectors))


@st.composite
def aggregations(draw: st.DrawFn, vectors: SearchStrategy[str]) -> str:
    names = ", ".join(draw(st.lists(st.sampled_from(LABELS), max_size=3, unique=True)))
    grouping = draw(st.sampled_from(("", f"by ({names})", f"without ({names})")))
    chosen = draw(st.sampled_from((*AGGREGATIONS, "quantile", "topk", "bottomk")))
    if chosen == "quantile":
        return f"quantile {grouping} ({draw(st.sampled_from(('0.1', '0.5', '1')))}, {draw(vectors)})"
    if chosen in ("topk", "bottomk"):
        # All of a group: which of equals a smaller number shows hangs on the order in which series are stored.
        return f"{chosen} {grouping} (100, {draw(vectors)})"
    return f"{chosen} {grouping} ({draw(vectors)})"


@st.composite
def calls(draw: st.DrawFn, vectors: SearchStrategy[str]) -> str:
    vector = draw(vectors)
    label, other = draw(st.sampled_from(LABELS)), draw(st.sampled_from((*LABELS, "__name__")))
    return draw(
        st.sampled_from(
            (
                *(f"abs({vector})", f"-({vector})", f"floor({vector})", f"timestamp({vector})", f"absent({vector})"),
                *(f"clamp({vector}, -5, 5)", f"clamp_min({vector}, 1)", f"clamp_max({vector}, 1)", f"sgn({vector})"),
                f'label_replace({vector}, "{label}", "$1", "{other}", ".*([0-9a-z])")',
                f'label_join({vector}, "{label}", "-", "{other}", "node")',
                f"vector(scalar({vector}))",
                f"({vector})",
            )
        )
    )


@st.composite
def operations(draw: st.DrawFn, vectors: SearchStrategy[str]) -> str:
    names = ", ".join(draw(st.lists(st.sampled_from(LABELS), max_size=2, unique=True)))
    matching = draw(st.sampled_from(("", f"on ({names})", f"ignoring ({names})")))
    left, right = draw(vectors), draw(vectors)
    if draw(st.integers(0, 2)) == 0:
        return f"({left}) {draw(st.sampled_from(('and', 'or', 'unless')))} {matching} ({right})"
    operator = draw(st.sampled_from(OPERATORS))
    is_bool = "bool" if operator in COMPARISONS and draw(st.booleans()) else ""
    group = draw(st.sampled_from(("", "group_left ()", "group_right ()", "group_left (zone)", "group_right (arch)")))
    shared = {"group_left (zone)": "zone", "group_right (arch)": "arch"}.get(group)
    if not matching or (shared is not None and matching.startswith("on") and shared in names):
        group = ""
    return f"({left}) {operator} {is_bool} {matching} {group} ({right})"


@st.composite
def with_scalars(draw: st.DrawFn, vectors: SearchStrategy[str]) -> str:
    operator = draw(st.sampled_from(OPERATORS))
    is_bool = "bool" if operator in COMPARISONS and draw(st.booleans()) else ""
    scalar = draw(st.one_of(numbers, st.just("time()"), vectors.map(lambda vector: f"scalar({vector})")))
    sides = [f"({draw(vectors)})", f"({scalar})"]
    if draw(st.booleans()):
        sides.reverse()
    return f"{sides[0]} {operator} {is_bool} {sides[1]}"


expressions = st.recursive(st.one_of(selectors(), selectors(), over_range()), extended, max_leaves=5)
times = st.one_of(
    st.sampled_from((T0_S, T0_S + 300, T0_S + 900, T0_S + 1500)),
    st.integers(-20_000, N_STEPS * STEP_MS + 400_000).map(lambda after_ms: (T0_S * 1000 + after_ms) / 1000),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(expr=expressions, at_s=times)
def test_an_expression(twins: Twins, expr: str, at_s: float) -> None:
    assert difference(evaluated(twins.store, expr, at_s), asked(twins.url, expr, at_s)) == ""
