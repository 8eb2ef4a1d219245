"""The array types of the core. Node axis last, always; a mask is True for the thing it is named after."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]
CodeArray = NDArray[np.int32]
HashArray = NDArray[np.uint64]

Rows = slice | IntArray
"""Which nodes to look at: a slice (all of them) or an int64 array of row numbers."""

INT64_MAX = int(np.iinfo(np.int64).max)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of `array` that raises on writes."""
    view = array.view()
    view.flags.writeable = False
    return view
