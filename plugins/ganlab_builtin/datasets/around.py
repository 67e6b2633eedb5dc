"""The base of datasets that change the examples of another one."""

from __future__ import annotations

from typing import Any

import numpy as np

import ganlab
from ganlab import functional
from ganlab.lazy import tensorflow as tf


class AroundADataset(ganlab.Dataset):
    """Passes on what another dataset has beside examples: labels, conditions, sources and how it shows examples."""

    def __init__(self, dataset: ganlab.Dataset) -> None:
        """Takes the other dataset."""
        self.dataset = dataset
        self.sample_shape, self.size, self.classes = tuple(dataset.sample_shape), dataset.size, dataset.classes
        self.condition_shape, self.source_shape = dataset.condition_shape, dataset.source_shape
        if hasattr(dataset, "condition_of"):
            self.condition_of: Any = dataset.condition_of

    def labels(self, numbers: tf.Tensor, seed: int = 0) -> tf.Tensor:
        """The other dataset's, `(n,)` int64."""
        return functional.call(self.dataset.labels, numbers, seed=seed)

    def conditions(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The other dataset's, `(n, *condition_shape)` float32."""
        return self.dataset.conditions(numbers, seed)

    def sources(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The other dataset's, `(n, *source_shape)` float32."""
        return self.dataset.sources(numbers, seed)

    def show(self, x: np.ndarray) -> np.ndarray | list[str] | None:
        """As the other dataset shows examples."""
        return self.dataset.show(x)
