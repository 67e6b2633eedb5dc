"""Losses without a critic: distances between a batch of samples and one of real examples, for the generator alone."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt, Lt
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.pairwise import rows, squared_distances


class _Distance(ganlab.Loss):
    """A distance of the global batch's samples from its real examples, which are gathered from all replicas."""

    pairs = True

    def generator(self, batch: ganlab.Batch, replica: ganlab.Replica) -> tf.Tensor:
        """The distance, the same for every sample, `(n,)`."""
        fake, real = (replica.gather(rows(x)) for x in (batch.fake, batch.real))
        return tf.fill([batch.fake.shape[0]], self.distance(fake, real, replica))

    def distance(self, fake: tf.Tensor, real: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        """The distance of two sets of vectors, `(size, d)` both, a scalar."""
        raise NotImplementedError


class Sinkhorn(_Distance):
    """The entropic transport cost between samples and real examples, less that of each set to itself.

    The Sinkhorn loss of Genevay, Peyre and Cuturi, "Learning generative models with Sinkhorn divergences" (2018), arXiv
    1706.00292: `2 W(fake, real) - W(fake, fake) - W(real, real)`, where `W(a, b) = <P, C>`, the cost of the plan P that
    minimizes `<P, C> + epsilon * KL(P | a x b)`. C has squared Euclidean distances; the paper also learns a cost, as a
    critic does, which this does not. P comes from Sinkhorn's iterations with logarithms, and the gradient goes through
    them. As epsilon falls to 0 it becomes twice the cost of the best assignment; as it grows, twice the squared
    distance of the two means.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "generator/loss": "The Sinkhorn divergence of the two batches: 0 where they are the same.",
    }

    def __init__(
        self, *, epsilon: Annotated[float, Gt(0)] = 0.1, iterations: Annotated[int, Ge(1), Lt(2**31)] = 50
    ) -> None:
        """Sets the regularization.

        Args:
            epsilon: Its weight, in the unit of squared distances. The smaller, the more iterations the plan needs.
            iterations: How often both sides of the plan are scaled.
        """
        self.epsilon, self.iterations = epsilon, iterations

    def distance(self, fake: tf.Tensor, real: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        """The divergence."""
        pairs = ((fake, real), (fake, fake), (real, real))
        cost = tf.stack([squared_distances(x, y) for x, y in pairs])
        size, epsilon = fake.shape[0], tf.convert_to_tensor(self.epsilon)
        count = math.log(size)

        def scaled(potential: tf.Tensor, axis: int) -> tf.Tensor:
            return epsilon * (count - tf.reduce_logsumexp((potential - cost) / epsilon, axis=axis, keepdims=True))

        def body(i: tf.Tensor, f: tf.Tensor, g: tf.Tensor) -> tuple[tf.Tensor, ...]:
            f = scaled(g, 2)
            return i + 1, f, scaled(f, 1)

        start = tf.constant(0), tf.zeros([3, size, 1]), tf.zeros([3, 1, size])
        _, f, g = tf.while_loop(
            lambda i, *_: i < self.iterations, body, start, maximum_iterations=self.iterations, parallel_iterations=1
        )
        plan = tf.exp((f + g - cost) / epsilon - 2.0 * count)
        across, of_fake, of_real = tf.unstack(tf.reduce_sum(plan * cost, axis=[1, 2]))
        return 2.0 * across - of_fake - of_real


class Sliced(_Distance):
    """The squared Wasserstein-2 distance of projections on random directions, where sorting solves the transport.

    Deshpande, Zhang and Schwing, "Generative modeling using the sliced Wasserstein distance" (2018), arXiv 1803.11188;
    Bonneel, Rabin, Peyre and Pfister, "Sliced and Radon Wasserstein barycenters of measures" (2015). The mean over
    directions of the mean squared difference between the sorted projections of samples and of real examples. Directions
    are drawn anew in each update, the same on all replicas.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "generator/loss": "The squared sliced Wasserstein-2 distance of the two batches: 0 where they are the same.",
    }

    def __init__(self, *, projections: Annotated[int, Ge(1), Lt(2**31)] = 100) -> None:
        """Sets the number of directions.

        Args:
            projections: The directions of an update.
        """
        self.projections = projections

    def distance(self, fake: tf.Tensor, real: tf.Tensor, replica: ganlab.Replica) -> tf.Tensor:
        """The mean over directions."""
        size, length = fake.shape
        each, local = -(-self.projections // size), size // replica.count
        drawn = tf.reshape(replica.gather(replica.normal((local, each * length))), [-1, length])[: self.projections]
        directions = tf.math.l2_normalize(drawn, axis=1)
        fake, real = (tf.sort(tf.matmul(directions, x, transpose_b=True), axis=1) for x in (fake, real))
        return tf.reduce_mean(tf.square(fake - real))
