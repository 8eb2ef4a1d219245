"""Which node holds which container image, and how large each image is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scheduler.model.arrays import IntArray
from scheduler.model.objects import ContainerImage


@dataclass(slots=True)
class _Image:
    size_bytes: int
    rows: set[int] = field(default_factory=set)
    column: IntArray | None = None


class ImageColumns:
    """Image name -> size and rows; the size is that of the first node that brought the name.

    Source: kube-scheduler backend/cache addNodeImageStates.
    """

    def __init__(self) -> None:
        self._images: dict[str, _Image] = {}
        self._names_of: dict[int, tuple[str, ...]] = {}

    def set_row(self, row: int, images: list[ContainerImage]) -> None:
        """Replace the images of one node."""
        sizes = {name: image.size_bytes for image in reversed(images) for name in image.names or []}
        for name in set(self._names_of.pop(row, ())) - sizes.keys():
            image = self._images[name]
            image.rows.discard(row)
            image.column = None
            if not image.rows:
                del self._images[name]
        for name, size_bytes in sizes.items():
            image = self._images.setdefault(name, _Image(size_bytes))
            if row not in image.rows:
                image.rows.add(row)
                image.column = None
        if sizes:
            self._names_of[row] = tuple(sizes)

    def find(self, name: str) -> tuple[int, IntArray] | None:
        """Return (size in bytes, int64 rows that hold it, ascending), None for an image that no node holds."""
        image = self._images.get(name)
        if image is None:
            return None
        if image.column is None:
            image.column = np.array(sorted(image.rows), dtype=np.int64)
        return image.size_bytes, image.column
