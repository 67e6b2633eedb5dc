"""Dense layers and convolutions whose kernels are rescaled to a norm of at most one, whatever the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab import functional
from ganlab.layers.base import Layer
from ganlab.layers.starting import MiddleTap


class _AlmostOrthogonal(Layer):
    """A kernel, a bias, and the rescaled kernel, for the dense layer and the convolution."""

    arguments = "use_bias kernel_initializer bias_initializer"
    lipschitz_constant = 1.0  # of the map with the rescaled kernel; a bias adds nothing

    def __init__(self, use_bias: bool, kernel_initializer: Any, bias_initializer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_bias = bool(use_bias)
        self.kernel_initializer = keras.initializers.get(kernel_initializer or MiddleTap())
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def _add_weights(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        inputs = shape[-2]
        for stride in strides:
            inputs *= stride
        self._outputs, self._steps = shape[-1] < inputs, strides
        # Rescaled in float32 under any precision: sums of half precision would let the norm rise above one.
        self.kernel = self.add_weight(shape=shape, initializer=self.kernel_initializer, name="kernel", autocast=False)
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(shape=shape[-1:], initializer=self.bias_initializer, name="bias")

    def effective_kernel(self) -> tf.Tensor:
        """The rescaled kernel, of the kernel's shape and dtype."""
        return functional.almost_orthogonal(tf.convert_to_tensor(self.kernel), self._steps, outputs=self._outputs)

    def _with_bias(self, y: tf.Tensor) -> tf.Tensor:
        return y if self.bias is None else y + tf.cast(self.bias, y.dtype)


@keras.saving.register_keras_serializable(package="ganlab")
class AOLDense(_AlmostOrthogonal):
    """A dense layer of norm at most one: `x @ W + b`, where W is the rescaled `kernel`.

    Prach and Lampert, "Almost-orthogonal layers for efficient general-purpose Lipschitz networks" (2022), theorem 1:
    the factor of input i is `(sum_j |P'P|_ij)^(-1/2)`. Where there are fewer units than inputs, units are rescaled
    instead, by the same theorem for the transpose: with one unit, the kernel is divided by its length. Takes
    `(n, ..., inputs)`, as `keras.layers.Dense`.
    """

    arguments = "units"

    def __init__(
        self,
        units: int,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        """Sets the size.

        Args:
            units: The length of the output.
            use_bias: Whether to add a bias.
            kernel_initializer: How the kernel starts, before it is rescaled; None for nearly an orthogonal matrix.
            bias_initializer: How the bias starts.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(use_bias, kernel_initializer, bias_initializer, **kwargs)
        if not isinstance(units, int) or units < 1:
            raise ValueError(f"ganlab.layers.AOLDense(units={units!r}): it must be at least 1.")
        self.units = units

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights."""
        self._add_weights((known_channels(self, input_shape), self.units), ())

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The units, `(n, ..., units)`."""
        return self._with_bias(keras.ops.matmul(inputs, tf.cast(self.effective_kernel(), inputs.dtype)))

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """The input's shape with the last axis of `units`."""
        return (*input_shape[:-1], self.units)


@keras.saving.register_keras_serializable(package="ganlab")
class AOLConv2D(_AlmostOrthogonal):
    """A convolution of norm at most one: that of the rescaled `kernel`, plus a bias.

    Prach and Lampert (2022), theorem 2; images of any size, with zero padding or without. With strides, each pixel of a
    stride's window has factors of its own, which is theorem 2 for a convolution after `InvertibleDownsampling`. Where
    there are fewer filters than inputs of such a window, filters are rescaled instead. Takes images
    `(n, height, width, channels)`.
    """

    arguments = "filters kernel_size strides padding"

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] = 1,
        padding: str = "same",
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        """Sets the sizes.

        Args:
            filters: Channels of the output.
            kernel_size: Height and width of the kernel, or one number for both.
            strides: Steps in height and width, or one number for both.
            padding: "same" or "valid", as in `keras.layers.Conv2D`.
            use_bias: Whether to add a bias to each channel.
            kernel_initializer: How the kernel starts, before it is rescaled; None for nearly an orthogonal
                matrix between channels at the middle tap.
            bias_initializer: How the bias starts.
            **kwargs: Keras' own, for example `name`.
        """
        super().__init__(use_bias, kernel_initializer, bias_initializer, **kwargs)
        self.filters, self.padding = filters, padding
        self.kernel_size, self.strides = pair_of(kernel_size), pair_of(strides)
        if not isinstance(filters, int) or filters < 1 or min(*self.kernel_size, *self.strides) < 1:
            raise ValueError(
                f"ganlab.layers.AOLConv2D(filters={filters!r}, kernel_size={kernel_size!r}, strides={strides!r}): each "
                "must be at least 1."
            )
        if padding not in ("same", "valid"):
            raise ValueError(f"ganlab.layers.AOLConv2D(padding={padding!r}): it must be 'same' or 'valid'.")

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights."""
        self._add_weights((*self.kernel_size, known_channels(self, input_shape, 4), self.filters), self.strides)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The feature maps, `(n, height, width, filters)`."""
        kernel = tf.cast(self.effective_kernel(), inputs.dtype)
        return self._with_bias(tf.nn.conv2d(inputs, kernel, self.strides, self.padding.upper()))

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """`(n, height, width, filters)`."""
        sizes = zip(input_shape[1:3], self.kernel_size, self.strides, strict=True)
        space = (
            None if n is None else -(-n // step) if self.padding == "same" else (n - taps) // step + 1
            for n, taps, step in sizes
        )
        return (input_shape[0], *space, self.filters)


def pair_of(size: int | Sequence[int]) -> tuple[int, int]:
    """Height and width from one number or two."""
    height, width = (size, size) if isinstance(size, int) else size
    return int(height), int(width)


def known_channels(layer: keras.layers.Layer, shape: Sequence[int | None], axes: int | None = None) -> int:
    """The length of the last axis of an input.

    Args:
        layer: The layer that takes the input, for the error.
        shape: Its shape.
        axes: How many axes it must have; None for any number.

    Raises:
        ValueError: The length is unknown, or the number of axes is another.
    """
    if shape[-1] is None or (axes is not None and len(shape) != axes):
        wanted = "(n, height, width, channels) of known channels" if axes else "of a known last axis"
        raise ValueError(f"ganlab.layers.{type(layer).__name__} got the shape {tuple(shape)}; it must be {wanted}.")
    return int(shape[-1])
