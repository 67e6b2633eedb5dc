"""Hashes of data."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def digest(data: np.ndarray | bytes) -> str:
    """The hash of an array, including its dtype and shape, or of bytes."""
    found = hashlib.blake2b(digest_size=16)
    if isinstance(data, bytes):
        found.update(data)
        return found.hexdigest()
    import numpy as np  # lists of runs and experiment files hash texts alone, and do without

    found.update(f"{data.dtype.str}{data.shape}".encode())
    data = np.ascontiguousarray(data)
    found.update(data.reshape(-1).view(np.uint8).data if data.size else b"")
    return found.hexdigest()
