"""What Vane itself may take: series of its metrics, memory, writes to the API server."""

from __future__ import annotations

import time
from collections import Counter, defaultdict

from tests.e2e.world import refuse_above
from tests.faults.bench.bench import Bench, Setting
from tests.faults.bench.placing import Placing, measure_all_placed, quantile, small_pod
from tests.faults.checker.evidence import UNPLACEABLE
from tests.faults.checker.processes import MIB, Flat, Sample, growths
from tests.faults.checker.requests import USER, Asked
from tests.faults.row import Row
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


def spam(bench: Bench) -> None:
    """Many Pods fit nowhere for a while, as nodes come and go."""
    count = int(bench.seconds(300, 80))
    names = {f"spam-{i}" for i in range(count)}
    bench.api.create_pods(
        pod(name, cpu="64", scheduler_name="vane", grace=0, labels={UNPLACEABLE: "yes"}) for name in sorted(names)
    )
    bench.last(5.0)  # the first report of each
    begun_s = time.time()  # noqa: TID251  # audit logs are by the wall clock
    bench.last(seconds := bench.seconds(120, 20))
    asked = [one for one in bench.asked() if one.user == USER]
    messages, writes = _told(bench, names), _status_writes(asked, names)
    since = [one for one in asked if one.at_s >= begun_s and one.resource == "events" and not one.is_read]
    of_them = sum(_is_about(one, names) for one in since)
    most = max((writes[name] / max(1, messages[name]) for name in names), default=0.0)
    bench.figure("Pods", count)
    bench.figure("messages of one Pod, most", max(messages.values(), default=0))
    bench.figure("status writes for each message of a Pod, most", most, at_most=1.0)
    bench.figure("writes of Events about them a second", of_them / seconds, at_most=_EVENTS_PER_S)
    bench.figure("writes of Events in all a second", len(since) / seconds)


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


def _status_writes(asked: list[Asked], names: set[str]) -> defaultdict[str, int]:
    writes: defaultdict[str, int] = defaultdict(int)
    for one in asked:
        if one.resource == "pods/status" and one.verb == "patch" and one.name in names and one.code == 200:
            writes[one.name] += 1
    return writes


def _is_about(one: Asked, names: set[str]) -> bool:
    """Whether a write of an Event is about one of these Pods; the name of an Event begins with its Pod's."""
    return not one.name or one.name.partition(".")[0] in names


ROWS = (
    Row("F21", "thousands of names in hundreds of namespaces", many_names, Setting(rules=_SIXTY_RULES)),
    Row("F23-churn", "memory under churn", churns, Setting(pods_per_s=20.0, n_alive=90)),
    Row("F23-burst", "a burst of Pods that fit nowhere", burst),
    Row("F25", "Pods that fit nowhere for a while", spam),
)
