"""What a replica says of itself on its pages: the rows read it, the checker never does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from tests.support.manifests import Json
from tests.support.vane import VaneProcess


def parsed(page: str) -> Json:
    """Return a page of JSON; empty for a page that was not answered.

    Raises
    ------
    ValueError
        It has what is not JSON, such as NaN.
    """

    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} in a page of JSON")

    return json.loads(page, parse_constant=refuse) if page else {}


def metrics(vane: VaneProcess) -> dict[str, float]:
    """Return the series of /metrics, each as written there; the page may be a second old."""
    lines = (line for line in vane.page("metrics").splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def summed(series: dict[str, float], family: str, *labels: str) -> float:
    """Return the sum of a family's series that have all of these labels, each as `name="value"`."""
    return sum(
        value
        for name, value in series.items()
        if name.partition("{")[0] == family and all(label in name for label in labels)
    )


def signal(vane: VaneProcess, name: str) -> Json:
    """Return what /signals says of a signal; empty while there is no answer."""
    page = parsed(vane.page(f"signals?signal={name}&limit=0"))
    return next((one for one in page.get("signals", ()) if one["name"] == name), {})


def nodes(vane: VaneProcess, name: str) -> dict[str, Json]:
    """Return what /signals says of each node by a signal."""
    page = parsed(vane.page(f"signals?signal={name}&limit=100&sort=name"))
    return {one["node"]: one for one in page.get("nodes", ())}


class Decisions:
    """The decisions of one replica, from now on."""

    def __init__(self, vane: VaneProcess) -> None:
        self._vane = vane
        self._next = int(parsed(vane.page("decisions?limit=1")).get("next", 0))

    def more(self) -> list[Json]:
        """Return those since the last call; the record keeps a few thousand."""
        found: list[Json] = []
        while True:
            page = parsed(self._vane.page(f"decisions?after={self._next}&limit=50"))
            if not page.get("decisions"):
                return found
            found += page["decisions"]
            self._next = int(page["next"])


def samples_used(decisions: Iterable[Json], signal_name: str) -> Iterator[Json]:
    """Yield what rules over a signal used of the chosen nodes' samples."""
    for decision in decisions:
        yield from (use for use in decision["rules"] if use["signal"] == signal_name and decision["node"])


def numbers_in(value: Any) -> Iterator[float]:
    """Yield all numbers within JSON."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        yield float(value)
    elif isinstance(value, dict):
        for one in value.values():
            yield from numbers_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from numbers_in(one)
