"""The elector: takes the Lease when it is free, keeps it, and says when it is lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from scheduler.errors import InvalidObjectError
from scheduler.kube.backoff import Backoff, BackoffSettings
from scheduler.kube.config import Connection
from scheduler.kube.election.leadership import Leadership
from scheduler.kube.election.lease import Lease, LeaseClient
from scheduler.kube.election.roll_call import call_the_roll
from scheduler.kube.election.settings import REAL_TIMES, ElectionObserver, ElectionSettings, Times
from scheduler.kube.election.standby import GetLease, StandBy, TakeLease, WaitForLease
from scheduler.kube.reflector import Reflector, ReflectorSettings
from scheduler.kube.transport import ApiError, RequestObserver, Transport, TransportError
from scheduler.kube.watch_stream import Changed, MalformedStreamError, Replaced

log = logging.getLogger(__name__)

COMPONENT = "leader-election"
"""The last part of the User-Agent of the elector's own requests."""

_FAILURES = (ApiError, TransportError, InvalidObjectError)
_SHORTEST_TIMEOUT_S = 0.05
_FIRST_CALL_PAUSE_S = 0.1
_EVENT_TIMEOUT_S = 2.0
_STOP_WATCH_S = 0.1


class Elector:
    """One replica's part in the election.

    Four threads, so that none waits for another: one takes and renews; a reflector watches the Lease while another
    replica holds it; one calls the roll once we lead; and one looks at the deadline, because a request can hang beyond
    every timeout (a resolver, an exec plugin for credentials, a server that sends a byte a second). The first has a
    connection of its own; so have watch and roll call.

    Times count from when a request was begun to when an answer was seen, on the monotonic clock: what another replica
    sees is later than the first and earlier than the second. A process that led and lost must end; for what holds
    even if it cannot, see `kube.binder.fence`.
    """

    def __init__(
        self,
        connection: Connection,
        identity: str,
        settings: ElectionSettings,
        scheduler_names: Sequence[str],
        observer: ElectionObserver,
        on_request: RequestObserver | None = None,
        times: Times = REAL_TIMES,
    ) -> None:
        own = connection.as_replica(identity, COMPONENT)
        self._identity = identity
        self._settings = settings
        self._scheduler_names = scheduler_names
        self._observer = observer
        self._clock = times.clock
        self._random = times.random
        self._lease_transport = Transport(own, on_request)
        self._list_transport = Transport(own, on_request)
        self._client = LeaseClient(
            self._lease_transport, settings.namespace, settings.name, identity, settings.lease_duration_s, times.now_ns
        )
        self._watch = Reflector(
            self._client.kind, self._list_transport, self._watched, settings=_watch_settings(settings)
        )
        self._leadership = Leadership(settings, times.clock)
        self._changed = self._leadership.changed
        self._standby = StandBy(identity, settings.lease_duration_s, settings.retry_period_s, times.random)
        """Read and written with `_changed` held."""
        self._lease: Lease | None = None
        self._problem = ""
        self._is_released = False
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    @property
    def is_leading(self) -> bool:
        """Whether the lease is ours now; the roll call may still be under way."""
        return self._leadership.is_running

    @property
    def holder(self) -> str:
        """The identity of the leader, as far as known; "" for none."""
        with self._changed:
            return self._identity if self._leadership.is_leading else self._standby.holder

    def start(self) -> None:
        self._thread.start()

    def release(self, timeout_s: float) -> bool:
        """End the election: hand the lease back if we lead; False if it may still name us.

        Call it once nothing more is written as the leader: another replica leads a moment later.
        """
        self._leadership.ask_to_end(timeout_s)
        self._thread.join(timeout_s)
        return self._is_released

    def _run(self) -> None:
        try:
            self._stand_by()
            if self._leadership.is_leading:
                self._lead()
            was = self._leadership.end()
            self._is_released = self._release() if was == "leading" else was == "standing by"
        except Exception as error:
            log.exception("leader election: unexpected error")
            self._lose(f"unexpected error in the leader election: {error!r}")
        finally:
            self._watch.stop(_STOP_WATCH_S)
            self._lease_transport.close()
            self._list_transport.close()

    # Standing by

    def _stand_by(self) -> None:
        """Return when the lease is ours, or when we are to end."""
        while self._leadership.phase == "standing by" and not self._leadership.is_to_end:
            try:
                self._step()
            except Exception:
                if self._leadership.is_leading:
                    raise
                # A fault of ours, and we do not lead yet: the next try may succeed.
                log.exception("leader election: unexpected error; standing by goes on")
                with self._changed:
                    self._standby.ask_failed(self._clock())
                    self._standby.take_failed(self._clock())

    def _step(self) -> None:
        with self._changed:
            step = self._standby.next(self._clock())
            if isinstance(step, WaitForLease):
                if not self._watch.is_alive:
                    self._watch.start()  # only now: a single replica, which takes the lease at once, needs none
                if not self._leadership.is_to_end:
                    self._changed.wait(step.seconds)
                return
        match step:
            case TakeLease(lease):
                self._take(lease)
            case GetLease():
                self._ask()

    def _ask(self) -> None:
        lease: Lease | None
        try:
            lease = self._client.get(self._timeout_s())
        except _FAILURES as error:
            if not _is_status(error, 404):
                self._failed("the lease cannot be read", error)
                with self._changed:
                    self._standby.ask_failed(self._clock())
                return
            lease = None
        self._answered()
        with self._changed:
            before = self._standby.holder
            self._standby.saw(lease, self._clock())
        self._tell_holder(before)

    def _take(self, lease: Lease | None) -> None:
        started_s = self._clock()
        timeout_s = self._timeout_s()
        try:
            taken = self._client.create(timeout_s) if lease is None else self._client.take(lease, timeout_s)
        except _FAILURES as error:
            if _is_status(error, 409) or (lease is not None and _is_status(error, 404)):
                with self._changed:
                    self._standby.conflicted(self._clock())
                return
            self._failed("the lease cannot be taken", error)
            with self._changed:
                self._standby.take_failed(self._clock())
            return
        if not self._renewed(started_s, taken):
            with self._changed:
                self._standby.saw(taken, self._clock())

    def _watched(self, message: Replaced | Changed) -> None:
        """Take over what the watch tells; for its thread."""
        lease: Lease | None
        if isinstance(message, Changed):
            lease = message.object if message.type != "DELETED" else None
        else:
            lease = next(iter(message.objects), None)
        with self._changed:
            before = self._standby.holder
            self._standby.watched(lease, self._clock())
            self._changed.notify_all()
        self._tell_holder(before)

    # Leading

    def _lead(self) -> None:
        """Renew in every period, until lost or to end."""
        log.info("leader election: this replica is the leader", extra={"identity": self._identity})
        self._watch.stop(_STOP_WATCH_S)
        for name, target in (("lease-deadline", self._watch_deadline), ("roll-call", self._call)):
            threading.Thread(target=target, name=name, daemon=True).start()
        period_s = self._settings.retry_period_s
        next_s = self._clock() + period_s
        while self._leadership.lead_until(next_s):
            next_s = self._clock() + period_s
            try:
                self._renew(self._held())
            except _FAILURES as error:
                self._failed("the lease cannot be renewed", error)
        if not self._leadership.is_to_end:
            self._too_late()

    def _renew(self, lease: Lease) -> None:
        started_s = self._clock()
        try:
            renewed = self._client.renew(lease, self._timeout_s())
        except ApiError as error:
            if error.status == 404:
                # Deleted by hand. It is ours still; and if another makes it first, our next try finds that.
                renewed = self._client.create(self._timeout_s(), like=lease)
            elif error.status == 409:
                found = self._client.get(self._timeout_s())
                if found.holder != self._identity:
                    self._lose(f"{found.holder!r} holds the lease now" if found.holder else "the lease was released")
                    return
                # An update of ours whose answer was lost, or somebody's label. Only what is answered counts.
                started_s = self._clock()
                renewed = self._client.renew(found, self._timeout_s())
            else:
                raise
        self._renewed(started_s, renewed)

    def _renewed(self, started_s: float, lease: Lease) -> bool:
        """Begin or prolong the term; False where the answer came too late, which the deadline's thread sees too."""
        until = self._leadership.prolong(started_s)
        if until is None:
            return False
        self._lease = lease
        self._answered()
        self._observer.on_term(until)
        return True

    def _release(self) -> bool:
        """Clear the holder; return whether the Lease is known not to name us."""
        lease = self._held()
        while (left_s := self._leadership.left_to_end_s) > 0:
            try:
                released = self._client.release(lease, max(left_s / 2, _SHORTEST_TIMEOUT_S))
                self._write_event(
                    released, "stopped leading", min(self._leadership.left_to_end_s / 2, _EVENT_TIMEOUT_S)
                )
                return True
            except _FAILURES as error:
                if not _is_status(error, 409):
                    log.warning("leader election: the lease was not released: %s", error)
                    return _is_status(error, 404)
            try:
                lease = self._client.get(max(self._leadership.left_to_end_s / 2, _SHORTEST_TIMEOUT_S))
            except _FAILURES as error:
                log.warning("leader election: the lease was not released: %s", error)
                return False
            if lease.holder != self._identity:
                return True
        return False

    def _watch_deadline(self) -> None:
        """Lose the lease when it was not renewed in time; a thread of its own."""
        self._leadership.wait_for_end()
        self._too_late()

    def _call(self) -> None:
        """Call the roll until it is answered, then say that we lead; a thread of its own."""
        longest_s = self._settings.retry_period_s
        delays = BackoffSettings(first_s=min(_FIRST_CALL_PAUSE_S, longest_s), longest_s=longest_s)
        backoff = Backoff(delays, self._clock, self._random)
        try:
            while self._leadership.is_running:
                try:
                    roll_call = call_the_roll(self._list_transport, self._scheduler_names)
                except (ApiError, TransportError, MalformedStreamError) as error:
                    log.warning("leader election: the pending Pods cannot be listed yet, retrying: %s", error)
                    self._leadership.lead_until(self._clock() + backoff.next_s())
                    continue
                if self._leadership.is_running:
                    self._observer.on_leading(roll_call)
                    self._write_event(self._held(), "became leader", _EVENT_TIMEOUT_S)
                return
        except Exception as error:
            log.exception("leader election: unexpected error")
            self._lose(f"unexpected error while listing the pending Pods: {error!r}")

    # Parts of both

    def _lose(self, reason: str) -> None:
        if self._leadership.lose():
            self._observer.on_lost(reason)

    def _too_late(self) -> None:
        why = f": {self._problem}" if self._problem else ""
        self._lose(f"the lease could not be renewed for {self._settings.renew_deadline_s:g} s{why}")

    def _timeout_s(self) -> float:
        """Half of the deadline, as kube-scheduler has it, and no more than half of what is left of the term.

        A request that hangs where etcd has gone is not always answered once it is back: the nearer the end, the sooner
        the next one goes out, at last a tenth of the deadline before it.
        """
        deadline_s, left_s = self._settings.renew_deadline_s, self._leadership.left_s
        longest_s = min(deadline_s / 2, max(left_s / 2, min(left_s, deadline_s / 10)))
        return max(longest_s, _SHORTEST_TIMEOUT_S)

    def _held(self) -> Lease:
        if self._lease is None:
            raise RuntimeError("there is no lease that we hold")
        return self._lease

    def _write_event(self, lease: Lease, what: str, timeout_s: float) -> None:
        """Write an Event, if that works at once: nothing waits for it."""
        try:
            self._client.write_event(lease, what, max(timeout_s, _SHORTEST_TIMEOUT_S))
        except (ApiError, TransportError) as error:
            log.debug("leader election: Event not written: %s", error)

    def _failed(self, what: str, error: Exception) -> None:
        if not self._problem:
            log.warning("leader election: %s: %s; trying again", what, error)
        self._problem = f"{what}: {error}"

    def _answered(self) -> None:
        if self._problem:
            self._problem = ""
            log.info("leader election: the API server answers again")

    def _tell_holder(self, before: str) -> None:
        now = self._standby.holder
        if now != before:
            log.info(
                "leader election: %s", f"the leader is {now}" if now else "there is no leader", extra={"holder": now}
            )


def _watch_settings(settings: ElectionSettings) -> ReflectorSettings:
    """Return times fit for one object that changes every few seconds: a quiet watch is a dead one."""
    return ReflectorSettings(
        list_timeout_s=settings.renew_deadline_s,
        watch_read_timeout_s=2.0 * settings.lease_duration_s,
        backoff=BackoffSettings(first_s=settings.retry_period_s, longest_s=settings.lease_duration_s),
    )


def _is_status(error: Exception, *statuses: int) -> bool:
    return isinstance(error, ApiError) and error.status in statuses
