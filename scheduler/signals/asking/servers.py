"""Several Prometheus servers, each a failure domain: its own session, breaker and threads, and nothing shared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from scheduler.model.identity import NodeIdentity
from scheduler.model.rules import RuleSet
from scheduler.signals.answers import SignalAnswer
from scheduler.signals.asking.asker import SignalAsker
from scheduler.signals.asking.client import QueryClient
from scheduler.signals.asking.query_health import QueryHealth
from scheduler.signals.asking.refresher import SWAP_WITHIN_S, AskedServer, Refresher, RefreshObserver, wait_for_first
from scheduler.signals.format.promql_matchers import NO_MATCHERS, Matchers

_CONCURRENCY: Final = 4


class Servers:
    """A Refresher for each server, behind the methods of one.

    Parameters
    ----------
    clients
        By name, empty for the one without a name. Signals of other names are not asked.
    publish
        Takes each answer, failures included; called by the threads of all servers.
    matchers
        By the name of the server: what every selector of every query to it gets.
    """

    def __init__(
        self,
        clients: Mapping[str, QueryClient],
        publish: Callable[[SignalAnswer], None],
        observer: RefreshObserver,
        clock: Callable[[], float] = time.monotonic,
        matchers: Mapping[str, Matchers] = NO_MATCHERS,
    ) -> None:
        self.refreshers: Mapping[str, Refresher] = {
            name: Refresher(
                client, publish, observer, clock, _CONCURRENCY, server=AskedServer(name, matchers.get(name, ()))
            )
            for name, client in clients.items()
        }

    def set_rules(self, rules: RuleSet) -> list[SignalAsker]:
        """Ask for the signals of `rules` from now on, new and changed ones at once; return those."""
        return [asker for refresher in self._all() for asker in refresher.set_rules(rules)]

    def swap(self, rules: RuleSet, announce: Callable[[RuleSet], None], within_s: float = SWAP_WITHIN_S) -> None:
        """Ask for what is new in `rules`, and announce them when it has answered, or after `within_s`."""
        wait_for_first(self.set_rules(rules), within_s)
        announce(rules)

    def set_identity(self, identity: NodeIdentity) -> None:
        for refresher in self._all():
            refresher.set_identity(identity)

    def query_health(self) -> dict[str, QueryHealth]:
        """Return the health of each signal's queries, by signal."""
        return {name: health for refresher in self._all() for name, health in refresher.query_health().items()}

    def tick(self) -> None:
        for refresher in self._all():
            refresher.tick()

    def stop(self) -> None:
        for refresher in self._all():
            refresher.stop()

    def _all(self) -> Iterable[Refresher]:
        return self.refreshers.values()
