"""A generator that waits for its critic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.games import Wasserstein

# The weights of a new estimate in a short memory and in a long one.
_SHORT, _LONG = 0.2, 0.05


class Patient(Wasserstein):
    """The Wasserstein losses, and a generator that moves only once the critic's estimate has stopped rising.

    Arjovsky, Chintala and Bottou, "Wasserstein GAN" (2017), section 3: "we can (and should) train the critic till
    optimality", for which they take a fixed number of updates. Here a short average of the estimate, the difference of
    mean scores over the global batch, is compared with a longer one after the critic's updates of each step.
    """

    def __init__(self, *, tolerance: Annotated[float, Ge(0)] = 0.05) -> None:
        """Sets the rule.

        Args:
            tolerance: The generator moves while the short average is above the long one by at most this part of it.
        """
        self.tolerance = tolerance

    def initial_state(self) -> Mapping[str, tf.Tensor]:
        """Both averages, zero: so the generator waits at first."""
        return {"short": tf.zeros([]), "long": tf.zeros([])}

    def advance(
        self, state: Mapping[str, tf.Tensor], real_scores: tf.Tensor, fake_scores: tf.Tensor, replica: ganlab.Replica
    ) -> Mapping[str, tf.Tensor]:
        """Both averages a step further."""
        estimate = replica.mean(tf.reduce_mean(real_scores - fake_scores))
        weights = {"short": _SHORT, "long": _LONG}
        return {name: state[name] + weight * (estimate - state[name]) for name, weight in weights.items()}

    def ready(self, state: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """`short - long <= tolerance * |long|`."""
        return state["short"] - state["long"] <= self.tolerance * tf.abs(state["long"])
