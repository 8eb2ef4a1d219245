"""What is sent with a query, so that servers with the Prometheus API give complete, fresh and bounded answers.

| flavor | look-back | whole answers | fresh answers | series |
|---|---|---|---|---|
| `prometheus` | `lookback_delta` | | | `limit` |
| `thanos` | `lookback_delta` | `partial_response=false` | `dedup=true`, raw samples only | counted here |
| `mimir` | that of the server (5 min) | always whole | `Cache-Control: no-store` | counted here |
| `victoriametrics` | `max_lookback` | `deny_partial_response=1` | `nocache=1` | counted here |

Where a query cannot bound the look-back, a series that has ended without a word (a recorded one, or one that was
pushed) goes on in the answers for as long as the server looks back: only the timestamps of its samples tell its age.
What a server does not know, it ignores; so `prometheus` sends Thanos' parameters too, for users who set no flavor.

Sources (behaviour): Prometheus v3 web/api/v1; Thanos pkg/api/query/v1.go; Mimir pkg/frontend/querymiddleware/codec.go,
which hands on no more than query and time; VictoriaMetrics app/vmselect/prometheus/prometheus.go, which without
`nocache` evaluates 30 s ago (-search.latencyOffset) and says that it was now.
"""

from __future__ import annotations

from typing import Final

from scheduler.settings.prometheus import Flavor

_WHOLE: Final = {"partial_response": "false", "dedup": "true"}
_PARAMETERS: Final = {
    Flavor.PROMETHEUS: _WHOLE,
    Flavor.THANOS: {**_WHOLE, "max_source_resolution": "0s"},
    Flavor.MIMIR: {},
    Flavor.VICTORIAMETRICS: {"nocache": "1", "deny_partial_response": "1"},
}
_HEADERS: Final = {Flavor.MIMIR: {"Cache-Control": "no-store"}}


def parameters(flavor: Flavor, timeout_s: float, max_series: int, lookback_s: float | None) -> dict[str, str]:
    """Return the parameters beside the query; `max_series` and `lookback_s` as far as the server can bound them."""
    # One more than allowed: a truncated answer must not look like a complete one.
    found = {"timeout": _duration(timeout_s), "limit": str(max_series + 1), **_PARAMETERS[flavor]}
    if lookback_s is not None:
        name = "max_lookback" if flavor is Flavor.VICTORIAMETRICS else "lookback_delta"
        found[name] = _duration(lookback_s)
    return found


def _duration(seconds: float) -> str:
    """Write a duration in milliseconds: Prometheus refuses fractions in one."""
    return f"{max(round(seconds * 1000), 1)}ms"


def headers(flavor: Flavor) -> dict[str, str]:
    return dict(_HEADERS.get(flavor, {}))
