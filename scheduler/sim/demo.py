"""`vane demo`: chooses the screen, runs the tour, prints the summary, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from scheduler.errors import ConfigError
from scheduler.sim.arm import Feed
from scheduler.sim.phases import timetable
from scheduler.sim.screen import PlainScreen, Screen
from scheduler.sim.statistics import summary
from scheduler.sim.tour import SteadyClock, Tour, make_plan

FEEDS: Final = (Feed.RULES, Feed.NONE)

_SIGNALLED: Final = 128


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the command line says.

    port
        Of the API server that kubectl can speak to; 0: any that is free.
    picture
        Where to save what the screen shows once the load has shifted, as SVG; None: nowhere.
    """

    seed: int = 1
    is_fast: bool = False
    keep: bool = False
    port: int = 0
    picture: Path | None = None


def run_demo(options: DemoOptions, environ: Mapping[str, str], out: TextIO) -> int:
    """Run the demo and return its exit code.

    0 after the summary, and for ^C when `keep` left it running; 130 for ^C before that, 143 for SIGTERM, as shells
    report programs that end by a signal. Whatever happens, no process and no file is left.

    Raises
    ------
    ConfigError
        The port is taken, or no folder can be written.
    SchedulerEndedError, NotReadyError
        A scheduler did not do its part; the message has the end of its log.
    """
    folder = _folder(environ)
    try:
        return asyncio.run(_DemoRun(options, environ, out, folder).run())
    except BrokenPipeError:
        # Whoever read our output has gone, as in `vane demo | head`; Python must not try to write the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
        return _SIGNALLED + signal.SIGPIPE
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _folder(environ: Mapping[str, str]) -> Path:
    wanted = environ.get("TMPDIR")
    try:
        return Path(tempfile.mkdtemp(prefix="vane-demo-", dir=wanted))
    except OSError as error:
        what = f"no folder can be made in {wanted}" if wanted else "no folder for temporary files can be written"
        write = "Set TMPDIR to a folder that you may write to"
        raise ConfigError(f"{what} ({error.strerror or error}). {write}") from error


class _DemoRun:
    def __init__(self, options: DemoOptions, environ: Mapping[str, str], out: TextIO, folder: Path) -> None:
        self._options = options
        self._environ = environ
        self._out = out
        self._folder = folder
        self._signal: int | None = None
        self._is_kept = False

    async def run(self) -> int:
        task = asyncio.ensure_future(self._tour())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, task, number)
        try:
            await task
        except asyncio.CancelledError:
            if self._signal is None:
                raise
            return 0 if self._is_kept and self._signal == signal.SIGINT else _SIGNALLED + self._signal
        return 0

    def _stop(self, task: asyncio.Future[None], number: int) -> None:
        # Once: what ends in order needs no second push, and must not be interrupted by one.
        if self._signal is None:
            self._signal = number
            task.cancel()

    async def _tour(self) -> None:
        options, clock = self._options, SteadyClock()
        began_s = clock()
        phases = timetable(options.is_fast)
        plan = make_plan(options.seed, phases)
        screen = choose_screen(self._out, options.picture)
        self._say(
            "Starting the same cluster twice: an API server, a Prometheus and `vane run`, with rules and without."
        )
        async with Tour(FEEDS, plan, phases, self._folder, clock) as tour:
            try:
                await tour.start(self._environ, options.port)
            except (ConfigError, OSError) as error:
                raise _start_error(error, options.port) from error
            try:
                figures = await tour.run(screen)
            finally:
                screen.close()
            first_s = tour.arms[0].ledger.first_bound_s
            self._say("", summary({feed.value: of_arm for feed, of_arm in figures.items()}, options.seed))
            if first_s is not None:
                self._say("", f"The first Pod was bound {first_s - began_s:.1f} s after the start.")
            if options.keep:
                self._is_kept = True
                self._say("", _keep_text(tour))
                await tour.go_on()

    def _say(self, *lines: str) -> None:
        for line in lines:
            print(line, file=self._out)
        self._out.flush()


def _keep_text(tour: Tour) -> str:
    arm = tour.arms[0]
    return f"""\
Still running, with rules; ^C ends it. In another terminal:

  kubectl --kubeconfig {arm.kubeconfig} get pods -A -o wide -w

Edit the rules and watch the effect: {arm.rule_file}"""


def _start_error(error: ConfigError | OSError, port: int) -> ConfigError:
    cause = error if isinstance(error, OSError) else error.__cause__
    number = cause.errno if isinstance(cause, OSError) else None
    if number == errno.EADDRINUSE and port:
        return ConfigError(f"--port: {port} of 127.0.0.1 is taken. Write another one, or 0 for any")
    if number == errno.EACCES and port:
        return ConfigError(f"--port: {port} needs rights that you lack. Write one above 1023, or 0 for any")
    return ConfigError(f"cannot start: {error}")


def choose_screen(out: TextIO, picture: Path | None) -> Screen:
    """Return the live screen where there is a terminal and rich is installed, else plain lines.

    Raises
    ------
    ConfigError
        A picture is wanted, but rich is not installed.
    """
    try:
        from scheduler.sim.live import PictureScreen, live_screen
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "rich":
            raise
        if picture is not None:
            write = "Install it with `pip install 'vane-scheduler[demo]'`"
            raise ConfigError(f"--picture: needs rich, which is not installed. {write}") from error
        return PlainScreen(out)
    shown = live_screen(out) or PlainScreen(out)
    return shown if picture is None else PictureScreen(shown, picture)
