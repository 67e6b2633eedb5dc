"""The swiss roll in the plane: one curved, unevenly dense sheet."""

from __future__ import annotations

import math
from typing import Annotated, Any

import ganlab
from ganlab import functional
from ganlab.bounds import Gt
from ganlab.lazy import tensorflow as tf


class SwissRoll(ganlab.Dataset):
    """The swiss roll of WGAN-GP (Gulrajani et al., 2017, figs. 1 and 2): scikit-learn's, its first and last axes.

    With u uniform in [0, 1): t = 1.5 pi (1 + 2u), and the sample is ((t cos t, t sin t) + noise) / scale.
    """

    sample_shape = (2,)

    def __init__(self, *, noise: Annotated[float, Gt(0)] = 0.25, scale: Annotated[float, Gt(0)] = 7.5) -> None:
        """Sets the noise and the scale.

        Args:
            noise: The standard deviation of the Gaussian noise along each axis, before scaling.
            scale: The divisor of samples.
        """
        self._noise, self._scale = noise, scale

    def examples(self, numbers: tf.Tensor, seed: int) -> tf.Tensor:
        """The samples with these numbers, `(n, 2)` float32."""
        t = 1.5 * math.pi * (1.0 + 2.0 * functional.example_uniform(numbers, 1, seed, stream=0))
        sheet = tf.concat([t * tf.cos(t), t * tf.sin(t)], axis=1)
        return (sheet + self._noise * functional.example_normal(numbers, 2, seed, stream=1)) / self._scale

    def fingerprint(self) -> dict[str, Any]:
        """The parameters of the distribution: samples are functions of these and of the seed."""
        return {"noise": self._noise, "scale": self._scale}
