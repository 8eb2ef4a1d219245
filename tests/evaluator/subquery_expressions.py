"""Subqueries, as in `expressions`."""

from __future__ import annotations

SUBQUERIES = (
    "max_over_time(timestamp(temperature)[5m:30s])",
    "avg_over_time(rate(requests_total[2m])[5m:17s])",
    "rate(requests_total[5m:1m])",
    "sum_over_time((temperature > 20)[10m:1m] offset 90s)",
    "last_over_time(temperature[5m:40s] @ 1700000300)",
    "count_over_time(vector(1)[5m:7s])",
    "min_over_time(time()[1m:7s])",
    "max_over_time(count_over_time(level[2m])[4m:25s])",
    "max_over_time(max_over_time(level[1m:10s])[4m:25s])",
    "quantile_over_time(0.9, temperature[5m:11s])",
    "absent_over_time(nothing_here[5m:1m])",
    "absent_over_time(level[5m:1m])",
    "present_over_time(nothing_here[5m:1m])",
    "max by (instance) (max_over_time(timestamp(requests_total)[2m:15s])) < time() - 30",
)
