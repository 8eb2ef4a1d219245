"""The functions and aggregations of Prometheus 3.14; a test compares them with the release itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from scheduler.promql.nodes import Function, Type

_TYPES: Final = {"v": Type.VECTOR, "m": Type.MATRIX, "s": Type.SCALAR, "t": Type.STRING}
# Arguments, result, how many more arguments, and names; v is a vector, m a range, s a number, t a string.
_FUNCTIONS: Final = """
v v 0 abs absent acos acosh asin asinh atan atanh ceil cos cosh deg exp floor histogram_avg histogram_count
v v 0 histogram_stddev histogram_stdvar histogram_sum ln log10 log2 rad sgn sin sinh sort sort_desc sqrt tan tanh
v v 0 timestamp
m v 0 absent_over_time avg_over_time changes count_over_time delta deriv first_over_time idelta increase irate
m v 0 last_over_time max_over_time min_over_time present_over_time rate resets stddev_over_time stdvar_over_time
m v 0 sum_over_time
v v 1 day_of_month day_of_week day_of_year days_in_month hour minute month year
vs v 0 clamp_max clamp_min
vs v 1 round
vss v 0 clamp
ssv v 0 histogram_fraction
sv v 0 histogram_quantile
sm v 0 quantile_over_time
ms v 0 predict_linear
vttt v -1 label_join
vtttt v 0 label_replace
- s 0 pi time
v s 0 scalar
s v 0 vector
"""
_EXPERIMENTAL: Final = """
v v 0 start_timestamp
m v 0 mad_over_time ts_of_first_over_time ts_of_last_over_time ts_of_max_over_time ts_of_min_over_time
mss v 0 double_exponential_smoothing
vtss v 9 histogram_quantiles
vv v 1 info
vt v -1 sort_by_label sort_by_label_desc
- s 0 end range start step
ss s 0 max_of min_of
"""


def _read(table: str, *, is_experimental: bool) -> Iterator[tuple[str, Function]]:
    for line in table.split("\n"):
        for name in line.split()[3:]:
            arguments, returns, variadic = line.split()[:3]
            types = tuple(_TYPES[letter] for letter in arguments.strip("-"))
            yield name, Function(name, types, _TYPES[returns], int(variadic), is_experimental)


FUNCTIONS: Final[Mapping[str, Function]] = {
    **dict(_read(_FUNCTIONS, is_experimental=False)),
    **dict(_read(_EXPERIMENTAL, is_experimental=True)),
}

AGGREGATIONS: Final[Mapping[str, Type | None]] = {
    **dict.fromkeys(("sum", "avg", "count", "min", "max", "group", "stddev", "stdvar")),
    **dict.fromkeys(("topk", "bottomk", "quantile", "limitk", "limit_ratio"), Type.SCALAR),
    "count_values": Type.STRING,
}
"""By name, the type of the parameter that stands before what is aggregated."""
EXPERIMENTAL_AGGREGATIONS: Final = frozenset({"limitk", "limit_ratio"})
