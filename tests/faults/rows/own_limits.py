"""What Vane itself may take: series of its metrics, memory, writes to the API server."""

from __future__ import annotations

import time
from collections import Counter

from tests.e2e.world import refuse_above
from tests.faults.bench.bench import Bench, Setting
from tests.faults.bench.placing import Placing, measure_all_placed, quantile, small_pod
from tests.faults.checker.evidence import UNPLACEABLE, Allowance
from tests.faults.checker.processes import MIB, Flat, Sample, growths
from tests.faults.checker.requests import USER
from tests.faults.row import Row
from tests.faults.rows.steps import unix_clock
from tests.support.manifests import Json, pod

_MIB_OF_A_POD = 0.021
"""What a Pod may take at its first sight, as the issue measured; half of it is meant."""


# F21

_MOST_SERIES, _MOST_BYTES = 5_000, 2**20
_TENANT = "tenant-"
_UNIQUE = "unique-"
_BATCH = 100


def _pods_of_many_namespaces(bench: Bench, first: int, count: int, namespaces: list[str]) -> None:
    """Have Pods of names nobody else has placed, a batch at a time, and take them away again."""
    for begin in range(first, first + count, _BATCH):
        names = {
            f"{_UNIQUE}{i}": namespaces[i % len(namespaces)] for i in range(begin, min(begin + _BATCH, first + count))
        }
        bench.api.create_pods(
            small_pod(name, namespace=namespace, labels={_UNIQUE + "label": name}, cpu="1m")
            for name, namespace in names.items()
        )
        bench.until(lambda names=names: bench.watcher.bound >= names.keys(), 60.0, "a batch of Pods")  # type: ignore[misc]
        bench.api.for_each(lambda item: bench.api.delete_pod(item[0], item[1], grace=0), names.items())


def _page(bench: Bench) -> tuple[set[str], int]:
    """Return the names of the series of the leader's /metrics, and the bytes of the page, once it is a new one."""
    bench.last(1.2)
    page = bench.leader().vane.page("metrics")
    names = {line.rpartition(" ")[0] for line in page.splitlines() if line and not line.startswith("#")}
    return names, len(page.encode())


def many_names(bench: Bench) -> None:
    """Pods in many namespaces, no two of one name, under sixty rules."""
    n_namespaces, n_pods = int(bench.seconds(400, 60)), int(bench.seconds(3_000, 600))
    namespaces = [f"{_TENANT}{i}" for i in range(n_namespaces)]
    bench.api.for_each(bench.api.create_namespace, namespaces)
    _pods_of_many_namespaces(bench, 0, n_pods // 3, namespaces)
    before, _ = _page(bench)
    _pods_of_many_namespaces(bench, n_pods // 3, n_pods - n_pods // 3, namespaces)
    after, n_bytes = _page(bench)
    told = [name for name in after if _TENANT in name or _UNIQUE in name]
    bench.figure("Pods of unique names", n_pods)
    bench.figure("namespaces", n_namespaces)
    bench.figure("series of /metrics", len(after), at_most=_MOST_SERIES)
    bench.figure("bytes of /metrics", n_bytes, at_most=_MOST_BYTES)
    bench.figure("series that came after the first third of them", len(after - before), at_most=0.02 * len(before))
    bench.figure("series that name a namespace or a Pod", len(told), at_most=0)


_SIXTY_RULES = "".join(refuse_above(0.99, f"rule-{i}") for i in range(60))


# F23


def _grown(samples: list[Sample]) -> tuple[float, float]:
    """Return the most that a process has grown by, in MiB, and the most as a share."""
    found = growths(samples, Flat().least_samples)
    grown = [(one.rss_after_bytes - one.rss_before_bytes) / MIB for one in found]
    return max(grown, default=0.0), max((one.rss_share for one in found), default=0.0)


def churns(bench: Bench) -> None:
    """Nothing but churn, twice as much of it as elsewhere."""
    placing = Placing(bench)
    bench.last(bench.seconds(160, 38))
    mib, share = _grown(bench.sampler.samples)
    bench.figure("growth of a process, most, MiB", mib, at_most=Flat().rss_bytes / MIB)
    bench.figure("growth of a process, most, share", share)
    bench.figure("Pods", len(placing.names()))
    measure_all_placed(bench, placing.names())


def _deciding_mib(bench: Bench) -> float:
    """Return the resident memory of the leader's deciding process."""
    pid = bench.leader().vane.process.pid
    return next((one.rss_bytes for one in reversed(bench.sampler.samples) if one.pid == pid), 0) / MIB


def burst(bench: Bench) -> None:
    """A burst of Pods that fit nowhere; others go on, and what they took comes back."""
    count = int(bench.seconds(4_000, 600))
    bench.last(bench.seconds(25, 21))  # until the processes have settled
    before_mib, highest_mib = _deciding_mib(bench), 0.0
    names = [f"burst-{i}" for i in range(count)]
    placing = Placing(bench)
    bench.api.create_pods(
        pod(name, cpu="64", scheduler_name="vane", grace=0, labels={UNPLACEABLE: "yes"}) for name in names
    )
    until_s = time.monotonic() + bench.seconds(30, 5)
    while time.monotonic() < until_s:
        bench.last(1.0)
        highest_mib = max(highest_mib, _deciding_mib(bench))
    during = placing.names()
    waits_s = placing.waits_s(during)
    bench.api.delete("/api/v1/namespaces/default/pods", gracePeriodSeconds=0, labelSelector=UNPLACEABLE)
    bench.last(bench.seconds(20, 5))
    after_mib = _deciding_mib(bench)
    bench.figure("Pods at once", count)
    most_mib = count * _MIB_OF_A_POD + 16
    bench.figure("growth of the deciding process, MiB", highest_mib - before_mib, at_most=most_mib)
    bench.figure("of it left after they have gone, MiB", after_mib - before_mib, at_most=max(24.0, most_mib / 2))
    bench.figure("other Pods' wait meanwhile, p50, s", quantile(waits_s, 0.5), at_most=1.0)
    bench.figure("other Pods' wait meanwhile, p99, s", quantile(waits_s, 0.99))
    measure_all_placed(bench, during)


# F25

_EVENTS_PER_S = 10.0


class _Written:
    """What was written about some Pods since a moment: conditions and Events, and how often their message changed."""

    def __init__(self, bench: Bench, names: set[str]) -> None:
        self._bench = bench
        self._names = names
        self._begun_s = unix_clock()
        self._messages = _told(bench, names)

    def measure(self, title: str, seconds: float, at_most_per_s: float | None = None) -> None:
        """Hold writes against their bounds: of a condition one for each message, of Events one, and one of a series."""
        bench, names = self._bench, self._names
        since = [one for one in bench.asked() if one.user == USER and one.at_s >= self._begun_s and not one.is_read]
        messages = _told(bench, names) - self._messages
        events = Counter(one.name.partition(".")[0] for one in since if one.resource == "events")
        conditions = Counter(one.name for one in since if one.resource == "pods/status" and one.code == 200)
        bench.figure(f"{title}: messages of all Pods", sum(messages.values()))
        for what, written, most in (("conditions", conditions, 1), ("Events", events, 2)):
            excess = max(written[name] - most * (messages[name] + 1) for name in names)
            bench.figure(f"{title}: writes of {what}", sum(written[name] for name in names))
            bench.figure(f"{title}: of one Pod beyond {most} for each message", excess, at_most=0)
        per_s = sum(events[name] for name in names) / seconds
        bench.figure(f"{title}: writes of Events about them a second", per_s, at_most=at_most_per_s)


def spam(bench: Bench) -> None:
    """Many Pods fit nowhere for a while: in a calm cluster, then as a node comes and goes."""
    count = int(bench.seconds(300, 80))
    names = {f"spam-{i}" for i in range(count)}
    bench.api.create_pods(
        pod(name, cpu="64", scheduler_name="vane", grace=0, labels={UNPLACEABLE: "yes"}) for name in sorted(names)
    )
    bench.last(bench.seconds(15, 6))  # the first report of each
    written, seconds = _Written(bench, names), bench.seconds(60, 10)
    bench.last(seconds)
    written.measure("calm", seconds, _EVENTS_PER_S)
    written, begun_s = _Written(bench, names), time.monotonic()
    for _ in range(int(bench.seconds(8, 2))):
        bench.api.create_node("comes-and-goes", cpu="1")
        bench.last(3.0)
        bench.api.delete("/api/v1/nodes/comes-and-goes")
        bench.last(3.0)
    written.measure("nodes change", time.monotonic() - begun_s)
    bench.figure("Pods", count)


def _told(bench: Bench, names: set[str]) -> Counter[str]:
    """Return how often the condition of each Pod changed, as the watch shows it."""
    last: dict[str, Json] = {}
    changed: Counter[str] = Counter()
    for change in list(bench.watcher.history.changes):
        if change.kind != "Pod" or change.name not in names:
            continue
        conditions = change.content.get("status", {}).get("conditions", ())
        scheduled = next((one for one in conditions if one["type"] == "PodScheduled"), None)
        told = {key: scheduled.get(key) for key in ("status", "reason", "message")} if scheduled else {}
        if told and last.get(change.name) != told:
            changed[change.name] += 1
            last[change.name] = told
    return changed


ROWS = (
    Row("F21", "thousands of names in hundreds of namespaces", many_names, Setting(rules=_SIXTY_RULES)),
    Row("F23-churn", "memory under churn", churns, Setting(pods_per_s=20.0, n_alive=90)),
    # Thousands of Events are written one after the other, each with the words of its decision.
    Row("F23-burst", "a burst of Pods that fit nowhere", burst, Setting(allowance=Allowance(late_s=60.0))),
    # The row lets a node come and go itself.
    Row("F25", "Pods that fit nowhere for a while", spam, Setting(node_every_s=3600.0)),
)
