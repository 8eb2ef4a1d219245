"""Logging to standard error, as text or JSON lines, written by a thread of its own.

The deciding thread only puts a record into a queue: no write, no reading of source files for a traceback, no wait.
If standard error stalls or its disk is full, records are dropped and counted, never waited for. Facts go into
`extra={...}`, which both forms show as fields; values are to be immutable, since they are formatted later.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import json
import logging
import logging.handlers
import queue
import threading
import time
from types import TracebackType
from typing import Final, TextIO

QUEUE_LENGTH: Final = 10_000

_PATIENCE_S: Final = 2.0
"""How long the end waits for a record to be written before standard error counts as stalled."""
_LONGEST_END_S: Final = 20.0
_DEBUG_FROM: Final = 4
_LIBRARY_DEBUG_FROM: Final = 6
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_FIXED: Final = frozenset({"ts", "level", "logger", "msg", "error"})


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.123Z INFO kube.reflector: message key=value`; a traceback follows, indented."""

    def format(self, record: logging.LogRecord) -> str:
        head = f"{_timestamp(record)} {record.levelname} {_short(record.name)}: {_one_line(record.getMessage())}"
        fields = "".join(f" {name}={_quoted(value)}" for name, value in _extras(record).items())
        trace = _trace(self, record)
        return head + fields + "".join(f"\n    {line}" for line in trace.splitlines())


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ts, level, logger, msg, the extra fields, and error for a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        line.update((f"{name}_" if name in _FIXED else name, value) for name, value in _extras(record).items())
        if trace := _trace(self, record):
            line["error"] = trace
        return json.dumps(line, default=str, ensure_ascii=False)


class DroppingQueueHandler(logging.handlers.QueueHandler):
    """Hands records to the writing thread of the same process; drops them when it falls behind."""

    def __init__(self, length: int = QUEUE_LENGTH) -> None:
        self.records: queue.Queue[logging.LogRecord | None] = queue.Queue(length)
        self.dropped = 0
        super().__init__(self.records)

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Fix the message, since arguments may change; the traceback is left to the writing thread."""
        record = copy.copy(record)
        record.msg, record.args = record.getMessage(), None
        return record

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.records.put_nowait(record)
        except queue.Full:
            self.dropped += 1

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, RUF100 - the name is logging's
        """Count a record whose message cannot be made; logging would write to standard error here."""
        self.dropped += 1


class _Target(logging.StreamHandler[TextIO]):
    """Writes records; those that cannot be written, as to a full disk, are counted."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.failed = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802, RUF100 - the name is logging's
        """Count; logging would write a traceback to where nothing can be written."""
        self.failed += 1


class _Writer(threading.Thread):
    """Writes what is queued, and says how much was not."""

    def __init__(self, source: DroppingQueueHandler, target: _Target) -> None:
        super().__init__(name="logs", daemon=True)
        self._source = source
        self._target = target
        self._told = 0
        self._n_written = 0

    def run(self) -> None:
        while (record := self._source.records.get()) is not None:
            self._target.handle(record)
            self._n_written += 1
            missing = self._source.dropped + self._target.failed - self._told
            if missing:
                self._tell(missing)

    def _tell(self, missing: int) -> None:
        failed = self._target.failed
        self._target.handle(_about_dropped(missing))
        if self._target.failed == failed:
            self._told += missing
        else:  # there is no room for this either, which is no loss
            self._target.failed = failed

    def end(self) -> None:
        """Wait until all is written, as long as there is progress; not for ever, as standard error may be slow."""
        latest_s = time.monotonic() + _LONGEST_END_S
        # A queue that is full hasn't room for the end mark until a record leaves it.
        with contextlib.suppress(queue.Full):
            self._source.records.put(None, timeout=_PATIENCE_S)
            n_before = -1
            while self.is_alive() and self._n_written > n_before and time.monotonic() < latest_s:
                n_before = self._n_written
                self.join(_PATIENCE_S)


class Logging:
    """The logging of one process; ends, with everything written, at the end of the `with` block or at `stop`."""

    def __init__(self, root: logging.Logger, target: _Target) -> None:
        self._root = root
        self._target = target
        self._queue_handler = DroppingQueueHandler()
        self._writer = _Writer(self._queue_handler, target)
        self._writer.start()
        root.addHandler(self._queue_handler)
        self._running = True

    @property
    def dropped(self) -> int:
        """How many records were not written: too many at once, or no room."""
        return self._queue_handler.dropped + self._target.failed

    def stop(self) -> None:
        if self._running:
            self._running = False
            self._root.removeHandler(self._queue_handler)
            self._writer.end()

    def __enter__(self) -> Logging:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def configure(form: str, verbosity: int, stream: TextIO, root: logging.Logger | None = None) -> Logging:
    """Send the records of all loggers to the stream, `form` being text or json; once per process.

    Ours are shown from INFO on, from DEBUG on at verbosity 4; those of libraries from WARNING on, from DEBUG on at 6.
    """
    root = logging.getLogger() if root is None else root
    if any(isinstance(handler, DroppingQueueHandler) for handler in root.handlers):
        raise RuntimeError("logging is configured already in this process")
    root.setLevel(logging.DEBUG if verbosity >= _LIBRARY_DEBUG_FROM else logging.WARNING)
    ours = root.getChild("scheduler")
    ours.setLevel(logging.DEBUG if verbosity >= _DEBUG_FROM else logging.INFO)
    target = _Target(stream)
    target.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    return Logging(root, target)


def _about_dropped(count: int) -> logging.LogRecord:
    facts = {"name": __name__, "levelno": logging.WARNING, "levelname": "WARNING", "dropped": count}
    return logging.makeLogRecord({**facts, "msg": "log messages were dropped"})


def _timestamp(record: logging.LogRecord) -> str:
    moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _short(name: str) -> str:
    return name.removeprefix("scheduler.")


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    parts = [formatter.formatException(record.exc_info)] if record.exc_info else []
    if record.stack_info:
        parts.append(formatter.formatStack(record.stack_info))
    return "\n".join(parts)


def _one_line(text: str) -> str:
    """Escape what would start a line of its own, so that no logged name can forge a record."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _quoted(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and not any(c in ' "=' for c in text) and text
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())
