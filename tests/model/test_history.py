from __future__ import annotations

import copy
from datetime import UTC, datetime
from random import Random

import pytest

from scheduler.model.history import MAX_WINDOW_S, CountedPods, PlacementHistory
from scheduler.model.nodes import NodeTable
from scheduler.model.pods import PodInfo
from tests.builders import make_node, make_pod
from tests.worlds import each_seed

NOW_S = 1_800_000_000.0
HOUR_S = 3_600.0
WEB = CountedPods("default", (("app", "web"),))


def placed(name: str, ago_s: float, app: str = "web", namespace: str = "default", started: bool = False) -> PodInfo:
    """Return a Pod that was bound so many seconds before NOW_S, or that is only known to have been started then."""
    text = datetime.fromtimestamp(NOW_S - ago_s, UTC).isoformat()
    bound = {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": text}]}
    status = {"startTime": text} if started else bound
    return make_pod(name, namespace=namespace, labels={"app": app, "run": name}, status=status)


def nodes_of(*names: str) -> NodeTable:
    table = NodeTable()
    for name in names:
        table.set_node(make_node(name))
    return table


def counts(
    history: PlacementHistory, nodes: NodeTable, question: CountedPods = WEB, window_s: float = HOUR_S
) -> list[int]:
    found: list[int] = history.counts(question, NOW_S - window_s, nodes).tolist()
    return found


def test_pods_that_have_gone_count_within_the_window_where_they_were() -> None:
    history, nodes = PlacementHistory(), nodes_of("a", "b")
    history.leave(placed("early", ago_s=HOUR_S + 1), "a", NOW_S)
    history.leave(placed("one", ago_s=HOUR_S - 1), "b", NOW_S)
    history.leave(placed("two", ago_s=10, started=True), "b", NOW_S)

    assert counts(history, nodes) == [0, 2]
    assert counts(history, nodes, window_s=2 * HOUR_S) == [1, 2]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        pytest.param(WEB, 1, id="label and namespace"),
        pytest.param(CountedPods(None, (("app", "web"),)), 2, id="all namespaces"),
        pytest.param(CountedPods("default", (("app", "db"),)), 1, id="another value"),
        pytest.param(CountedPods("default", (("app", "web"), ("run", "one"))), 1, id="all labels"),
        pytest.param(CountedPods("default", (("app", "web"), ("run", "else"))), 0, id="not all labels"),
        pytest.param(CountedPods("default", (("nothing", "web"),)), 0, id="a label that nobody has"),
    ],
)
@pytest.mark.parametrize("asked_before", [True, False])
def test_whom_a_question_is_about(question: CountedPods, expected: int, asked_before: bool) -> None:
    history, nodes = PlacementHistory(), nodes_of("a")
    if asked_before:
        counts(history, nodes, question)
    history.leave(placed("one", 5), "a", NOW_S)
    history.leave(placed("other", 5, app="db"), "a", NOW_S)
    history.leave(placed("far", 5, namespace="else"), "a", NOW_S)

    assert counts(history, nodes, question) == [expected]


def test_a_pod_counts_once_and_not_once_it_is_back() -> None:
    history, nodes, pod = PlacementHistory(), nodes_of("a"), placed("one", 5)
    history.leave(pod, "a", NOW_S)
    history.leave(pod, "a", NOW_S + 1)
    assert counts(history, nodes) == [1]

    history.come_back(pod.uid)

    assert counts(history, nodes) == [0]
    assert len(history) == 0


def test_without_a_time_a_pod_counts_as_placed_when_it_was_seen_to_leave() -> None:
    history, nodes = PlacementHistory(), nodes_of("a")
    history.leave(make_pod(labels={"app": "web"}), "a", NOW_S)

    assert counts(history, nodes, window_s=1) == [1]


def test_a_node_that_comes_back_on_another_row_keeps_its_history() -> None:
    history, nodes = PlacementHistory(), nodes_of("a", "b")
    history.leave(placed("one", 5), "a", NOW_S)
    assert counts(history, nodes) == [1, 0]
    nodes.remove_node("a")
    nodes.set_node(make_node("c"))
    assert counts(history, nodes) == [0, 0]

    nodes.set_node(make_node("a"))

    assert counts(history, nodes) == [0, 0, 1]


def test_no_more_are_kept_than_there_is_room_for_and_none_beyond_the_longest_window() -> None:
    history, nodes = PlacementHistory(capacity=3), nodes_of("a")
    history.leave(placed("ancient", ago_s=MAX_WINDOW_S + 1), "a", NOW_S)
    assert len(history) == 0
    for i in range(6):
        history.leave(placed(f"p{i}", ago_s=60 - i), "a", NOW_S)
    history.leave(placed("late to leave", ago_s=1_000), "a", NOW_S)

    assert len(history) == 3
    assert counts(history, nodes) == [3]
    history.leave(placed("tomorrow", ago_s=-MAX_WINDOW_S), "a", NOW_S + MAX_WINDOW_S)
    assert len(history) == 1


def test_whose_time_has_passed_is_told() -> None:
    history = PlacementHistory()
    for ago_s in (5, 10, 15, 20):
        history.leave(placed(f"{ago_s}", ago_s), "a", NOW_S)

    assert [pod.labels["run"] for pod in history.passing(NOW_S - 15, NOW_S - 5)] == ["10", "5"]


@each_seed(50)
def test_columns_say_what_looking_at_all_would_say(random: Random) -> None:
    history, nodes = PlacementHistory(), nodes_of("a", "b", "c")
    gone: dict[str, tuple[float, str, PodInfo]] = {}
    questions = [WEB, CountedPods(None, (("app", "db"),)), CountedPods("else", (("app", "web"),))]
    now_s = NOW_S
    for i in range(120):
        now_s += random.choice([0.0, 30.0, 4_000.0])
        ago_s = random.choice([1.0, 100.0, HOUR_S, 20_000.0])
        pod = placed(
            f"p{i}", NOW_S - now_s + ago_s, random.choice(["web", "db"]), namespace=random.choice(["default", "else"])
        )
        node = random.choice("abcx")
        history.leave(pod, node, now_s)
        gone[pod.uid] = (pod.bound_s, node, pod)
        if random.random() < 0.1:
            history.come_back(uid := random.choice(list(gone)))
            del gone[uid]
        if random.random() < 0.3:
            history = copy.deepcopy(history)
        question, window_s = random.choice(questions), random.choice([60.0, HOUR_S, 10_000.0])
        told = history.counts(question, now_s - window_s, nodes).tolist()
        assert told == [
            sum(
                1
                for placed_s, where, one in gone.values()
                if where == name
                and placed_s > now_s - window_s
                and (question.namespace is None or one.namespace == question.namespace)
                and all(one.labels.get(key) == value for key, value in question.labels)
            )
            for name in nodes.names
        ]
