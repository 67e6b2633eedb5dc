"""Deposits of particle showers in the layers of a calorimeter: a toy with a number to ask for and known marginals."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

import ganlab
from ganlab import functional
from ganlab.bounds import Ge, Gt, Lt
from ganlab.lazy import tensorflow as tf


class Showers(ganlab.Dataset):
    """The energy that a particle leaves in each layer; its own energy E is the condition, uniform in [low, high).

    Layer i gets on average the share f_i of E, by the density t^2 exp(-t) of a shower's depth t (the profile of Longo
    and Sestili, 1975) at the middles of layers one unit apart, scaled to a sum of one. Deposits are independent and
    normal with variance a^2 f_i E. So the sum over layers is normal with mean E and deviation a sqrt(E): the relative
    resolution is a / sqrt(E), the stochastic term of a sampling calorimeter.

    Attributes:
        shares: The f_i, float32, `(layers,)`.
    """

    condition_shape = (1,)

    def __init__(
        self,
        *,
        layers: Annotated[int, Ge(1), Lt(2**15)] = 6,
        low: Annotated[float, Gt(0)] = 0.5,
        high: Annotated[float, Gt(0)] = 1.5,
        resolution: Annotated[float, Gt(0)] = 0.1,
    ) -> None:
        """Sets layers and energies.

        Args:
            layers: How many layers there are.
            low: The least energy.
            high: The largest energy.
            resolution: a, the relative deviation of the summed deposits at energy 1.

        Raises:
            ConfigError: The energies are not in order.
        """
        if high <= low:
            raise ganlab.ConfigError(
                f"datasets.showers.high = {high!r} must be above low = {low!r}: energies lie between them. Raise it."
            )
        depth = np.arange(layers) + 0.5
        profile = depth**2 * np.exp(-depth)
        self.shares = (profile / profile.sum()).astype(np.float32)
        self.sample_shape, self._low, self._high, self._resolution = (layers,), low, high, resolution

    def conditions(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The energies of the showers with these numbers, `(n, 1)` float32."""
        return self._low + (self._high - self._low) * functional.example_uniform(numbers, 1, seed, stream=0)

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """Their deposits, `(n, layers)` float32."""
        means = self.conditions(numbers, seed) * self.shares
        noise = functional.example_normal(numbers, len(self.shares), seed, stream=1)
        return means + self._resolution * tf.sqrt(means) * noise

    def condition_of(self, examples: np.ndarray) -> np.ndarray:
        """The energies that deposits show, their sums, `(n, 1)`: on average the showers' own."""
        return examples.sum(axis=1, keepdims=True)

    def deviation(self, energy: float) -> float:
        """The standard deviation of the sum of deposits at an energy."""
        return self._resolution * math.sqrt(energy)

    def fingerprint(self) -> dict[str, Any]:
        """The parameters of the distribution: showers are functions of these and of the seed."""
        return {"layers": len(self.shares), "low": self._low, "high": self._high, "resolution": self._resolution}
