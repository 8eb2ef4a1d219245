"""AnnotationBinder, DelayedBinder, RemoteBinder: what they return for which Pods."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from scheduler.framework.instructions import Bind, PatchPod
from scheduler.framework.status import Code, Status, Wait
from scheduler.model.pods import PodInfo
from scheduler.plugins.annotation_binder import AnnotationBinder, AnnotationBinderArgs
from scheduler.plugins.delayed_binder import DelayedBinder, DelayedBinderArgs
from scheduler.plugins.remote_binder import RemoteBinder, RemoteBinderArgs
from tests.builders import pod_of

BATCH = {"matchLabels": {"team": "batch"}}
LEFT_ALONE = {"labels": {"team": "web"}}


def pod(**metadata: Any) -> PodInfo:
    return pod_of({"metadata": {"name": "a", "namespace": "shop", "uid": "u", **metadata}, "spec": {}})


def confirmed(value: str | None, **metadata: Any) -> PodInfo:
    annotations = {} if value is None else {"vane.dev/confirmed-node": value}
    return pod(annotations=annotations, **metadata)


def annotation_binder(**args: Any) -> AnnotationBinder:
    return AnnotationBinder(msgspec.convert(args, AnnotationBinderArgs))


def delayed_binder(**args: Any) -> DelayedBinder:
    return DelayedBinder(msgspec.convert(args, DelayedBinderArgs))


def remote_binder(**args: Any) -> RemoteBinder:
    return RemoteBinder(msgspec.convert(args, RemoteBinderArgs))


def test_the_decision_as_annotation_and_nomination() -> None:
    assert annotation_binder().bind(None, pod(), "n1") == PatchPod("shop", "a", "u", {"vane.dev/node": "n1"}, "n1")
    patch = annotation_binder(annotation="example.com/place").bind(None, pod(), "n1")
    assert patch == PatchPod("shop", "a", "u", {"example.com/place": "n1"}, "n1")


def test_pods_that_are_not_selected_are_left_to_the_next_bind_plugin() -> None:
    other = pod(**LEFT_ALONE)
    assert annotation_binder(pods=BATCH).bind(None, other, "n1") is None
    assert delayed_binder(pods=BATCH).permit(None, other, "n1") is None
    assert delayed_binder(pods=BATCH).bind(None, other, "n1") is None
    assert remote_binder(cluster="west", pods=BATCH).bind(None, other, "n1") is None
    assert remote_binder(cluster="west", pods=BATCH).postbind(None, other, "n1") == ()


@pytest.mark.parametrize("value", [None, "n2", ""], ids=["not confirmed", "another proposal's", "empty"])
def test_a_proposal_waits_for_its_confirmation(value: str | None) -> None:
    wait = Wait(600.0, (PatchPod("shop", "a", "u", {"vane.dev/proposed-node": "n1"}),))
    assert delayed_binder().permit(None, confirmed(value), "n1") == wait
    assert isinstance(delayed_binder().reconsider(None, confirmed(value), "n1"), Wait)


def test_a_confirmed_pod_is_bound_as_usual() -> None:
    binder = delayed_binder(timeout="1m30s")
    waits = binder.permit(None, confirmed(None), "n1")
    assert isinstance(waits, Wait)
    assert waits.timeout_s == 90.0
    assert binder.reconsider(None, confirmed("n1"), "n1") is None
    assert binder.permit(None, confirmed("n1"), "n1") is None
    assert binder.bind(None, confirmed("n1"), "n1") == Bind("shop", "a", "u", "n1")


def test_none_refuses_with_a_reason() -> None:
    refusal = Status(Code.UNSCHEDULABLE, ('annotation vane.dev/confirmed-node is "none"',))
    assert delayed_binder().reconsider(None, confirmed("none"), "n1") == refusal
    assert delayed_binder().permit(None, confirmed("none"), "n1") == refusal


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param("none", None, QueueingHint.QUEUE, id="the refusal was taken back"),
        pytest.param(None, "n2", QueueingHint.QUEUE, id="a late confirmation"),
        pytest.param(None, "none", QueueingHint.SKIP, id="refused"),
        pytest.param("none", "none", QueueingHint.SKIP, id="something else changed, as by our own proposal"),
    ],
)
def test_what_was_refused_is_tried_again_when_the_confirmation_changes(
    old: str | None, new: str | None, hint: QueueingHint
) -> None:
    (interest,) = delayed_binder().events()
    event = ClusterEvent.of(Resource.TARGET_POD, Action.UPDATE_OTHER, confirmed(old), confirmed(new))
    assert interest.covers(event)
    assert interest.hint(confirmed(old), event) is hint


def test_another_pods_confirmation_is_none_of_its_business() -> None:
    (interest,) = delayed_binder().events()
    event = ClusterEvent.of(
        Resource.TARGET_POD, Action.UPDATE_OTHER, confirmed(None, uid="other"), confirmed("n1", uid="other")
    )
    assert interest.hint(confirmed(None), event) is QueueingHint.SKIP


@pytest.mark.parametrize(
    ("timeout", "words"),
    [
        pytest.param("15m1s", "timeout: must be more than 0 and at most 15m, got '15m1s'", id="too long"),
        pytest.param("0", "timeout: must be more than 0 and at most 15m, got '0'", id="zero"),
        pytest.param("10", "timeout: must be a duration, got '10'. Write for example 10m", id="no unit"),
        pytest.param("-5m", "timeout: must be a duration, got '-5m'", id="negative"),
        pytest.param(600, "Expected `str`, got `int` - at `$.timeout`", id="a number"),
    ],
)
def test_timeouts_are_refused_with_what_to_write(timeout: object, words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        delayed_binder(timeout=timeout)
    assert words in str(caught.value)


def test_bound_there_and_shown_here() -> None:
    binder = remote_binder(cluster="west")
    assert binder.clusters() == ("west",)
    assert binder.bind(None, pod(), "n1") == Bind("shop", "a", "u", "n1", "west")
    assert binder.postbind(None, pod(), "n1") == (
        PatchPod("shop", "a", "u", {"vane.dev/cluster": "west", "vane.dev/node": "n1"}, "n1"),
    )


def test_arguments_are_checked() -> None:
    with pytest.raises(msgspec.ValidationError, match="missing required field `cluster`"):
        remote_binder()
    with pytest.raises(msgspec.ValidationError, match=r"cluster: got ''\. Write a name that `clusters` gives"):
        remote_binder(cluster="")
    with pytest.raises(msgspec.ValidationError, match=r"annotation: got the key 'a b'\. Write a qualified name"):
        annotation_binder(annotation="a b")
