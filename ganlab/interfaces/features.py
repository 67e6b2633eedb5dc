"""The features role: what a measure of images sees in place of pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ganlab.interfaces.dataset import Dataset

if TYPE_CHECKING:
    import numpy as np


class Features:
    """Turns examples into vectors that evaluators compare, and perhaps into class probabilities.

    Evaluators call `prepare` before anything else, at each evaluation; the other two are pure functions after it.
    """

    def prepare(self, dataset: Dataset) -> None:
        """Makes ready for the examples of a dataset: trains, loads, or does nothing.

        Called many times; all but the first call for a dataset should cost next to nothing. It runs under the
        strategy of the experiment (`tf.distribute.get_strategy()`), on one device where several processes train or
        where there is no experiment.

        Args:
            dataset: Whose examples are to be embedded.

        Raises:
            IncompatibleError: It cannot be made ready for this dataset.
        """

    def embed(self, x: np.ndarray) -> np.ndarray:
        """The feature vectors of examples.

        Args:
            x: float32, `(n, *sample_shape)`; images in [-1, 1].

        Returns:
            Floating point, `(n, d)`; row i depends on example i alone.
        """
        raise NotImplementedError

    def probabilities(self, x: np.ndarray) -> np.ndarray | None:
        """The class probabilities of examples, `(n, classes)`, rows that sum to 1; None where there are no classes."""
        return None

    def diagnose(self) -> str | None:
        """A sentence where these features, as prepared, are no measure of anything, or None.

        Evaluators put it into their own `diagnose`.
        """
        return None
