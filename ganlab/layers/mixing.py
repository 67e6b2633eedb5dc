"""A residual sum that keeps the Lipschitz constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.layers.base import Layer


@keras.saving.register_keras_serializable(package="ganlab")
class LipschitzResidual(Layer):
    """The mean of a shortcut and its branch with a trained weight: `[x, g]` to `a x + (1 - a) g`, a between 0 and 1.

    A plain sum has the sum of both constants; this has `a` times one plus `1 - a` times the other, never above the
    larger, as `ganlab.lipschitz.certificate` computes it. `a` is the sigmoid of the weight `balance`; as LipResidual in
    deel-torchlip.
    """

    arguments = "balance_initializer"

    def __init__(self, balance_initializer: Any = "zeros", **kwargs: Any) -> None:
        """Args: balance_initializer: Where the weight starts; zero is a half; kwargs: Keras' own, like `name`."""
        super().__init__(**kwargs)
        self.balance_initializer = keras.initializers.get(balance_initializer)

    def build(self, input_shape: Sequence[Sequence[int | None]]) -> None:
        """Creates the weight.

        Raises:
            ValueError: It was not called on two inputs of one shape.
        """
        shapes = [tuple(shape) if isinstance(shape, tuple | list) else shape for shape in input_shape]
        if len(shapes) != 2 or shapes[0] != shapes[1] or not isinstance(shapes[0], tuple):
            raise ValueError(
                f"ganlab.layers.LipschitzResidual got the shape {input_shape}; call it on the shortcut and the branch, "
                "which have one shape: layer([x, g])."
            )
        self.balance = self.add_weight(shape=(), initializer=self.balance_initializer, name="balance", autocast=False)

    def call(self, inputs: Sequence[tf.Tensor]) -> tf.Tensor:
        """The mean."""
        shortcut, branch = inputs
        share = tf.cast(tf.sigmoid(tf.convert_to_tensor(self.balance)), shortcut.dtype)
        return share * shortcut + (1 - share) * branch

    def compute_output_shape(self, input_shape: Sequence[Sequence[int | None]]) -> Sequence[int | None]:
        """The shape of either input."""
        return input_shape[0]
