"""The gradient penalty around the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.slope_penalty import SlopePenalty
from ganlab_builtin.constraints.thresholds import off_target


class DRAGAN(SlopePenalty):
    """Penalizes the critic's slope in a neighbourhood of the real examples for being other than `target`.

    Kodali, Abernethy, Hays and Kira, "On convergence and stability of GANs" (2017), algorithm 1:
    `weight * (||grad critic(x + d)|| - 1)^2` at real examples x with Gaussian noise d, independent in each coordinate.
    The noise's deviation is `scale` times that of the data: of all numbers of the global batch, the same on every
    replica. The authors' code has other noise, `noise = "uniform"` here: each number is uniform in [0, scale times the
    data's deviation), so that no coordinate falls, and each example's noise times one uniform number
    (kodalinaveen3/DRAGAN at 5cf95ab, DRAGAN.ipynb:377 and 445 to 451).

    Logs `slope`, the mean over the points where it is taken, and `deviation`, the scale times the data's.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "slope": (
            "The mean norm of the critic's gradient near real examples, where the penalty is taken. Sound near "
            "the target (1 by default): twice that is steep, and the penalty does not hold the critic; below half "
            "of it the critic gives little signal."
        ),
        "deviation": (
            "The size of the noise that is added to real examples: scale times the standard deviation of the data."
        ),
    }

    def __init__(
        self,
        *,
        weight: Annotated[float, Ge(0)] = 10.0,
        target: Annotated[float, Ge(0)] = 1.0,
        scale: Annotated[float, Ge(0)] = 0.5,
        noise: Literal["normal", "uniform"] = "normal",
        every: Annotated[int, Ge(1)] = 1,
    ) -> None:
        """Chooses the penalty.

        Args:
            weight: The penalty's factor; the paper's 10.
            target: The slope that costs nothing; the paper's 1.
            scale: The size of the noise in units of the data's standard deviation; 0.5 in the authors' code.
            noise: "normal", as in the paper, or "uniform", as in the authors' code.
            every: Computes the penalty in one of this many critic updates, multiplied by this number.
        """
        if noise not in ("normal", "uniform"):
            raise ganlab.ConfigError(f"constraints.dragan.noise = {noise!r} must be 'normal' or 'uniform'.")
        self.noise = noise
        self.weight, self.target, self.scale, self.every = weight, target, scale, every

    def initial_state(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The data's standard deviation, not known yet."""
        return {"deviation": tf.zeros([])}

    def advance(
        self,
        weights: Mapping[str, tf.Tensor],
        state: Mapping[str, tf.Tensor],
        batch: ganlab.Batch,
        replica: ganlab.Replica,
    ) -> dict[str, tf.Tensor]:
        """The standard deviation of this global batch."""
        mean = replica.mean(tf.reduce_mean(batch.real))
        variance = replica.mean(tf.reduce_mean(tf.square(batch.real - mean)))
        return {"deviation": tf.sqrt(variance)}

    def points(self, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """One point near each real example."""
        x = batch.real
        if self.noise == "normal":
            drawn = replica.normal(x.shape)
        else:
            drawn = replica.uniform(x.shape) * replica.uniform([x.shape[0], *[1] * (len(x.shape) - 1)])
        return x + self.scale * state["deviation"] * drawn

    def cost(self, slope: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The squared distance of the slope from the target, times the weight."""
        replica.log("deviation", self.scale * state["deviation"])
        return self.weight * tf.square(slope - self.target)

    def diagnose(self, metrics: Mapping[str, float]) -> str | None:
        """Warns of slopes at twice the target or more, or less than half of it."""
        far = off_target(metrics["slope"], self.target, "constraints.dragan.weight")
        return far and f"The critic's mean slope near the data is {far}"
