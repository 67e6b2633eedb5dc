"""The adversarial Lipschitz penalty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt
from ganlab.functional import fixed, input_gradient
from ganlab.lazy import tensorflow as tf


class ALP(ganlab.Constraint):
    """Penalizes explicit pairs of points, as far apart as they are chosen, between which the critic is too steep.

    Terjék, "Adversarial Lipschitz regularization" (2020): at real examples and samples x,
    `weight * max(0, |f(x + r) - f(x)| / |r| - target)^2`. r is `e * d`, where e is uniform in [shortest, longest] and
    the unit vector d comes from one step of power iteration: it is the gradient of `|f(x + xi d) - f(x)|` by d at a
    random d, over its norm. Where that gradient is zero, the random direction stays.
    The penalty of a row is the mean of those of its real example and its sample.

    The direction carries no gradient by the weights, so that only first derivatives are taken. Distances are those of
    the data: the defaults suit images in [-1, 1]. The authors' code also clips x + r to that range, which is left out.

    Logs `slope`, the mean slope between the pairs, and `exceeding`, the fraction of them above the target.
    """

    differentiates = False
    metric_help: ClassVar[dict[str, str]] = {
        "slope": "The mean slope of the critic between adversarial pairs. Sound up to the target.",
        "exceeding": "The fraction of adversarial pairs between which the slope is above the target.",
    }

    def __init__(
        self,
        *,
        weight: Annotated[float, Ge(0)] = 10.0,
        target: Annotated[float, Ge(0)] = 1.0,
        xi: Annotated[float, Gt(0)] = 10.0,
        shortest: Annotated[float, Gt(0)] = 0.1,
        longest: Annotated[float, Gt(0)] = 10.0,
        every: Annotated[int, Ge(1)] = 1,
    ) -> None:
        """Chooses the penalty and the pairs.

        Args:
            weight: The penalty's factor.
            target: The largest slope that costs nothing.
            xi: The distance at which the direction is looked for.
            shortest: The smallest distance of a pair.
            longest: The largest distance of a pair.
            every: Computes the penalty in one of this many critic updates, multiplied by this number.
        """
        if longest < shortest:
            raise ganlab.ConfigError(
                f"constraints.alp.longest = {longest!r} is below shortest = {shortest!r}. Choose longest at least as "
                "large: distances of pairs are drawn between the two."
            )
        self.weight, self.target, self.xi, self.every = weight, target, xi, every
        self.shortest, self.longest = shortest, longest

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """The penalty of each row."""
        slopes = [self._slope(critic, x, replica) for x in (batch.real, batch.fake)]
        replica.log("slope", 0.5 * sum(slopes))
        replica.log("exceeding", 0.5 * sum(tf.cast(slope > self.target, tf.float32) for slope in slopes))
        costs = [tf.square(tf.nn.relu(slope - self.target)) for slope in slopes]
        return 0.5 * self.weight * sum(costs)

    def _slope(self, critic: ganlab.Critic, x: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        axes = range(1, len(x.shape))
        distance = self.shortest + (self.longest - self.shortest) * replica.uniform([x.shape[0]])
        distance = tf.reshape(distance, [-1, *(1 for _ in axes)])
        score = critic(x)
        start = tf.math.l2_normalize(replica.uniform(x.shape) - 0.5, axes)
        gradient, moved = input_gradient(critic, x + self.xi * start)
        gradient *= tf.reshape(tf.sign(moved - score), distance.shape)
        adversarial = tf.math.l2_normalize(gradient, axes, epsilon=_FLAT)
        direction = fixed(tf.where(tf.reduce_sum(tf.square(gradient), axes, keepdims=True) > _FLAT, adversarial, start))
        return tf.abs(critic(x + distance * direction) - score) / tf.reshape(distance, [-1])


# The squared gradient up to which a critic counts as flat.
_FLAT = 1e-12
