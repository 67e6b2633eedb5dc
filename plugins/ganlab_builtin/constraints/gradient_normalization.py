"""Gradient normalization."""

from __future__ import annotations

import ganlab
from ganlab.functional import example_norm, input_gradient
from ganlab.lazy import tensorflow as tf


class GradientNormalization(ganlab.Constraint):
    """Divides each score by the critic's slope there and by the score's size: `f / (||grad f|| + |f|)`.

    Wu, Shuai, Tam and Chiu, "Gradient normalization for generative adversarial networks" (2021). Scores lie between -1
    and 1, where the hinge loss never reaches its corner and is Wasserstein's; their difference bounds no distance.

    It certifies no Lipschitz constant. Where the slope n of f does not change, that of the result is
    `(n / (n + |f|))^2`, at most 1. But from one linear piece of a ReLU network to the next n jumps, the normalized
    score jumps with it, and a jump has no Lipschitz constant; where a smooth critic curves, its second derivative
    enters.

    The generator is trained through it too: each score costs a gradient, and each update one derivative more.
    """

    def transform(self, critic: ganlab.Critic) -> ganlab.Critic:
        """The normalized critic. A score of zero where the slope is zero stays zero."""

        def normalized(x: tf.Tensor) -> tf.Tensor:
            gradient, score = input_gradient(critic, x)
            return score / (example_norm(gradient) + tf.abs(score))

        return normalized
