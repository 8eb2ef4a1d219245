"""Faults that somebody might make: a limit off by one, a missing undo, a stale key, a check that is dropped."""

from __future__ import annotations

from tests.mutants.decisions import IN_DECISIONS
from tests.mutants.hostile import IN_DEFENCES
from tests.mutants.mutant import Mutant

_MODEL = (
    Mutant(
        bug="amounts are rounded down, not up",
        path="model/requests.py",
        old="return max(-_LIMIT, min(_LIMIT, -(-nano // unit)))",
        new="return max(-_LIMIT, min(_LIMIT, nano // unit))",
        tests=("model/test_requests.py", "model/test_quantity.py"),
    ),
    Mutant(
        bug="a sidecar that runs already is left out of what a later init container needs",
        path="model/requests.py",
        old="amount + sidecars.get(name, 0)",
        new="amount",
        tests=("model/test_requests.py",),
    ),
    Mutant(
        bug="Ki counts as 1000",
        path="model/quantity.py",
        old="Fraction(1024**power)",
        new="Fraction(1000**power)",
        tests=("model/test_quantity.py",),
    ),
    Mutant(
        bug="a trial that ends leaves the Pods of a row in another order",
        path="model/snapshot.py",
        old="                self._state.pods[row] = pods\n",
        new="                self._state.pods.setdefault(row, pods)\n",
        tests=("model/test_snapshot.py", "contracts/test_sequences.py"),
    ),
    Mutant(
        bug="a sum that one owner's Pods drive beyond int64 wraps",
        path="model/resource_columns.py",
        old="        if total > SATURATED:\n",
        new="        if total > 2 * SATURATED:\n",
        tests=("model/test_resource_columns.py",),
    ),
    Mutant(
        bug="a resource that a node begins to advertise does not count the Pods that are there",
        path="model/resource_columns.py",
        old="for row, total in self._without_column.pop(name, {}).items():",
        new="for row, total in {}.items():",
        tests=("model/test_resource_columns.py",),
    ),
    Mutant(
        bug="a fault while one object is applied ends the process",
        path="cluster/router.py",
        old="            self._set_aside(type_, item, error, now_s)\n",
        new="            raise error\n",
        tests=("cluster/test_bad_input.py",),
    ),
    Mutant(
        bug="columns by row are served although a resource has come or nodes were laid out anew",
        path="model/row_memo.py",
        old="entry is None or entry.shape != shape else",
        new="entry is None else",
        tests=("model/test_row_memo.py",),
    ),
    Mutant(
        bug="a kept result is served for other sources than it was made from",
        path="model/memo.py",
        old="all(map(is_, known, sources))",
        new="any(map(is_, known, sources))",
        tests=("model/test_memo.py",),
    ),
)

_CLUSTER = (
    Mutant(
        bug="backoff doubles once too early",
        path="cluster/backoff.py",
        old="min(count - 1, _MAX_DOUBLINGS)",
        new="min(count, _MAX_DOUBLINGS)",
        tests=("cluster/test_queue.py",),
    ),
    Mutant(
        bug="a Pod comes back within the second in which its backoff ends",
        path="cluster/backoff.py",
        old="return self.expiry_s(entity) >= math.floor(now_s)",
        new="return self.expiry_s(entity) > math.floor(now_s)",
        tests=("cluster/test_queue.py",),
    ),
    Mutant(
        bug="a failed Pod is popped early, before its backoff is over",
        path="cluster/backoff.py",
        old="        return self._refused.pop()\n",
        new="        return self._refused.pop() or self._failed.pop()\n",
        tests=("cluster/test_queue.py",),
    ),
    Mutant(
        bug="events that came while a Pod was tried are forgotten",
        path="cluster/queue.py",
        old="            events = self._in_flight.events_since(attempt)\n",
        new="            events = attempt.own\n",
        tests=("cluster/test_queue_events.py",),
    ),
    Mutant(
        bug="one event too many is forgotten when an attempt ends",
        path="cluster/inflight.py",
        old="self._events[0][0] <= oldest.started",
        new="self._events[0][0] <= oldest.started + 1",
        tests=("cluster/test_inflight.py", "cluster/test_queue_machine.py"),
    ),
    Mutant(
        bug="a Pod that may have missed an event waits for the next one",
        path="cluster/inflight.py",
        old="attempt.has_missed or attempt.started < self._n_dropped",
        new="attempt.has_missed",
        tests=("cluster/test_inflight.py",),
    ),
    Mutant(
        bug="Pods that a rule has freed sit out their backoff",
        path="cluster/queue.py",
        old="            self._end_backoff(event, now_s)\n",
        new="            pass\n",
        tests=("cluster/test_queue_events.py",),
    ),
    Mutant(
        bug="more Pods come back within one second than may",
        path="cluster/spread.py",
        old="released_s[0] + 1 if",
        new="released_s[0] if",
        tests=("cluster/test_queue_events.py",),
    ),
    Mutant(
        bug="forget takes a confirmed Pod off its node",
        path="cluster/cache.py",
        old="        if known is None or not known.is_assumed:\n",
        new="        if known is None:\n",
        tests=("cluster/test_cache.py", "cluster/test_cache_machine.py"),
    ),
    Mutant(
        bug="a Pod whose labels change keeps its old labels in the indexes",
        path="cluster/cache.py",
        old="        and old.labels == new.labels\n",
        new="",
        tests=("cluster/test_cache.py", "cluster/test_cache_machine.py", "contracts/test_sequences.py"),
    ),
    Mutant(
        bug="an assumed Pod stays nominated and counts twice",
        path="cluster/cache.py",
        old="        self.nominator.remove(pod.uid)\n",
        new="",
        tests=("cluster/test_cache.py",),
    ),
    Mutant(
        bug="taking an assumption back brings the object as it is assumed, not as it was shown",
        path="cluster/assumed.py",
        old="        shown = self._known[key][0] if key in self._known else there\n",
        new="        shown = there\n",
        tests=("cluster/test_assumed.py",),
    ),
)

_KUBE = (
    Mutant(
        bug="an authority without key identifiers is refused",
        path="tls.py",
        old="context.verify_flags & ~ssl.VERIFY_X509_STRICT",
        new="context.verify_flags | ssl.VERIFY_X509_STRICT",
        tests=("test_tls.py",),
    ),
    Mutant(
        bug="files of authorities are read only once",
        path="tls.py",
        old="        if _stamp(self._files) != self._stamp:\n",
        new="        if not self._stamp:\n",
        tests=("test_tls.py",),
    ),
    Mutant(
        bug="a bind may begin at the very deadline of the lease",
        path="kube/binder/fence.py",
        old="return self._clock() >= self.not_after",
        new="return self._clock() >= self._ends_at",
        tests=("kube/binder/test_fence.py",),
    ),
    Mutant(
        bug="a timer that was armed late is left as it is",
        path="kube/binder/fence.py",
        old="if self._timer.left_s() + self._clock() <= term.ends_at + _LATE_S:",
        new="if self._timer.left_s() > 0:",
        tests=("kube/binder/test_fence.py",),
    ),
    Mutant(
        bug="the third of an Event is written as well",
        path="kube/binder/event_series.py",
        old="return None if record.is_series else repeated",
        new="return None if record.count > 2 else repeated",
        tests=("kube/binder/test_events.py",),
    ),
    Mutant(
        bug="the end of a quiet series is never written",
        path="kube/binder/event_series.py",
        old="if (record := self._records.pop(key)).is_series]",
        new="if not (record := self._records.pop(key)).is_series]",
        tests=("kube/binder/test_events.py",),
    ),
    Mutant(
        bug="a lease that is renewed counts from the first sight of it",
        path="kube/election/standby.py",
        old="        if lease is not None and not lease.is_same_as(self._lease):\n",
        new="        if lease is not None and self._lease is None:\n",
        tests=("kube/election/test_standby.py",),
    ),
    Mutant(
        bug="a term counts from the answer to a renewal, not from its request",
        path="kube/election/elector.py",
        old="        started_s = self._clock()\n        try:\n            renewed = self._client.renew(",
        new="        started_s = self._clock() + 0.4\n        try:\n            renewed = self._client.renew(",
        tests=("kube/election/test_elector.py", "kube/election/test_elector_faults.py"),
    ),
    Mutant(
        bug="an answer that comes after the term has ended makes it longer",
        path="kube/election/leadership.py",
        old="or self._clock() >= limit_s:",
        new="or self._clock() >= until.ends_at:",
        tests=("kube/election/test_leadership.py",),
    ),
    Mutant(
        bug="a server that asks to wait is asked before its time",
        path="kube/binder/retry.py",
        old="return min(retry_after_s or 1.0, _LONGEST_TOLD_S) * (1.0 + _JITTER * self._chance.random())",
        new="return min(retry_after_s or 1.0, _LONGEST_TOLD_S) * self._chance.random()",
        tests=("kube/binder/test_client.py",),
    ),
)

_LOOP = (
    Mutant(
        bug="a bind that fails leaves its Pod assumed",
        path="loop/binding/cycle.py",
        old="        forgotten = self._cache.forget(uid)\n",
        new="        forgotten = None\n",
        tests=("loop",),
    ),
    Mutant(
        bug="what Reserve did is not undone when a bind fails",
        path="loop/binding/cycle.py",
        old="        self._runner.unreserve(placement)\n",
        new="",
        tests=("loop",),
    ),
    Mutant(
        bug="nobody hears of the room that a failed bind leaves",
        path="loop/binding/cycle.py",
        old="            self._queue.on_event(pod_deleted(forgotten), now_s)\n",
        new="            pass\n",
        tests=("loop",),
    ),
    Mutant(
        bug="a Pod whose bind was answered with a wrong 404 is never tried again",
        path="loop/failure.py",
        old="        if not self._queue.requeue_error(attempt.entity, now_s):\n            return\n        log.info(",
        new="        self._queue.done(attempt.pod.uid)\n        log.info(",
        tests=("loop/test_cycle.py",),
    ),
    Mutant(
        bug="a Pod is let in again before the last of its victims was told to go",
        path="loop/preemptions.py",
        old="len(requests) - 1)",
        new="len(requests) - 2)",
        tests=("loop/test_preemptions.py",),
    ),
    Mutant(
        bug="victims that leave already are told again",
        path="loop/preemptions.py",
        old="            if victim.pod.metadata.deletion_timestamp is not None:\n                continue\n",
        new="",
        tests=("loop/test_preemptions.py",),
    ),
    Mutant(
        bug="a Pod that is bound already is scheduled again",
        path="loop/failure.py",
        old="        elif not self._cache.is_placed(pod.uid):\n",
        new="        elif True:\n",
        tests=("loop",),
    ),
)

_SIGNALS = (
    Mutant(
        bug="a rule that has tripped is clear again at once",
        path="signals/columns/trips.py",
        old="            tripped |= before & (sign * values > sign * clear)\n",
        new="            tripped |= before & (sign * values > sign * limit)\n",
        tests=("signals/columns/test_trips.py",),
    ),
    Mutant(
        bug="a valve opens at its share, not beyond",
        path="signals/columns/trips.py",
        old="n_refused > limits.valve * n_nodes",
        new="n_refused >= limits.valve * n_nodes",
        tests=("signals/columns/test_trips.py",),
    ),
    Mutant(
        bug="an answer that comes late displaces a newer one",
        path="signals/columns/store.py",
        old="answer.evaluated_at_s < before.answer.evaluated_at_s:",
        new="answer.evaluated_at_s < 0.0:",
        tests=("signals/columns/test_store.py",),
    ),
    Mutant(
        bug="a rule set that is the same but for a rule forgets the trips of all",
        path="signals/columns/store.py",
        old="                    bits = old.trips.get(rule.name) if is_same else None\n",
        new="                    bits = None\n",
        tests=("signals/columns/test_store.py",),
    ),
    Mutant(
        bug="a server that is down is asked by all signals once a pause is over",
        path="signals/asking/breaker.py",
        old="            self._is_trying = True\n",
        new="",
        tests=("signals/asking/test_breaker.py",),
    ),
)

MUTANTS = (*_MODEL, *_CLUSTER, *_KUBE, *_LOOP, *_SIGNALS, *IN_DECISIONS, *IN_DEFENCES)
