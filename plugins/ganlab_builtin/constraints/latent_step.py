"""Latent vectors moved to where the critic scores their samples higher."""

from __future__ import annotations

from typing import Annotated

import ganlab
from ganlab.bounds import Gt
from ganlab.functional import input_gradient
from ganlab.lazy import tensorflow as tf


class LatentStep(ganlab.Constraint):
    """Moves each latent vector a step up the critic's scores before the generator uses it, in training.

    Wu, Donahue, Balduzzi, Simonyan and Lillicrap, "LOGAN: latent optimisation for generative adversarial networks"
    (2020), equation 11, the natural gradient with the damped, rank-one Fisher matrix: `z + alpha g / (beta + ||g||^2)`
    with g the gradient of D(G(z)) by z. The generator's gradient passes through the step. Samples drawn later are those
    of z itself. For experiment.generator_constraints.
    """

    def __init__(self, *, alpha: Annotated[float, Gt(0)] = 0.9, beta: Annotated[float, Gt(0)] = 5.0) -> None:
        """Chooses the step.

        Args:
            alpha: Its factor; the paper's 0.9.
            beta: The damping; the paper's 5.
        """
        self.alpha, self.beta = alpha, beta

    def transform(self, generator: ganlab.Generator, critic: ganlab.Critic) -> ganlab.Generator:
        """The generator of moved latent vectors."""

        def moved(latent: tf.Tensor) -> tf.Tensor:
            gradient = input_gradient(lambda z: critic(generator(z)), latent)[0]
            squares = tf.reduce_sum(tf.square(gradient), axis=1, keepdims=True)
            return generator(latent + self.alpha * gradient / (self.beta + squares))

        return moved
