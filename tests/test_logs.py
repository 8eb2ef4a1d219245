from __future__ import annotations

import errno
import io
import itertools
import json
import logging
import re
import threading

import pytest

from scheduler import logs
from tests.support.waiting import wait_until

_numbers = itertools.count()


def root() -> logging.Logger:
    """Return a logger that stands for the root, with a tree of its own below."""
    top = logging.getLogger(f"root{next(_numbers)}")
    top.propagate = False
    return top


def child(top: logging.Logger, name: str) -> logging.Logger:
    return top.getChild(name)


def lines(form: str, verbosity: int = 0) -> tuple[logging.Logger, io.StringIO, logs.Logging]:
    top, stream = root(), io.StringIO()
    return top, stream, logs.configure(form, verbosity, stream, top)


def test_text_lines_are_readable() -> None:
    top, stream, logging_ = lines("text")
    with logging_:
        child(top, "scheduler.kube").info(
            "watch of %s began again", "Pod", extra={"reason": "410 Gone", "at": 7, "none": "", "quote": 'a"b'}
        )
    text = stream.getvalue()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO root\d+\.scheduler\.kube: watch of Pod began again"
        r' reason="410 Gone" at=7 none="" quote="a\\"b"\n',
        text,
    )


def test_text_names_our_loggers_without_the_package() -> None:
    record = logging.makeLogRecord({"name": "scheduler.kube.reflector", "levelname": "INFO", "msg": "x"})
    assert logs.TextFormatter().format(record).endswith("Z INFO kube.reflector: x")


def test_json_lines_hold_the_same() -> None:
    top, stream, logging_ = lines("json")
    with logging_:
        child(top, "scheduler.loop").warning("slow", extra={"seconds": 0.5, "level": "odd", "thing": {1}})
    found = json.loads(stream.getvalue())
    assert found.pop("ts").endswith("Z")
    assert found == {
        "level": "warning",
        "logger": f"{top.name}.scheduler.loop",
        "msg": "slow",
        "seconds": 0.5,
        "level_": "odd",
        "thing": "{1}",
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_is_kept(form: str) -> None:
    top, stream, logging_ = lines(form)
    with logging_:
        try:
            raise KeyError("the reason")
        except KeyError:
            child(top, "scheduler.x").exception("failed")
    text = stream.getvalue()
    assert "KeyError: 'the reason'" in text
    assert "raise KeyError" in text
    if form == "json":
        assert text.count("\n") == 1
        assert json.loads(text)["error"].startswith("Traceback")
    else:
        assert all(line.startswith("    ") for line in text.splitlines()[1:])


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_message_cannot_forge_a_line(form: str) -> None:
    top, stream, logging_ = lines(form)
    with logging_:
        child(top, "scheduler.x").info("pod %s", "a\n2026 INFO forged", extra={"name_": "b\nc"})
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize(
    ("verbosity", "shown"),
    [
        (0, ["scheduler INFO", "lib WARNING"]),
        (4, ["scheduler DEBUG", "scheduler INFO", "lib WARNING"]),
        (6, ["scheduler DEBUG", "scheduler INFO", "lib DEBUG", "lib INFO", "lib WARNING"]),
    ],
)
def test_verbosity(verbosity: int, shown: list[str]) -> None:
    top, stream, logging_ = lines("text", verbosity)
    with logging_:
        for name, levels in (("scheduler", "DEBUG INFO"), ("lib", "DEBUG INFO WARNING")):
            for level in levels.split():
                child(top, name).log(logging.getLevelName(level), "%s %s", name, level)
    assert [line.partition(": ")[2] for line in stream.getvalue().splitlines()] == shown


def test_arguments_are_read_when_logged() -> None:
    top, stream, logging_ = lines("text")
    with logging_:
        names = ["a"]
        child(top, "scheduler").info("names %s", names)
        names.append("b")
    assert "names ['a']" in stream.getvalue()


def test_a_stalled_stream_never_stops_the_caller() -> None:
    class Stalled(io.StringIO):
        def __init__(self) -> None:
            super().__init__()
            self.freed = threading.Event()
            self.writers: set[str] = set()

        def write(self, text: str) -> int:
            self.writers.add(threading.current_thread().name)
            assert self.freed.wait(30)
            return super().write(text)

    top, stream = root(), Stalled()
    logging_ = logs.configure("text", 0, stream, top)
    for i in range(logs.QUEUE_LENGTH + 50):
        child(top, "scheduler").info("message %d", i)
    assert logging_.dropped > 0
    stream.freed.set()
    logging_.stop()
    logging_.stop()
    assert stream.writers == {"logs"}
    written = stream.getvalue()
    assert f"log messages were dropped dropped={logging_.dropped}\n" in written
    assert written.count(": message ") + logging_.dropped == logs.QUEUE_LENGTH + 50


def test_the_end_waits_for_a_slow_stream() -> None:
    class Slow(io.StringIO):
        def write(self, text: str) -> int:
            threading.Event().wait(0.3)
            return super().write(text)

    top, stream = root(), Slow()
    with logs.configure("text", 0, stream, top):
        for i in range(9):
            child(top, "scheduler").info("message %d", i)
    assert stream.getvalue().count(": message ") == 9


def test_a_message_that_cannot_be_made_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    top, stream, logging_ = lines("text")
    with logging_:
        child(top, "scheduler").info("%d", "x")
    assert logging_.dropped == 1
    assert capsys.readouterr() == ("", "")
    assert stream.getvalue() == ""


class Full(io.StringIO):
    """Takes nothing while it is full, as a file on a full disk."""

    def __init__(self) -> None:
        super().__init__()
        self.is_full = True

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_what_a_full_disk_did_not_take_is_counted_and_told_later(capsys: pytest.CaptureFixture[str]) -> None:
    top, stream = root(), Full()
    with logs.configure("text", 0, stream, top) as logging_:
        for i in range(7):
            child(top, "scheduler").info("message %d", i)
        wait_until(lambda: logging_.dropped == 7, 10.0, "the count")
        stream.is_full = False
        child(top, "scheduler").info("there is room")
    first, second = stream.getvalue().splitlines()
    assert first.endswith(": there is room")
    assert second.endswith("log messages were dropped dropped=7")
    assert capsys.readouterr() == ("", "")


def test_logging_is_configured_once() -> None:
    top, _, logging_ = lines("text")
    with logging_, pytest.raises(RuntimeError, match="configured already"):
        logs.configure("text", 0, io.StringIO(), top)
    assert top.handlers == []
