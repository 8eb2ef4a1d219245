"""A Pod whose claim would have to be bound is sent back by name; one whose claim is bound gets its node."""

from __future__ import annotations

from tests.builders import make_node
from tests.loop.harness import Harness
from tests.plugins.volumes import claim, pod_claiming, storage_class, volume


def test_only_bound_claims_are_placed() -> None:
    harness = Harness()
    harness.list_nodes(make_node("n"))
    harness.list_pods()
    for item in (storage_class(), claim("waiting", storage_class="wait"), claim("bound", volume="pv"), volume()):
        harness.world.cache.state.set_object(item)

    harness.see(pod_claiming("waiting", name="first"))
    harness.see(pod_claiming("bound", name="second"))
    harness.run()

    assert [bind.pod.name for bind in harness.binder.binds] == ["second"]
    (report,) = harness.binder.reports
    assert (report.pod.name, report.reason) == ("first", "SchedulerError")
    assert "spec.volumes.persistentVolumeClaim that is not bound yet: not built yet" in report.message
