"""What may go wrong with Prometheus and its data: the rows of the outage matrix."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler.signals.problems import SignalProblem
from tests.e2e.outage_parts import BAD, LOAD, NODES, SIGNALS, Parts, unix_clock
from tests.support.fault_proxy import Asked, Fault

# What is done to answers. A fault has the query of one signal only, unless it is of the whole server.


def of_load(fault: Fault) -> Fault:
    """Let a fault have the query of `load`, and pass all others."""

    def either(asked: Asked) -> None:
        if asked.query == LOAD.expr:
            fault(asked)
        else:
            asked.say(asked.forward())

    return either


def with_result(change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]], **more: object) -> Fault:
    """Change the series of an answer, and add fields to it."""

    def fault(asked: Asked) -> None:
        answer = asked.forward()
        answer["data"]["result"] = change(answer["data"]["result"])
        asked.say({**answer, **more})

    return fault


def with_value(text: str) -> Fault:
    """Give the bad nodes another value."""

    def change(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for one in series:
            if one["metric"]["instance"] in BAD:
                one["value"][1] = text
        return series

    return with_result(change)


def without_four(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in series if one["metric"]["instance"] > "n3"]


def doubled(series: list[dict[str, Any]]) -> list[dict[str, Any]]:
    twice = [
        {**one, "metric": {**one["metric"], "replica": replica}}
        for one in series
        for replica in "ab"
        if one["metric"]["instance"] in BAD
    ]
    return [one for one in series if one["metric"]["instance"] not in BAD] + twice


def asking(query: str) -> Fault:
    return lambda asked: asked.say(asked.forward(query=query))


def saying(status: int, body: bytes = b"", **headers: str) -> Fault:
    return lambda asked: asked.write(body, status, headers=headers)


def cut(asked: Asked) -> None:
    """Announce a whole answer, send half of it and hang up."""
    body = json.dumps(asked.forward()).encode()
    asked.write(body[: len(body) // 2], headers={"Content-Length": str(len(body))})
    asked.close_connection = True


def cut_json(asked: Asked) -> None:
    body = json.dumps(asked.forward()).encode()
    asked.write(body[: len(body) // 2])


def dripping(asked: Asked) -> None:
    body = json.dumps(asked.forward()).encode()
    asked.write(b"", headers={"Content-Length": str(len(body))})
    for i in range(len(body)):
        if asked.server.proxy.mended.wait(0.1):
            break
        asked.wfile.write(body[i : i + 1])
        asked.wfile.flush()
    asked.close_connection = True


def a_million(asked: Asked) -> None:
    one = b'{"metric":{"instance":"n0"},"value":[1700000000.1,"1"]}'
    body = b'{"status":"success","data":{"resultType":"vector","result":[' + b",".join([one] * 1_000_000) + b"]}}"
    asked.write(body)


def clocks_off(samples_s: float, date_s: float) -> Fault:
    """Let the server's clock be off, by which samples are stamped too, and that of whatever answers in its place."""

    def fault(asked: Asked) -> None:
        answer = asked.forward()
        for one in answer["data"]["result"]:
            is_time = "vane_selector" in one["metric"]
            one["value"] = [
                one["value"][0] + samples_s,
                repr(float(one["value"][1]) + samples_s) if is_time else one["value"][1],
            ]
        asked.write(json.dumps(answer).encode(), date_off_s=date_s)

    return fault


@dataclass(frozen=True)
class Row:
    """One thing that goes wrong.

    problem
        What it is called.
    signals
        Those that it concerns; all others stay fresh.
    bad
        Nodes whose data is bad in answers that are used all the same.
    is_used
        Whether answers are used while it is wrong, so that nothing fades or ends.
    """

    name: str
    problem: SignalProblem
    fault: Fault | None = None
    signals: tuple[str, ...] = ("load",)
    bad: tuple[str, ...] = ()
    is_used: bool = False
    begin: Callable[[Parts], None] | None = None
    end: Callable[[Parts], None] | None = None


ALL = tuple(SIGNALS)
HOUR_S = 3600.0


def _refuse(parts: Parts) -> None:
    parts.proxy.stop()


def _down(parts: Parts) -> None:
    for name in BAD:
        parts.measured.exporter.set_down(name)


def _up(parts: Parts) -> None:
    for name in BAD:
        parts.measured.exporter.set_down(name, down=False)


def _stamp(parts: Parts, clock: Callable[[], float]) -> None:
    for name in BAD:
        parts.measured.exporter.stamp(name, "node_load1", clock)


def _freeze(parts: Parts) -> None:
    begun_s = unix_clock()
    _stamp(parts, lambda: begun_s)


def _set_back(parts: Parts) -> None:
    _stamp(parts, lambda: unix_clock() - 600.0)


def _in_time(parts: Parts) -> None:
    _stamp(parts, unix_clock)


def _stop_pushing(parts: Parts) -> None:
    parts.measured.pushing -= set(BAD)


def _push_again(parts: Parts) -> None:
    parts.measured.pushing |= set(BAD)


ROWS = (
    Row("timeout", SignalProblem.TIMEOUT, Asked.hang, ALL),
    Row("refused", SignalProblem.UNREACHABLE, None, ALL, begin=_refuse),
    Row("500", SignalProblem.SERVER_ERROR, saying(500, b"oops"), ALL),
    Row("503", SignalProblem.SERVER_ERROR, saying(503), ALL),
    Row("401", SignalProblem.UNAUTHORIZED, saying(401), ALL),
    Row("redirect", SignalProblem.REDIRECT, saying(302, Location="http://127.0.0.1:1/login"), ALL),
    Row("empty", SignalProblem.EMPTY, of_load(with_result(lambda _: []))),
    Row("partial without warnings", SignalProblem.PARTIAL, of_load(with_result(without_four)), bad=NODES[:4]),
    Row(
        "partial with warnings",
        SignalProblem.WARNINGS,
        of_load(with_result(without_four, warnings=["no store matched"])),
        bad=NODES[:4],
    ),
    Row("NaN", SignalProblem.NAN, of_load(with_value("NaN")), bad=BAD, is_used=True),
    Row("+Inf", SignalProblem.INF, of_load(with_value("+Inf")), bad=BAD, is_used=True),
    Row("-Inf", SignalProblem.INF, of_load(with_value("-Inf")), bad=BAD, is_used=True),
    Row("negative", SignalProblem.RANGE, of_load(with_value("-3")), bad=BAD, is_used=True),
    Row("no number", SignalProblem.PARSE, of_load(with_value("0x1")), bad=BAD, is_used=True),
    Row(
        "dead exporter within a range",
        SignalProblem.STALE,
        None,
        ("busy", "load", "pushed", "steady"),
        BAD,
        True,
        _down,
        _up,
    ),
    Row("exporter that repeats old samples", SignalProblem.STALE, None, ("load",), BAD, True, _freeze, _in_time),
    Row("exporter whose clock is set back", SignalProblem.STALE, None, ("load",), BAD, True, _set_back, _in_time),
    Row("push gateway", SignalProblem.STALE, None, ("pushed",), BAD, True, _stop_pushing, _push_again),
    Row("server's clock 3 h ahead", SignalProblem.CLOCK_SKEW, clocks_off(3 * HOUR_S, 3 * HOUR_S), ALL, is_used=True),
    Row("server's clock 3 h behind", SignalProblem.CLOCK_SKEW, clocks_off(-3 * HOUR_S, -3 * HOUR_S), ALL, is_used=True),
    Row("proxy's clock 3 h ahead", SignalProblem.CLOCK_SKEW, clocks_off(0.0, 3 * HOUR_S), ALL, is_used=True),
    Row("proxy's clock 3 h behind", SignalProblem.CLOCK_SKEW, clocks_off(0.0, -3 * HOUR_S), ALL, is_used=True),
    Row("duplicated series", SignalProblem.DUPLICATE, of_load(with_result(doubled)), bad=BAD, is_used=True),
    Row("matrix", SignalProblem.RESULT_TYPE, of_load(asking("node_load1[5s]"))),
    Row("string", SignalProblem.RESULT_TYPE, of_load(asking('"text"'))),
    Row("scalar", SignalProblem.RESULT_TYPE, of_load(asking("1"))),
    Row("a million series", SignalProblem.TOO_MUCH, of_load(a_million)),
    Row("one query hangs", SignalProblem.TIMEOUT, of_load(Asked.hang)),
    Row("cut off", SignalProblem.UNREACHABLE, of_load(cut)),
    Row("half a document", SignalProblem.BAD_ANSWER, of_load(cut_json)),
    Row("a page of a portal", SignalProblem.BAD_ANSWER, of_load(saying(200, b"<html>Welcome</html>"))),
    Row("slow drip", SignalProblem.TIMEOUT, of_load(dripping)),
)
