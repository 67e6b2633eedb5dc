"""SDP-based Lipschitz layers: residual layers of Lipschitz constant one, whatever the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab import functional
from ganlab.layers.almost_orthogonal import known_channels, pair_of
from ganlab.layers.base import Layer

MARGIN = 1 + 2e-6  # above what rounding takes off T
TINY = 1e-12  # so that a hidden unit without weights is zero and not zero over zero


class _SLL(Layer):
    """A kernel, a bias, log q, and T, for the dense layer and the convolution."""

    arguments = "kernel_initializer bias_initializer"
    lipschitz_constant = 1.0  # theorem 3, for any activation with slopes between zero and one

    def __init__(self, kernel_initializer: Any, bias_initializer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def _add_weights(self, shape: tuple[int, ...]) -> None:
        # In float32 under any precision, like the sums of absolute values made of it.
        self.kernel = self.add_weight(shape=shape, initializer=self.kernel_initializer, name="kernel", autocast=False)
        self.bias = self.add_weight(shape=shape[-1:], initializer=self.bias_initializer, name="bias")
        self.log_q = self.add_weight(shape=shape[-1:], initializer="zeros", name="log_q", autocast=False)

    def _factors(self, kernel: tf.Tensor) -> tf.Tensor:
        """`2 / T`, one number for each hidden unit or channel."""
        q = tf.exp(tf.convert_to_tensor(self.log_q))
        return 2.0 / (functional.gram_row_sums(kernel, outputs=True, weights=q) * MARGIN + TINY)


@keras.saving.register_keras_serializable(package="ganlab")
class SLLDense(_SLL):
    """A residual layer of constant one on vectors: `x - 2 W T^-1 relu(W'x + b)`.

    Araujo, Havens, Delattre, Allauzen and Hu, "A unified algebraic perspective on Lipschitz neural networks" (2023),
    theorem 3: `T = diag(sum_j |W'W|_ij q_j / q_i)` with trained positive q. `kernel` is W, `(inputs, units)`, and
    `log_q` the logarithm of q. Takes `(n, ..., inputs)` and returns the same shape.
    """

    arguments = "units"

    def __init__(
        self,
        units: int | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        """Sets the size.

        Args:
            units: How many rectifiers; None for as many as inputs.
            kernel_initializer: How the kernel starts; its size does not matter, because T divides by it.
            bias_initializer: How the bias starts.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(kernel_initializer, bias_initializer, **kwargs)
        if units is not None and (not isinstance(units, int) or units < 1):
            raise ValueError(f"ganlab.layers.SLLDense(units={units!r}): it must be at least 1, or None.")
        self.units = units

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights."""
        inputs = known_channels(self, input_shape)
        self._add_weights((inputs, self.units or inputs))

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The output, of the input's shape."""
        kernel = tf.convert_to_tensor(self.kernel)
        factors, cast = tf.cast(self._factors(kernel), inputs.dtype), tf.cast(kernel, inputs.dtype)
        hidden = tf.nn.relu(keras.ops.matmul(inputs, cast) + self.bias)
        return inputs - keras.ops.matmul(hidden * factors, tf.transpose(cast))


@keras.saving.register_keras_serializable(package="ganlab")
class SLLConv2D(_SLL):
    """A residual layer of constant one on images: `x - 2 W T^-1 relu(W'x + b)`.

    Araujo et al. (2023), theorem 3, for convolutions. W' is the convolution by `kernel`, with zero padding to the same
    size, and W its transpose. T has one number for each hidden channel, the sum over all offsets of the
    kernel's convolution with itself; it holds for any size of image. Takes `(n, height, width, channels)` and returns
    the same shape.
    """

    arguments = "filters kernel_size"

    def __init__(
        self,
        filters: int | None = None,
        kernel_size: int | Sequence[int] = 3,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        """Sets the sizes.

        Args:
            filters: How many hidden channels; None for as many as those of the input.
            kernel_size: Height and width of the kernel, or one number for both.
            kernel_initializer: How the kernel starts; its size does not matter, because T divides by it.
            bias_initializer: How the bias starts.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(kernel_initializer, bias_initializer, **kwargs)
        self.filters, self.kernel_size = filters, pair_of(kernel_size)
        if (filters is not None and (not isinstance(filters, int) or filters < 1)) or min(self.kernel_size) < 1:
            raise ValueError(
                f"ganlab.layers.SLLConv2D(filters={filters!r}, kernel_size={kernel_size!r}): each must be at least 1; "
                "filters may be None."
            )

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights."""
        channels = known_channels(self, input_shape, 4)
        self._add_weights((*self.kernel_size, channels, self.filters or channels))

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The feature maps, of the input's shape."""
        kernel = tf.convert_to_tensor(self.kernel)
        factors, cast = tf.cast(self._factors(kernel), inputs.dtype), tf.cast(kernel, inputs.dtype)
        hidden = tf.nn.relu(tf.nn.conv2d(inputs, cast, 1, "SAME") + self.bias)
        return inputs - tf.nn.conv2d_transpose(hidden * factors, cast, tf.shape(inputs), 1, "SAME")
