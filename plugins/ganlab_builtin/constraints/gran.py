"""Gradient normalization without the score in the divisor."""

from __future__ import annotations

from typing import Annotated

import ganlab
from ganlab.bounds import Gt
from ganlab.functional import input_gradient
from ganlab.lazy import tensorflow as tf


class GraN(ganlab.Constraint):
    """Divides each score by the critic's slope there: `f * ||grad f|| / (||grad f||^2 + epsilon)`.

    Bhaskara, Aumentado-Armstrong, Jepson and Levinshtein, "GraN-GAN: piecewise gradient normalization for generative
    adversarial networks" (2022). Where the slope n of f does not change, as within a linear piece of a ReLU network,
    that of the result is `n^2 / (n^2 + epsilon)`, below 1. Scores stay unbounded, unlike under
    constraints.gradient_normalization.

    It certifies no Lipschitz constant. From one piece to the next n jumps, and the normalized score jumps with it;
    where a smooth critic curves, its second derivative enters.

    The generator is trained through it too: each score costs a gradient, and each update one derivative more.
    """

    def __init__(self, *, epsilon: Annotated[float, Gt(0)] = 0.1) -> None:
        """Chooses the divisor.

        Args:
            epsilon: What is added to the squared slope: critics flatter than its root are flattened, not normalized.
        """
        self.epsilon = epsilon

    def transform(self, critic: ganlab.Critic) -> ganlab.Critic:
        """The normalized critic. A score where the slope is zero becomes zero."""

        def normalized(x: tf.Tensor) -> tf.Tensor:
            gradient, score = input_gradient(critic, x)
            square = tf.reduce_sum(tf.square(gradient), range(1, len(x.shape)))
            return score * tf.sqrt(square + 1e-12) / (square + self.epsilon)

        return normalized
