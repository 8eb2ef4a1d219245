from __future__ import annotations

from typing import Any

import pytest

from scheduler.plugins.image_locality import ImageLocality, image_names
from tests.builders import make_node, make_pod, snapshot_of
from tests.plugins.run import raw_scores

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("written", "held"),
    [
        pytest.param("app", "app:latest", id="no tag means latest"),
        pytest.param("app:1", "app:1", id="a tag stays"),
        pytest.param("registry:5000/app", "registry:5000/app:latest", id="a port is no tag"),
        pytest.param("app@sha256:ab", "app@sha256:ab", id="a digest stays"),
    ],
)
def test_how_an_image_is_looked_up(written: str, held: str) -> None:
    assert image_names(make_pod(images=[written]).pod) == [held]


@pytest.mark.parametrize(
    ("size_mib", "images", "expected"),
    [
        pytest.param(23, ["app"], 0, id="up to 23 MiB is nothing"),
        pytest.param(1000, ["app"], 100, id="1000 MiB for one image is the best"),
        pytest.param(5000, ["app"], 100, id="and more is no better"),
        pytest.param(1000, ["app", "other"], 49, id="half of two images"),
        pytest.param(400, ["app", "app"], 39, id="an image named twice counts twice"),
        pytest.param(2**50, ["app", "app", "app"], 100, id="a size that would wrap"),
    ],
)
def test_bytes_become_points(size_mib: int, images: list[str], expected: int) -> None:
    snapshot = snapshot_of([make_node(images={"app:latest": size_mib * MIB})])

    assert raw_scores(ImageLocality(), make_pod(images=images), snapshot) == {"ImageLocality": [expected]}


def test_an_image_on_few_nodes_counts_less() -> None:
    holder = make_node("a", images={"app:latest": 1000 * MIB})
    snapshot = snapshot_of([holder, make_node("b"), make_node("c"), make_node("d")])

    assert raw_scores(ImageLocality(), make_pod(), snapshot) == {"ImageLocality": [23, 0, 0, 0]}


def test_image_volumes_count_as_images() -> None:
    spec: dict[str, Any] = {"volumes": [{"name": "data", "image": {"reference": "model:1"}}]}
    snapshot = snapshot_of([make_node(images={"model:1": 1000 * MIB})])

    assert raw_scores(ImageLocality(), make_pod(spec=spec), snapshot) == {"ImageLocality": [49]}
