"""The features role: vectors that measures of images compare in place of pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ganlab.interfaces.dataset import Dataset

if TYPE_CHECKING:
    import numpy as np


class Features:
    """Turns examples into vectors that evaluators compare, and perhaps into class probabilities.

    Evaluators call `prepare` before anything else, at each evaluation; after that the other two are pure functions.
    """

    def prepare(self, dataset: Dataset) -> None:
        """Prepares for the examples of a dataset: trains, loads, or does nothing.

        Called many times; every call after the first for a dataset should cost next to nothing. It runs under the
        strategy of the experiment (`tf.distribute.get_strategy()`), but on one device if several processes train or
        there is no experiment.

        Args:
            dataset: The dataset whose examples are to be embedded.

        Raises:
            IncompatibleError: The features cannot be prepared for this dataset.
        """

    def embed(self, x: np.ndarray) -> np.ndarray:
        """The feature vectors of examples.

        Args:
            x: float32, `(n, *sample_shape)`; images in [-1, 1].

        Returns:
            Floating point, `(n, d)`; row i depends only on example i.
        """
        raise NotImplementedError

    def probabilities(self, x: np.ndarray) -> np.ndarray | None:
        """The class probabilities of examples, `(n, classes)`, rows that sum to 1; None if there are no classes."""
        return None

    def fingerprint(self) -> dict[str, Any]:
        """Plain values by name that tell these features, as prepared, from others; files of statistics keep them.

        Empty by default, for features that cannot tell.
        """
        return {}

    def diagnose(self) -> str | None:
        """A sentence if these features, as prepared, do not measure anything; else None.

        Evaluators include it in their own `diagnose`.
        """
        return None
