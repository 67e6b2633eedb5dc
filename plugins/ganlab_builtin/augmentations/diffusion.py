"""Noise of a level that the critic is told, up to a level that follows how sure the critic is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import ganlab
from ganlab.bounds import Ge, Gt, Le, Lt
from ganlab.lazy import tensorflow as tf

_DISTRIBUTIONS = ("priority", "uniform")


class Diffusion(ganlab.Augmentation):
    """Each example after t steps of forward diffusion, t drawn anew, and t for a critic that takes it.

    Wang, Zheng, He, Chen and Zhou, "Diffusion-GAN: training GANs with diffusion" (2022): equation 1,
    `y = sqrt(a) x + sqrt(1 - a) sigma n` with `a = prod_{s <= t} (1 - beta_s)`, and the losses of equation 3, which are
    the usual ones of y and t. Half of the examples stay as they are, as in the authors' code; the others have t from 1
    to T, with probabilities as t ("priority") or equal. T grows from `least` to `most` where the critic is too sure:
    after each update by the sign of `E[sign(D(y, t))] - target` over real examples, at such a pace that all of the way
    takes `images` images. The authors draw 32 values of t at a time and change T once in four updates.

    The side output `t` is the level divided by `most`: architectures.with_side gives it to a critic. Without one the
    critic has to tell the level itself. Logs T as `steps` and the mean sign as `sign`.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "steps": "T, the largest number of diffusion steps.",
        "sign": "The mean sign of the critic's scores of real examples, 1 where it is sure of them all.",
    }

    def __init__(
        self,
        *,
        sigma: Annotated[float, Gt(0)] = 0.05,
        least: Annotated[int, Ge(1), Le(100_000)] = 10,
        most: Annotated[int, Ge(1), Le(100_000)] = 1000,
        first_beta: Annotated[float, Gt(0), Lt(1)] = 1e-4,
        last_beta: Annotated[float, Gt(0), Lt(1)] = 2e-2,
        distribution: Literal["priority", "uniform"] = "priority",
        target: Annotated[float, Ge(-1), Le(1)] = 0.6,
        images: Annotated[float, Gt(0)] = 100_000.0,
    ) -> None:
        """Chooses the noise and the pace. The defaults are those of the authors' code for images.

        Args:
            sigma: The deviation of the noise when nothing is left of an example.
            least: The first T.
            most: The largest T.
            first_beta: The share of variance that the first step replaces.
            last_beta: That of step T; between them the share is linear.
            distribution: "priority" or "uniform".
            target: The mean sign of real scores above which T grows.
            images: How many real images the critic sees while T grows from `least` to `most`.
        """
        if distribution not in _DISTRIBUTIONS:
            raise ganlab.ConfigError(
                f"augmentations.diffusion.distribution = {distribution!r} must be one of "
                f"{', '.join(map(repr, _DISTRIBUTIONS))}."
            )
        if least > most:
            raise ganlab.ConfigError(
                f"augmentations.diffusion.least = {least} must be at most augmentations.diffusion.most = {most}."
            )
        self.sigma, self.least, self.most, self.distribution = sigma, least, most, distribution
        self.first_beta, self.last_beta, self.target, self.images = first_beta, last_beta, target, images

    def initial_state(self) -> Mapping[str, tf.Tensor]:
        """T, which moves by fractions of a step."""
        return {"steps": tf.constant(float(self.least))}

    def apply(
        self, x: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """The examples with noise, of the same shape, and `t` in [0, 1], `(local_batch,)`."""
        rows, steps = x.shape[0], tf.floor(state["steps"])
        noisy, u = replica.uniform([rows]) < 0.5, replica.uniform([rows])
        # "priority": the least t with t (t + 1) / 2 at least u T (T + 1) / 2.
        drawn = tf.math.ceil((tf.sqrt(1.0 + 4.0 * u * steps * (steps + 1.0)) - 1.0) / 2.0)
        if self.distribution == "uniform":
            drawn = tf.floor(u * steps) + 1.0
        t = tf.where(noisy, tf.clip_by_value(drawn, 1.0, steps), 0.0)
        left = tf.reshape(self._left(t, steps), [rows, *[1] * (len(x.shape) - 1)])
        noise = self.sigma * replica.normal(x.shape)
        return tf.sqrt(left) * x + tf.sqrt(1.0 - left) * noise, {"t": t / float(self.most)}

    def advance(
        self, state: Mapping[str, tf.Tensor], scores: tf.Tensor, replica: ganlab.Replica
    ) -> Mapping[str, tf.Tensor]:
        """T after an update with these scores of real examples."""
        sign = replica.mean(tf.reduce_mean(tf.sign(scores)))
        pace = float(scores.shape[0] * replica.count) / self.images * (self.most - self.least)
        moved = state["steps"] + pace * tf.sign(sign - self.target)
        steps = tf.clip_by_value(moved, float(self.least), float(self.most))
        replica.log("steps", steps)
        replica.log("sign", sign)
        return {"steps": steps}

    def _left(self, t: tf.Tensor, steps: tf.Tensor) -> tf.Tensor:
        """The share of variance that t steps leave, `(n,)`: the product of 1 - beta."""
        number = tf.range(float(self.most))
        growth = (self.last_beta - self.first_beta) / tf.maximum(steps - 1.0, 1.0)
        beta = tf.minimum(self.first_beta + growth * number, 1.0 - 1e-6)  # those after T are not used
        after = tf.exp(tf.cumsum(tf.math.log1p(-beta)))
        return tf.gather(tf.concat([[1.0], after], axis=0), tf.cast(t, tf.int32))
