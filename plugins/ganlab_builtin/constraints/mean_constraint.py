"""The base class of constraints that hold a mean over the data at one, by a multiplier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import ganlab
from ganlab.bounds import Ge, Gt
from ganlab.functional import fixed
from ganlab.lazy import tensorflow as tf


class MeanConstraint(ganlab.Constraint):
    """Base class: an augmented Lagrangian that holds the mean Omega of some values at one.

    Mroueh and Sercu, "Fisher GAN" (2017), equation 6 and algorithm 1. The critic maximizes
    `E(f, real) - E(f, fake) + lambda (1 - Omega) - rho / 2 (Omega - 1)^2`, and the multiplier follows by gradient
    descent, `lambda - rho (1 - Omega)`. A subclass gives the values, one for each example.

    The square is of a mean over the global batch. Its gradient is `(Omega - 1) grad Omega`, and Omega is known from
    `advance`, so that the penalty needs no communication.

    Logs `mean`, Omega before each update, and `multiplier`.
    """

    metric_help: ClassVar[dict[str, str]] = {
        "mean": "The mean that is held at one, over the global batch, before each critic update.",
        "multiplier": "The Lagrange multiplier. It rises while the mean is above one, and settles.",
    }

    def __init__(self, *, rho: Annotated[float, Gt(0)] = 1e-6, multiplier: Annotated[float, Ge(0)] = 0.0) -> None:
        """Chooses the quadratic term.

        Args:
            rho: The factor of the quadratic term, and the multiplier's learning rate; the paper's 1e-6.
            multiplier: The multiplier at the start.
        """
        self.rho, self.multiplier = rho, multiplier

    def values(self, critic: ganlab.Critic, batch: ganlab.Batch) -> tf.Tensor:
        """The values whose mean is held at one, `(local_batch,)`."""
        raise NotImplementedError(f"{type(self).__name__} needs a method values(self, critic, batch).")

    def initial_state(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The multiplier, and Omega of the coming update."""
        return {"multiplier": tf.constant(float(self.multiplier)), "mean": tf.constant(1.0)}

    def advance(
        self,
        weights: Mapping[str, tf.Tensor],
        state: Mapping[str, tf.Tensor],
        batch: ganlab.Batch,
        replica: ganlab.Replica,
        critic: ganlab.Critic,
    ) -> dict[str, tf.Tensor]:
        """Measures Omega; the multiplier takes the step that the update before it called for."""
        multiplier = state["multiplier"] - self.rho * (1.0 - state["mean"])
        mean = replica.mean(tf.reduce_mean(self.values(critic, batch)))
        replica.log("mean", mean)
        replica.log("multiplier", multiplier)
        return {"multiplier": multiplier, "mean": mean}

    def penalty(
        self, critic: ganlab.Critic, batch: ganlab.Batch, state: Mapping[str, tf.Tensor], replica: ganlab.Replica
    ) -> tf.Tensor:
        """`lambda (omega_i - 1) + rho / 2 (Omega - 1)^2`, `(local_batch,)`, with the gradient of the batch's mean."""
        values, off = self.values(critic, batch), state["mean"] - 1.0
        quadratic = self.rho * (0.5 * tf.square(off) + off * (values - fixed(values)))
        return state["multiplier"] * (values - 1.0) + quadratic
