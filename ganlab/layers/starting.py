"""Kernels to start from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

# What noise may add to the sum of absolute values in a row of the Gram matrix, where an orthogonal kernel has 1.
_NOISE = 0.3


@keras.saving.register_keras_serializable(package="ganlab")
class MiddleTap(keras.initializers.Initializer):
    """An orthogonal matrix between channels at the kernel's middle tap, plus a little noise at every tap.

    Without noise it is the "delta-orthogonal" start of Xiao et al., "Dynamical isometry and a mean field theory of
    CNNs" (2018), section 2.3, which keeps norms. But there the Gram matrix is diagonal up to rounding. The gradient of
    its absolute values, which rescale the kernel, has the signs of that rounding then: replicas and compilers would not
    agree. The noise makes the sums of absolute values in rows about 1.2 instead of 1, so norms shrink by about a tenth.
    """

    def __init__(self, seed: Any = None) -> None:
        """Args: seed: An integer or a `keras.random.SeedGenerator`; None for one of Keras' own."""
        self._orthogonal = keras.initializers.Orthogonal(seed=seed)

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> tf.Tensor:
        """A kernel `(*taps, inputs, outputs)`."""
        *taps, inputs, outputs = shape
        matrix = self._orthogonal((inputs, outputs), dtype=dtype)
        borders = [[(t - 1) // 2, t - 1 - (t - 1) // 2] for t in taps]
        kernel = tf.pad(tf.reshape(matrix, [*(1 for _ in taps), inputs, outputs]), [*borders, [0, 0], [0, 0]])
        # A tap's products with the middle one are normal numbers, of mean absolute value sqrt(2 / pi) deviations.
        deviation = _NOISE / (math.sqrt(2 / math.pi) * 2 * math.prod(taps) * min(inputs, outputs))
        seed = self._orthogonal.seed
        noise = keras.random.normal(
            shape, stddev=deviation, dtype=dtype, seed=seed + 1 if isinstance(seed, int) else seed
        )
        return kernel + noise

    def get_config(self) -> dict[str, Any]:
        """Keras' configuration."""
        return {"seed": self._orthogonal.get_config()["seed"]}
