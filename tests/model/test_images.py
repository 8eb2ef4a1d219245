from __future__ import annotations

from scheduler.model.images import ImageColumns
from scheduler.model.objects import ContainerImage


def image(size: int, *names: str) -> ContainerImage:
    return ContainerImage(names=list(names), size_bytes=size)


def found(columns: ImageColumns, name: str) -> tuple[int, list[int]] | None:
    result = columns.find(name)
    return None if result is None else (result[0], result[1].tolist())


def test_the_first_node_that_brings_an_image_says_how_large_it_is() -> None:
    columns = ImageColumns()
    columns.set_row(4, [image(10, "app:1", "app@sha256:ab")])
    columns.set_row(2, [image(99, "app:1")])

    assert found(columns, "app:1") == (10, [2, 4])
    assert found(columns, "app@sha256:ab") == (10, [4])


def test_a_name_that_one_node_repeats_counts_once_with_the_first_size() -> None:
    columns = ImageColumns()
    columns.set_row(0, [image(10, "app:1"), image(20, "app:1")])

    assert found(columns, "app:1") == (10, [0])


def test_an_image_that_no_node_holds_any_more_is_forgotten() -> None:
    columns = ImageColumns()
    columns.set_row(0, [image(10, "app:1")])
    columns.set_row(0, [])

    assert found(columns, "app:1") is None

    columns.set_row(1, [image(30, "app:1")])
    assert found(columns, "app:1") == (30, [1])
