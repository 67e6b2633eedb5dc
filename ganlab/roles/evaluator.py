"""The evaluator role: figures that say how good a generator is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ganlab.roles.dataset import Dataset

if TYPE_CHECKING:
    import numpy as np

    from ganlab.runs import Run

    Sample = Callable[[int, int], np.ndarray]
else:
    Sample = Callable


class Evaluator:
    """Measures a generator by its samples."""

    def evaluate(self, sample: Sample, dataset: Dataset, run: Run | None) -> dict[str, float]:
        """Named figures.

        Args:
            sample: `sample(n, seed)` draws n samples from the (averaged) generator: float32, `(n, *sample_shape)`.
            dataset: The experiment's dataset.
            run: The run that trains or trained it; None outside one.
        """
        raise NotImplementedError
