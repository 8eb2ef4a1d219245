"""What a rule does with a value: refuse a node (`filter:`), or give it points (`score:`)."""

from __future__ import annotations

from typing import Final

from scheduler.model.rules import Curve, FilterMissing, RuleFilter, RuleScore, ScoreMissing
from scheduler.signals.format.units import Measure, read_amount, read_share
from scheduler.strict_yaml.fields import Fields, Shape, read_fields, read_list
from scheduler.strict_yaml.nodes import YamlNode, YamlSequence, is_broken
from scheduler.strict_yaml.report import Scope, got
from scheduler.strict_yaml.values import read_duration, read_plain_number, read_word

MAX_SCORE: Final = 100.0
MAX_HOLD_S: Final = 3_600.0
MAX_SOFT_AFTER_S: Final = 7 * 86_400.0
_POINTS_ADVICE: Final = "Write at least two pairs, as `[[0, 100], [0.5, 80], [1, 0]]`"

FILTER: Final = Shape(
    fields=("max", "min", "clear", "valve", "missing", "hold", "soft_after"),
    refused={"hysteresis": "not a field, got 'hysteresis'. Write `clear: …`, where the refusal ends, and `hold: 60s`"},
)
SCORE: Final = Shape(
    fields=("best", "worst", "points", "missing"),
    later={"smoothing": "smoothing of scores (smoothing)", "curve": "named curves (curve)"},
)


def read_filter(node: YamlNode | None, scope: Scope, measure: Measure, shape: Shape = FILTER) -> RuleFilter | None:
    fields = read_fields(node, scope, shape)
    if fields is None:
        return None
    limits = {name: read_amount(fields.get(name), scope.inner(name), measure) for name in ("max", "min", "clear")}
    highest, lowest, clear = limits["max"], limits["min"], limits["clear"]
    if "max" not in fields and "min" not in fields:
        scope.problem(fields.node, "neither max nor min: nothing is refused. Write `max: …`, or `min: …`")
    if measure.unit is not None and highest is not None and lowest is not None and highest <= lowest:
        what = f"must be above min, got max {highest:g} and min {lowest:g}"
        scope.inner("max").problem(fields.at("max"), f"{what}. Swap them, or drop one")
    _check_clear(fields, measure, highest, lowest, clear)
    missing = read_word(fields.get("missing"), scope.inner("missing"), list(FilterMissing))
    return RuleFilter(
        max=highest,
        min=lowest,
        max_clear=clear if clear is not None and highest is not None else highest,
        min_clear=clear if clear is not None and lowest is not None else lowest,
        valve=read_share(fields.get("valve"), scope.inner("valve"), "the nodes"),
        missing=FilterMissing(missing) if missing else FilterMissing.ALLOW,
        hold_s=_hold(fields.get("hold"), scope.inner("hold")),
        soft_after_s=_soft_after(fields.get("soft_after"), scope.inner("soft_after")),
    )


def _hold(node: YamlNode | None, scope: Scope) -> float:
    seconds = read_duration(node, scope)
    if seconds is None or node is None:
        return 0.0
    if not 0.0 < seconds <= MAX_HOLD_S:
        scope.problem(node, f"must be above 0s and at most 1h, {got(node)}. Write `hold: 60s`, or drop the line")
    return seconds


def _soft_after(node: YamlNode | None, scope: Scope) -> float:
    seconds = read_duration(node, scope)
    if seconds is None or node is None:
        return 0.0
    if not 0.0 < seconds <= MAX_SOFT_AFTER_S:
        what = f"must be above 0s and at most 7d, {got(node)}"
        scope.problem(node, f"{what}. Write how long a Pod waits before the rule only scores, as `soft_after: 10m`")
    return seconds


def _check_clear(
    fields: Fields, measure: Measure, highest: float | None, lowest: float | None, clear: float | None
) -> None:
    scope, key = fields.scope.inner("clear"), fields.at("clear")
    if "clear" in fields and "max" in fields and "min" in fields:
        scope.problem(
            key, "unclear whether it belongs to max or min, got both. Write two rules, one with max and one with min"
        )
    elif measure.unit is None or clear is None:
        return
    elif highest is not None and clear >= highest:
        scope.problem(
            key, f"must be below max, got clear {clear:g} and max {highest:g}. Write a value below {highest:g}"
        )
    elif lowest is not None and clear <= lowest:
        scope.problem(key, f"must be above min, got clear {clear:g} and min {lowest:g}. Write a value above {lowest:g}")


def read_score(node: YamlNode | None, scope: Scope, measure: Measure) -> RuleScore | None:
    fields = read_fields(node, scope, SCORE)
    if fields is None:
        return None
    missing = read_word(fields.get("missing"), scope.inner("missing"), list(ScoreMissing))
    ends = [name for name in ("best", "worst") if name in fields]
    if "points" in fields and ends:
        scope.problem(
            fields.at(ends[0]), f"points and {ends[0]} exclude each other, got both. Keep one of the two forms"
        )
    elif "points" not in fields and len(ends) < 2:
        what = f"`{'worst' if ends == ['best'] else 'best'}` is missing" if ends else "no scale"
        scope.problem(fields.node, f"{what}. Write `best: …` and `worst: …`, or `points: [[…, …], […, …]]`")
    curve = read_curve(fields.get("points"), scope.inner("points"), measure)
    line = _line(fields, measure)
    if line is None and curve is None:
        return None
    return RuleScore(curve or line or Curve((), ()), ScoreMissing(missing) if missing else ScoreMissing.NEUTRAL)


def _line(fields: Fields, measure: Measure) -> Curve | None:
    best = read_amount(fields.get("best"), fields.scope.inner("best"), measure)
    worst = read_amount(fields.get("worst"), fields.scope.inner("worst"), measure)
    if best is None or worst is None or measure.unit is None:
        return None
    if best == worst:
        write = "Write two different values"
        fields.scope.problem(fields.at("worst"), f"best and worst must differ, got {best:g} for both. {write}")
        return None
    if best < worst:
        return Curve((best, worst), (MAX_SCORE, 0.0))
    return Curve((worst, best), (0.0, MAX_SCORE))


def read_curve(node: YamlNode | None, scope: Scope, measure: Measure) -> Curve | None:
    """Return points as a curve: x in the signal's unit and rising, y from 0 to 100."""
    items = read_list(node, scope, _POINTS_ADVICE)
    if items is None or node is None:
        return None
    if len(items) < 2:
        scope.problem(node, f"must be at least two points, got {len(items)}. {_POINTS_ADVICE}")
    xs: list[float] = []
    ys: list[float] = []
    is_whole = True
    for item in items:
        point = _point(item, scope, measure)
        if point is None:
            is_whole = False
            continue
        x, y = point
        if xs and x <= xs[-1] and measure.unit is not None:
            scope.problem(item, f"x must rise from point to point, got {x:g} after {xs[-1]:g}. Sort the points by x")
            is_whole = False
        xs.append(x)
        ys.append(y)
    return Curve(tuple(xs), tuple(ys)) if is_whole and len(items) > 1 else None


def _point(item: YamlNode, scope: Scope, measure: Measure) -> tuple[float, float] | None:
    if is_broken(item):
        return None
    if not isinstance(item, YamlSequence) or len(item.items) != 2:
        shown = f"got a list of {len(item.items)}" if isinstance(item, YamlSequence) else got(item)
        scope.problem(item, f"a point must be a pair [x, y], {shown}. {_POINTS_ADVICE}")
        return None
    x = read_amount(item.items[0], scope, measure)
    y = read_plain_number(item.items[1], scope, 0.0, MAX_SCORE)
    return None if x is None or y is None else (x, y)
