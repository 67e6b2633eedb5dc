"""L2 regularization."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import Certified


class L2Regularization(Certified):
    """Penalizes the squares of the critic's kernels.

    Krogh and Hertz, "A simple weight decay can improve generalization" (1991), equation 1: `weight / 2 * sum(w^2)`.
    Gulrajani et al., "Improved training of Wasserstein GANs" (2017), section 3, name it among the ways to bound a
    critic's weights. Under plain gradient descent it is weight decay; under Adam, which divides gradients by their
    size, it is not. Biases, which make a critic no steeper, are left alone.
    """

    def __init__(self, *, weight: Annotated[float, Ge(0)] = 1e-3) -> None:
        """Chooses the penalty.

        Args:
            weight: Twice the penalty's factor.
        """
        self.weight = weight

    def weight_penalty(self, weights: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """The penalty, a scalar."""
        squares = [tf.reduce_sum(tf.square(weight)) for weight in weights.values() if len(weight.shape) >= 2]
        return 0.5 * self.weight * sum(squares)
