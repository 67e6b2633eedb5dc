"""The convolution of a linear residual block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

import ganlab
from ganlab.functional import squared_norm_bound


@keras.saving.register_keras_serializable(package="ganlab")
class LiResConv2D(ganlab.layers.AOLConv2D):
    """The convolution of a linear residual block, `x + g W x` as one kernel, over a bound of its norm.

    Hu, Zou, Wang, Leino and Fredrikson, "Unlocking deterministic robustness certification on ImageNet" (2023), as
    LiResConv of hukkai/liresnet (0c0611a, models/blocks.py:49), but for a constant factor of W: W is `kernel`, which
    starts as normal numbers of deviation `1 / (taps * filters)`, and g is `gain`, one number for each channel; an
    activation follows. The authors estimate the norm by power iteration, from below, for their loss. Here the kernel is
    divided by the bound of Gram iteration, so that the constant is one. They center the output by running means of
    batches; `ganlab.layers.LayerCentering` does it by example.
    """

    def __init__(self, filters: int, kernel_size: int | Sequence[int] = 3, **kwargs: Any) -> None:
        """Takes the arguments of `ganlab.layers.AOLConv2D`, but for strides and padding; the kernel's sides are odd."""
        super().__init__(filters, kernel_size, **{**kwargs, "strides": 1, "padding": "same"})
        if "kernel_initializer" not in kwargs:
            taps = math.prod(self.kernel_size)
            self.kernel_initializer = keras.initializers.RandomNormal(stddev=1 / (taps * filters))

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights."""
        super().build(input_shape)
        if input_shape[-1] != self.filters or math.prod(self.kernel_size) % 2 == 0:
            raise ValueError(
                f"ganlab_builtin.layers.LiResConv2D(filters={self.filters}, kernel_size={self.kernel_size}) got the "
                f"shape {tuple(input_shape)}; it must have as many channels, which are added to the output, and the "
                "kernel's sides must be odd."
            )
        self.gain = self.add_weight(shape=(self.filters,), initializer="ones", name="gain", autocast=False)

    def effective_kernel(self) -> tf.Tensor:
        """The kernel of the convolution, of the kernel's shape and dtype."""
        kernel = tf.convert_to_tensor(self.kernel) * tf.convert_to_tensor(self.gain)
        borders = [[length // 2] * 2 for length in self.kernel_size]
        kernel += tf.pad(tf.eye(self.filters, dtype=kernel.dtype)[None, None], [*borders, [0, 0], [0, 0]])
        return kernel * tf.math.rsqrt(squared_norm_bound(kernel) * (1 + 2e-6) + 1e-12)
