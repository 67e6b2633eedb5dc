"""The gradient penalty without second derivatives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import ganlab
from ganlab.bounds import Ge, Gt
from ganlab.functional import interpolate
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.thresholds import off_target


class FiniteDifferencePenalty(ganlab.Constraint):
    """Estimates the penalties on slopes from differences of scores, which needs no derivative by the examples.

    At a point x and with Gaussian noise n, one draw for each of k `directions`, the slope's estimate is
    `s = sqrt(mean(((f(x + sigma n) - f(x)) / sigma)^2))`, and the penalty `weight * (s - target / c)^2`. The mean of s
    over noise is `c * ||grad f(x)||`, `c = sqrt(2 / k) Gamma((k + 1) / 2) / Gamma(k / 2)`, 0.80 for one direction, and
    that of s^2 is `||grad f(x)||^2`, where f is linear within sigma. So the penalty's mean is
    `weight * (||grad f(x)|| - target)^2` and a constant, `weight * target^2 * (1 / c^2 - 1)`: its gradient is in the
    mean that of constraints.gradient_penalty, with noise that more directions lower.

    With `points = "real"` and `target = 0` it is the approximated R1 of Lin, Xia, Ren, Yang, Xiao and Jiang,
    "Diffusion adversarial post-training for one-step video generation" (2025), `||f(x) - f(x + sigma n)||^2`, over
    sigma^2: their factor is `weight / sigma^2`, and R1's gamma `2 * weight`.

    It is for critics whose second derivative is missing or wrong. Where that exists, constraints.gradient_penalty is
    quicker: each pass of the critic here is trained through (docs/constraints.md has the measured costs).

    Scores in mixed_bfloat16 have three digits, too few for differences at a small sigma.

    Logs `slope`, the mean of `s / c`.
    """

    differentiates = False
    metric_help: ClassVar[dict[str, str]] = {
        "slope": (
            "The mean estimate of the critic's slope where the penalty is taken, from differences of scores. Sound "
            "near the target (1 by default)."
        ),
    }

    def __init__(
        self,
        *,
        weight: Annotated[float, Ge(0)] = 10.0,
        target: Annotated[float, Ge(0)] = 1.0,
        points: Literal["between", "real", "fake"] = "between",
        sigma: Annotated[float, Gt(0)] = 0.01,
        directions: Annotated[int, Ge(1)] = 1,
        every: Annotated[int, Ge(1)] = 1,
    ) -> None:
        """Chooses the penalty and where it is taken.

        Args:
            weight: The penalty's factor.
            target: The slope that costs least; 0 for R1's penalty.
            points: Where: "between" real and fake examples as constraints.gradient_penalty, at "real" or at "fake"
                examples.
            sigma: The standard deviation of the noise in each coordinate, in units of the data.
            directions: The number of draws of noise at each point, each of which costs a pass of the critic.
            every: Computes the penalty in one of this many critic updates, multiplied by this number.
        """
        if points not in ("between", "real", "fake"):
            raise ganlab.ConfigError(
                f"constraints.finite_difference_penalty.points = {points!r} must be 'between', 'real' or 'fake'."
            )
        self.weight, self.target, self.points, self.every = weight, target, points, every
        self.sigma, self.directions = sigma, directions
        # c: the mean length of Gaussian noise in k dimensions over the root of k.
        self._shrinkage = math.sqrt(2 / directions) * math.exp(
            math.lgamma((directions + 1) / 2) - math.lgamma(directions / 2)
        )

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """The penalty of each example."""
        if self.points == "between":
            x = interpolate(batch.real, batch.fake, replica.uniform([batch.real.shape[0]]))
        else:
            x = batch.real if self.points == "real" else batch.fake
        score = critic(x)
        moved = [critic(x + self.sigma * replica.normal(x.shape)) for _ in range(self.directions)]
        square = sum(tf.square((other - score) / self.sigma) for other in moved) / self.directions
        # One direction has no root to take, whose derivative has no value at zero.
        slope = tf.abs(moved[0] - score) / self.sigma if self.directions == 1 else tf.sqrt(square + 1e-12)
        replica.log("slope", slope / self._shrinkage)
        if self.target == 0:
            return self.weight * square
        return self.weight * tf.square(slope - self.target / self._shrinkage)

    def diagnose(self, metrics: Mapping[str, float]) -> str | None:
        """Warns of slopes at twice the target or more, or less than half of it."""
        far = off_target(metrics["slope"], self.target, "constraints.finite_difference_penalty.weight")
        return far and f"The critic's mean slope is {far}"
