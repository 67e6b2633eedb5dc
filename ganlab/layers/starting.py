"""Kernels to start from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="ganlab")
class MiddleTap(keras.initializers.Initializer):
    """An orthogonal matrix between channels at the kernel's middle tap, zeros at all others.

    Xiao et al., "Dynamical isometry and a mean field theory of CNNs" (2018), section 2.3, "delta-orthogonal". The
    convolution keeps norms at stride 1 with at least as many outputs as inputs. A dense kernel is an orthogonal matrix.
    """

    def __init__(self, seed: Any = None) -> None:
        """Args: seed: An integer or a `keras.random.SeedGenerator`; None for one of Keras' own."""
        self._orthogonal = keras.initializers.Orthogonal(seed=seed)

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> tf.Tensor:
        """A kernel `(*taps, inputs, outputs)`."""
        *taps, inputs, outputs = shape
        matrix = self._orthogonal((inputs, outputs), dtype=dtype)
        borders = [[(t - 1) // 2, t - 1 - (t - 1) // 2] for t in taps]
        return tf.pad(tf.reshape(matrix, [*(1 for _ in taps), inputs, outputs]), [*borders, [0, 0], [0, 0]])

    def get_config(self) -> dict[str, Any]:
        """Keras' configuration."""
        return {"seed": self._orthogonal.get_config()["seed"]}
