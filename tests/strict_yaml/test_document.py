from __future__ import annotations

import pickle

import pytest

from scheduler.strict_yaml.composer import compose
from scheduler.strict_yaml.document import Document, Location, dotted, read_plain
from scheduler.strict_yaml.report import Report, Scope

TEXT = """\
name: web
ports: [80, {port: 443, on: yes}]
none: ~
"""


def read(text: str, label: str = "") -> tuple[Document, list[str]]:
    report = Report("a.yaml")
    root = compose(text.encode(), report, "Rules")
    assert root is not None
    document = read_plain(root, Scope(report, label, is_path=True))
    return document, [str(problem) for problem in report.problems]


def test_plain_data_has_types_and_every_value_a_place() -> None:
    document, problems = read(TEXT)
    assert not problems
    assert document.value == {"name": "web", "ports": [80, {"port": 443, "on": True}], "none": None}
    places = document.places
    assert places.of(("ports", 1, "port")) == "a.yaml:2:20: ports[1].port"
    assert places.of_name(("ports", 1, "port")) == "a.yaml:2:14: ports[1]"
    assert places.of_name(("name",)) == "a.yaml:1:1"


def test_what_is_missing_has_the_place_of_what_it_should_stand_in() -> None:
    places = read(TEXT, "top.args")[0].places
    assert places.of(("ports", 1, "name", "x")) == "a.yaml:2:13: top.args.ports[1].name.x"
    assert places.of(()) == "a.yaml:1:1: top.args"
    assert places.of(("labels",)) == "a.yaml:1:1: top.args.labels"


def test_places_go_to_other_processes() -> None:
    places = read(TEXT)[0].places
    assert pickle.loads(pickle.dumps(places)) == places


def test_a_value_that_cannot_be_is_told_and_what_is_broken_left_out() -> None:
    document, problems = read("{from: 2026-02-30, to: *x, days: [*y, 1]}")
    assert document.value == {"from": "2026-02-30", "days": [None, 1]}
    assert problems == [
        "a.yaml:1:24: an alias, got '*x'. Write the value itself here",
        "a.yaml:1:35: an alias, got '*y'. Write the value itself here",
        "a.yaml:1:8: from: not a valid value, got 2026-02-30. Write another, or put it in quotes if it is text",
    ]


@pytest.mark.parametrize(
    ("location", "text"),
    [(("prometheus", "url"), "prometheus.url"), (("rules", 0), "rules[0]"), (("a", 1, "b", 2), "a[1].b[2]"), ((), "")],
)
def test_a_location_is_written_as_people_do(location: Location, text: str) -> None:
    assert dotted(location) == text
