"""A generator that waits for its critic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import ganlab
from ganlab.bounds import Ge
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.losses.games import Wasserstein

_WEIGHTS = {"short": 0.2, "long": 0.05}  # of a new estimate in either average


class Patient(Wasserstein):
    """The Wasserstein losses, and a generator that moves only where the critic's estimate has stopped rising.

    Arjovsky, Chintala and Bottou, "Wasserstein GAN" (2017), section 3: "train the critic till optimality", for which
    they take a fixed number of updates. Here a short average of the estimate, the difference of mean scores over the
    global batch, is compared with a long one after each critic update.
    """

    def __init__(self, *, tolerance: Annotated[float, Ge(0)] = 0.05) -> None:
        """Sets the rule.

        Args:
            tolerance: By which part of the long average the short one may exceed it where the generator moves.
        """
        self.tolerance = tolerance

    def initial_state(self) -> Mapping[str, tf.Tensor]:
        """Both averages, zero: so the generator waits at first."""
        return {name: tf.zeros([]) for name in _WEIGHTS}

    def advance(
        self, state: Mapping[str, tf.Tensor], real_scores: tf.Tensor, fake_scores: tf.Tensor, replica: ganlab.Replica
    ) -> Mapping[str, tf.Tensor]:
        """Both averages an update later."""
        estimate = replica.mean(tf.reduce_mean(real_scores - fake_scores))
        return {name: state[name] + weight * (estimate - state[name]) for name, weight in _WEIGHTS.items()}

    def ready(self, state: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """`short - long <= tolerance * |long|`."""
        return state["short"] - state["long"] <= self.tolerance * tf.abs(state["long"])
