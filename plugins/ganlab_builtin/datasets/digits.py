"""The handwritten digits of scikit-learn, as a file: real images without a download."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ganlab
from ganlab import fingerprints
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.datasets.checks import refusal

FILES = Path(__file__).parent / "files"  # LICENSES.txt has whose they are


class Digits(ganlab.Dataset):
    """Handwritten digits of 8 x 8 pixels, 1797 of them, as scikit-learn has them.

    The test part of the UCI set "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak, 1998). Grey levels
    0 to 16 become [-1, 1].
    """

    sample_shape = (8, 8, 1)
    classes = 10

    def __init__(self, *, labels: Sequence[int] | None = None) -> None:
        """Selects digits by label.

        Args:
            labels: The classes to keep, of 0 to 9; None for all.

        Raises:
            ConfigError: The list is empty, or a label is not a digit.
        """
        if labels is not None:
            whole = all(isinstance(label, int) and not isinstance(label, bool) for label in labels)
            if not labels or not whole or not set(labels) <= set(range(10)):
                raise refusal("digits", "labels", labels, "must be a list of digits 0 to 9, or None for all of them.")
        self._selected = None if labels is None else tuple(labels)
        self.size = len(self._rows[1])

    @functools.cached_property
    def _images(self) -> np.ndarray:
        levels, _ = self._rows
        return (levels / 8.0 - 1.0).astype(np.float32).reshape(-1, *self.sample_shape)

    @functools.cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        with np.load(FILES / "digits.npz", allow_pickle=False) as file:
            levels, labels = file["levels"], file["labels"].astype(np.int64)
        selected = np.isin(labels, range(10) if self._selected is None else self._selected)
        return levels[selected], labels[selected]

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The images with these numbers, `(n, 8, 8, 1)` float32, in scikit-learn's order; the seed is not used."""
        return tf.gather(self._images, numbers)

    def labels(self, numbers: tf.Tensor) -> tf.Tensor:
        """The digits that the images show, `(n,)` int64 of 0 to 9, whichever labels were selected."""
        return tf.gather(self._rows[1], numbers)

    def fingerprint(self) -> dict[str, Any]:
        """Hashes of the images and of their labels."""
        images, labels = fingerprints.of_array(self._images), fingerprints.of_array(self._rows[1])
        return {"size": self.size, "rows": images, "labels": labels}
