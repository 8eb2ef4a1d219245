"""What `vane top` prints: one line for each signal with what is wrong, one for each node of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from scheduler.model.rule_words import Unit
from scheduler.signals.format.units import amount_text

_SIGNAL_HEAD: Final = ("SIGNAL", "STATE", "AGE", "EVERY", "NODES", "REFUSED", "WHAT IS WRONG")
_NODE_HEAD: Final = ("SIGNAL", "NODE", "VALUE", "PENDING", "AGE", "STATE", "RULES")
_LEARNED_HEAD: Final = ("SIGNAL", "WORKLOAD", "A POD ADDS", "HALF OF THEM", "SEEN")
_RIGHT: Final = frozenset({"SEEN", "AGE", "EVERY", "NODES", "REFUSED", "VALUE", "PENDING"})
_NONE: Final = "-"
_DIGITS: Final = 4
_MISSING_REASONS: Final = {
    "no_answer": "no answer yet",
    "too_old": "too old",
    "no_series": "no series",
    "duplicate": "several series",
    "nan": "NaN",
    "inf": "infinite",
    "parse": "not a number",
    "range": "out of range",
    "unknown": "no sample",
}


def lines_of(page: dict[str, Any], shown: str = "", sort: str = "value", node: str = "") -> list[str]:
    """Return the page as lines without line ends.

    Parameters
    ----------
    shown
        The one signal that the header is left with; empty for all.
    sort
        Which comes first. The server has sorted the nodes of each signal; here the signals are, and the lines of one
        node: `value` what refuses most and scores lowest, `age` the oldest, `name`.
    node
        The one node whose values these are; empty for several.
    """
    signals = sorted(page["signals"], key=lambda one: _rank_of_signal(one, page["rules"], sort))
    units = {signal["name"]: signal["unit"] for signal in signals}
    suspect = {signal["name"] for signal in signals if signal["suspect"]}
    lines = _columns(_SIGNAL_HEAD, [_signal(one, page["rules"]) for one in signals if shown in ("", one["name"])])
    if not signals:
        return ["no signals: no rule file defines any"]
    learned = [_learned(one, units.get(one["signal"], "")) for one in page["learned"] if shown in ("", one["signal"])]
    if learned:
        lines += ["", *_columns(_LEARNED_HEAD, learned)]
    nodes: list[dict[str, Any]] = page["nodes"]
    if node:
        nodes = sorted(nodes, key=lambda one: _rank_of_line(one, sort))
    else:
        order = {one["name"]: rank for rank, one in enumerate(signals)}
        nodes = sorted(nodes, key=lambda one: order.get(one["signal"], 0))
    if nodes:
        rows = [_node(one, units.get(one["signal"], ""), one["signal"] in suspect) for one in nodes]
        lines += ["", *_columns(_NODE_HEAD, rows)]
    return lines


def _rank_of_signal(signal: dict[str, Any], rules: Sequence[dict[str, Any]], sort: str) -> tuple[Any, ...]:
    if sort == "age":
        return (-math.inf if signal["age_s"] is None else -signal["age_s"], signal["name"])
    n_refused = sum(rule["refused_nodes"] or 0 for rule in rules if rule["signal"] == signal["name"])
    return (signal["name"],) if sort == "name" else (-n_refused, signal["name"])


def _rank_of_line(node: dict[str, Any], sort: str) -> tuple[Any, ...]:
    if sort == "age":
        return (-math.inf if node["age_s"] is None else -node["age_s"], node["signal"])
    is_refused = any("refused" in rule["verdict"] for rule in node["rules"])
    points = min((rule["score"] for rule in node["rules"] if rule["score"] is not None), default=math.inf)
    return (node["signal"],) if sort == "name" else (not is_refused, points, node["signal"])


def _signal(signal: dict[str, Any], rules: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    counts = [rule["refused_nodes"] for rule in rules if rule["signal"] == signal["name"]]
    refused = [str(count) for count in counts if count is not None]
    return (
        signal["name"] + (f" @{signal['server']}" if signal["server"] else ""),
        signal["state"] + (", suspect" if signal["suspect"] else ""),
        _age(signal["age_s"]),
        _age(signal["spacing_s"]),
        _NONE if signal["covered"] is None else f"{signal['covered']}/{signal['nodes']}",
        "+".join(refused) or _NONE,
        _wrong(signal, rules),
    )


def _wrong(signal: dict[str, Any], rules: Sequence[dict[str, Any]]) -> str:
    words = [signal["words"]] if signal["words"] else []
    if signal.get("pause"):
        why = "its server does not answer" if signal["pause"] == "outage" else "it failed several times"
        words.append(f"queried less often, {why}; next try in {signal['next_try_s']:.0f} s")
    open_valves = [rule["name"] for rule in rules if rule["signal"] == signal["name"] and rule["valve_open"]]
    if open_valves:
        words.append(f"only scoring: {', '.join(open_valves)}")
    if signal["depends_on_pod"]:
        words.append(f"by {signal['by']}: every Pod reads its own value")
    return "; ".join(words)


def _node(node: dict[str, Any], unit: str, is_suspect: bool) -> tuple[str, ...]:
    state = node["state"]
    if node["value"] is None:
        state += f" ({_MISSING_REASONS.get(node['why'], node['why'])})"
    elif is_suspect:
        state += ", suspect"
    key = node.get("key")
    inflight = node["inflight"]
    return (
        node["signal"],
        f"{node['node']} ({key})" if key else node["node"],
        _value(node["value"], unit),
        _NONE if inflight is None else f"+{_value(inflight, unit)}",
        _age(node["age_s"]) if node["value"] is not None else _NONE,
        state,
        "; ".join(_rule(rule) for rule in node["rules"]) or _NONE,
    )


def _learned(learned: dict[str, Any], unit: str) -> tuple[str, ...]:
    def told(value: float | None) -> str:
        if learned["of"] not in ("", "cpu"):
            return _value(value, "bytes" if learned["of"] in ("memory", "ephemeral-storage") else "none")
        return f"{_value(value, 'none')} cores" if learned["of"] else _value(value, unit)

    low, high = learned["quartiles"]
    return (
        learned["signal"],
        learned["workload"],
        told(learned["adds"]),
        f"{told(low)} to {told(high)}",
        str(learned["seen"]),
    )


def _rule(rule: dict[str, Any]) -> str:
    said = [rule["verdict"]] if rule["verdict"] else []
    if rule["score"] is not None:
        said.append(f"{rule['score']:.0f} points")
    return f"{rule['rule']}: {', '.join(said) or 'passes'}"


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return _NONE
    return amount_text(value, Unit(unit or Unit.NONE), _DIGITS)


def _age(age_s: float | None) -> str:
    if age_s is None:
        return _NONE
    return f"{age_s:.0f} s" if age_s < 600 else f"{age_s / 60:.0f} min"


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if name in _RIGHT else cell.ljust(width)
            for cell, width, name in zip(row, widths, head, strict=True)
        ).rstrip()
        for row in (head, *rows)
    ]
