"""The gradient penalty in other norms than the Euclidean one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt, Le
from ganlab.functional import example_norm, input_gradient
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.slope_penalty import SlopePenalty
from ganlab_builtin.constraints.thresholds import off_target


class BanachPenalty(SlopePenalty):
    """Penalizes the critic's slope between real and fake examples, measured in the norm dual to the samples'.

    Adler and Lunz, "Banach Wasserstein GAN" (2018). If the distance of samples is the norm of order `ord` of their
    difference, slopes are norms of the dual order q, 1/ord + 1/q = 1. The paper minimizes
    `(critic(fake) - critic(real)) / target + weight * (||grad critic(x)||_q / target - 1)^2` at points
    `x = a * real + (1 - a) * fake`, a uniform in [0, 1) for each example. The loss is not a constraint's to scale, so
    all of it is multiplied by the target here, which leaves its minimum where it is: the penalty is
    `weight * target * (||grad critic(x)||_q / target - 1)^2`. The paper's small penalty on the scores is left out.

    By the paper's rule `weight` is the mean norm of real examples of order `ord`, and `target` that of order q; both
    are taken from each global batch unless they are set. Scores then differ by `target` times a distance:
    `target = 1` makes a 1-Lipschitz critic.

    Logs `slope`, the mean dual norm over the points where it is taken, and `target`.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "slope": (
            "The mean dual norm of the critic's gradient at points between real and fake examples. Sound near "
            "target: twice that is steep, below half of it flat."
        ),
        "target": (
            "The slope that costs nothing: the parameter, or the mean dual norm of real examples where it is not set."
        ),
    }

    def __init__(
        self,
        *,
        ord: Annotated[float, Ge(1), Le(math.inf)] = 2.0,
        weight: Annotated[float, Ge(0)] | None = None,
        target: Annotated[float, Gt(0)] | None = None,
        every: Annotated[int, Ge(1)] = 1,
    ) -> None:
        """Chooses the norm and the penalty.

        Args:
            ord: The order of the samples' norm, from 1 to inf; the paper's best is 10, which weighs outliers.
            weight: The penalty's factor; None for the mean norm of real examples.
            target: The slope that costs nothing; None for the mean dual norm of real examples.
            every: Computes the penalty in one of this many critic updates, multiplied by this number.
        """
        self.ord, self.weight, self.target, self.every = ord, weight, target, every

    def initial_state(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Weight and target, which come from the data unless they are set."""
        return {"weight": tf.constant(self.weight or 0.0), "target": tf.constant(self.target or 0.0)}

    def advance(
        self,
        weights: Mapping[str, tf.Tensor],
        state: Mapping[str, tf.Tensor],
        batch: ganlab.Batch,
        replica: ganlab.Replica,
    ) -> dict[str, tf.Tensor]:
        """The mean norms of this global batch, if they are needed."""
        after = dict(state)
        if self.weight is None:
            after["weight"] = replica.mean(tf.reduce_mean(example_norm(batch.real, self.ord)))
        if self.target is None:
            after["target"] = replica.mean(tf.reduce_mean(example_norm(batch.real, _dual(self.ord))))
        return after

    def slope(self, critic: ganlab.Critic, points: tf.Tensor) -> tf.Tensor:
        """The dual norm of the gradient at each point."""
        return example_norm(input_gradient(critic, points)[0], _dual(self.ord))

    def cost(self, slope: tf.Tensor, state: Mapping[str, tf.Tensor], replica: ganlab.Replica) -> tf.Tensor:
        """The squared distance of the slope from the target, relative to it, times weight and target."""
        replica.log("target", state["target"])
        # As (slope - target)^2 / target: finite for data that are zero everywhere.
        return state["weight"] * tf.square(slope - state["target"]) / tf.maximum(state["target"], 1e-12)

    def diagnose(self, metrics: Mapping[str, float]) -> str | None:
        """Warns of slopes at twice the target or more, or less than half of it."""
        far = off_target(metrics["slope"], metrics["target"], "constraints.banach_penalty.weight")
        return far and f"The critic's mean slope of order {_dual(self.ord):.3g} is {far}"


def _dual(ord: float) -> float:
    if ord == 1:
        return math.inf
    return 1.0 if ord == math.inf else ord / (ord - 1.0)
