"""Losses that compare the critic's embeddings of real examples with those of samples, over the global batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

import ganlab
from ganlab.functional import example_norm
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.pairwise import EMBEDDING, distances, mean_over_others, rows, squared_distances

KERNELS = ("rational_quadratic", "rbf")
_SCALES = {"rational_quadratic": (0.2, 0.5, 1.0, 2.0, 5.0), "rbf": (1.0, 2.0, 4.0, 8.0, 16.0)}


class Cramer(ganlab.Loss):
    """The energy distance between embeddings, whose gradient from a batch is unbiased.

    Bellemare, Danihelka, Dabney, Mohamed, Lakshminarayanan, Hoyer and Munos, "The Cramer distance as a solution to
    biased Wasserstein gradients" (2017), appendix, algorithm 1: with the embedding h the critic maximizes the mean
    f(real) - f(fake) of `f(x) = E||h(x) - h(X_g)|| - ||h(x)||`, and the generator minimizes
    `2 E||h(X_r) - h(X_g)|| - E||h(X_r) - h(X_r')|| - E||h(X_g) - h(X_g')||`. Expectations are means over the global
    batch, each example's distance to itself left out; the paper takes two independent batches of samples.

    Constraints on slopes act on f, as the paper's gradient penalty does. The critic returns `embedding`, for example by
    architectures.mlp.embedding_dim = 256; nothing trains its score.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "Minus the mean difference of f between real examples and samples, plus the penalty.",
        "generator/loss": "The energy distance of the embeddings: 0 on average where real and fake are alike.",
    }

    pairs = True
    outputs = (EMBEDDING,)

    def witness(self, batch: ganlab.Batch, replica: ganlab.Replica) -> Callable[[Mapping[str, tf.Tensor]], tf.Tensor]:
        """`f`, with the samples of the global batch as X_g."""
        samples = replica.gather(rows(batch.fake_outputs[EMBEDDING]))

        def surrogate(outputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
            embedding = rows(outputs[EMBEDDING])
            return tf.reduce_mean(distances(embedding, samples), axis=1) - example_norm(embedding)

        return surrogate

    def critic(
        self, real_scores: tf.Tensor, fake_scores: tf.Tensor, batch: ganlab.Batch, replica: ganlab.Replica
    ) -> tf.Tensor:
        """`f(fake) - f(real)`, `(n,)`."""
        real, fake = _embeddings(batch)
        samples = replica.gather(fake)
        of_real = tf.reduce_mean(distances(real, samples), axis=1) - example_norm(real)
        of_fake = mean_over_others(distances(fake, samples), replica) - example_norm(fake)
        return of_fake - of_real

    def generator(
        self, fake_scores: tf.Tensor, real_scores: tf.Tensor, batch: ganlab.Batch, replica: ganlab.Replica
    ) -> tf.Tensor:
        """Each pair's share of the energy distance, `(n,)`."""
        return _contrast(*_embeddings(batch), replica, lambda x, y: -distances(x, y))


class MMD(ganlab.Loss):
    """The maximum mean discrepancy of embeddings, which the critic maximizes and the generator minimizes.

    Li, Chang, Cheng, Yang and Poczos, "MMD GAN: towards deeper understanding of moment matching network" (2017), with
    sums of Gaussian kernels; Binkowski, Sutherland, Arbel and Gretton, "Demystifying MMD GANs" (2018), section 2.1,
    with sums of rational quadratic ones. Both take the unbiased estimate of MMD^2 from the (global) batch:
    `mean k(r, r') + mean k(g, g') - 2 mean k(r, g)`, without each example's kernel with itself.

    Constraints on slopes act on the witness function `f(x) = E k(x, X_r) - E k(x, X_g)`, as in Binkowski et al. The
    critic returns `embedding`, for example by architectures.mlp.embedding_dim = 16; nothing trains its score.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "critic/loss": "Minus the estimate of MMD^2, plus the penalty; the estimate may be below 0.",
        "generator/loss": "The estimate of MMD^2 between the embeddings: 0 on average where real and fake are alike.",
    }

    pairs = True
    outputs = (EMBEDDING,)

    def __init__(
        self, *, kernel: Literal["rational_quadratic", "rbf"] = "rational_quadratic", scales: list[float] | None = None
    ) -> None:
        """Chooses the kernel.

        Args:
            kernel: "rational_quadratic", the sum of `(1 + d^2 / (2 a))^-a`, or "rbf", the sum of `exp(-d^2 / (2 s^2))`,
                over the scales.
            scales: The numbers a or s; None for the papers', 0.2, 0.5, 1, 2, 5, and 1, 2, 4, 8, 16.
        """
        if kernel not in KERNELS:
            raise ganlab.ConfigError(f"losses.mmd.kernel = {kernel!r} must be one of {', '.join(map(repr, KERNELS))}.")
        self.kernel, self.scales = kernel, tuple(_SCALES[kernel] if scales is None else scales)
        if not self.scales or not min(self.scales) > 0:
            raise ganlab.ConfigError(
                f"losses.mmd.scales = {scales!r} must be one or more positive numbers, or None for the paper's."
            )

    def witness(self, batch: ganlab.Batch, replica: ganlab.Replica) -> Callable[[Mapping[str, tf.Tensor]], tf.Tensor]:
        """`E k(x, X_r) - E k(x, X_g)` over the global batch."""
        real, fake = (replica.gather(x) for x in _embeddings(batch))

        def difference(outputs: Mapping[str, tf.Tensor]) -> tf.Tensor:
            embedding = rows(outputs[EMBEDDING])
            return tf.reduce_mean(self._kernel(embedding, real) - self._kernel(embedding, fake), axis=1)

        return difference

    def critic(
        self, real_scores: tf.Tensor, fake_scores: tf.Tensor, batch: ganlab.Batch, replica: ganlab.Replica
    ) -> tf.Tensor:
        """Minus each pair's share of MMD^2, `(n,)`."""
        return -_contrast(*_embeddings(batch), replica, self._kernel)

    def generator(
        self, fake_scores: tf.Tensor, real_scores: tf.Tensor, batch: ganlab.Batch, replica: ganlab.Replica
    ) -> tf.Tensor:
        """Each pair's share of MMD^2, `(n,)`."""
        return _contrast(*_embeddings(batch), replica, self._kernel)

    def _kernel(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        # All scales in one operation: a penalty differentiates this twice, and each would be traced again.
        squared, scales = squared_distances(x, y)[..., None], tf.constant(self.scales, x.dtype)
        if self.kernel == "rbf":
            return tf.reduce_sum(tf.exp(-squared / (2.0 * scales**2)), axis=2)
        return tf.reduce_sum(tf.pow(1.0 + squared / (2.0 * scales), -scales), axis=2)


def _embeddings(batch: ganlab.Batch) -> tuple[tf.Tensor, tf.Tensor]:
    return rows(batch.real_outputs[EMBEDDING]), rows(batch.fake_outputs[EMBEDDING])


def _contrast(
    real: tf.Tensor,
    fake: tf.Tensor,
    replica: ganlab.Replica,
    alike: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
) -> tf.Tensor:
    """How much more alike examples of one kind are than examples of both, `(n,)`; its mean is the batch's, unbiased."""
    reals, fakes = replica.gather(real), replica.gather(fake)
    within = mean_over_others(alike(real, reals), replica) + mean_over_others(alike(fake, fakes), replica)
    return within - tf.reduce_mean(alike(real, fakes), axis=1) - tf.reduce_mean(alike(fake, reals), axis=1)
