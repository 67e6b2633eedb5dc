"""Examples as they are."""

from __future__ import annotations

import numpy as np

import ganlab


class Pixels(ganlab.Features):
    """The values of each example in a row: the Euclidean space that a critic of pixels or points is Lipschitz in."""

    def embed(self, x: np.ndarray) -> np.ndarray:
        """The examples flattened, `(n, values)`."""
        return np.asarray(x).reshape(len(x), -1)
