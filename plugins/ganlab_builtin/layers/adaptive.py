"""Adaptive orthogonal convolutions: with strides, in groups, and transposed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

import ganlab
from ganlab.functional import orthonormal

_MARGIN = 1 + 2e-6  # above what rounding adds to the norm of a product of kernels


@keras.saving.register_keras_serializable(package="ganlab")
class AOCConv2D(ganlab.layers.OrthogonalConv2D):
    """An orthogonal convolution with strides and in groups of channels.

    Boissin, Mamalet, Fel, Picard, Massena and Serrurier, "An adaptive orthogonal convolution scheme for efficient and
    flexible CNN architectures" (2025), as in deel-ai/orthogonium (d54ed63,
    orthogonium/layers/conv/AOC/bcop_x_rko_conv.py:16): of k taps at stride s, an `OrthogonalConv2D` of `k - s + 1` taps
    to `max(inputs, filters // s^2)` channels, then one of s taps at stride s whose kernel `sampling` is orthonormal as
    a matrix. The product is one kernel; each group has its own. Matrices are orthonormal by Cayley's transform, where
    orthogonium has Björck's iteration.

    With `padding="circular"`, rows or columns of the whole map are orthonormal, whichever are fewer, if the strides
    divide the sides. With "same", zeros beyond the border, no singular value is above one.
    """

    arguments = "strides groups"

    def __init__(
        self,
        filters: int,
        kernel_size: int | Sequence[int] = 3,
        strides: int | Sequence[int] = 1,
        groups: int = 1,
        **kwargs: Any,
    ) -> None:
        """Sets the sizes.

        Args:
            filters: Channels of the output.
            kernel_size: Height and width of the kernel, or one number for both.
            strides: Steps in height and width, or one number for both; no larger than the kernel.
            groups: Into how many groups of channels, each convolved alone, the input and the output are split.
            **kwargs: Those of `OrthogonalConv2D`, and Keras' own.
        """
        super().__init__(filters, kernel_size, **kwargs)
        self.strides, self.groups = (strides,) * 2 if isinstance(strides, int) else tuple(strides), groups
        if min(*self.strides, groups) < 1 or filters % groups or any(map(int.__gt__, self.strides, self.kernel_size)):
            raise ValueError(
                f"ganlab_builtin.layers.{type(self).__name__}(filters={filters!r}, kernel_size={kernel_size!r}, "
                f"strides={strides!r}, groups={groups!r}): groups must divide filters, and strides must be at "
                "least 1 and no larger than the kernel, because no convolution that skips pixels is orthogonal."
            )

    def build(self, input_shape: Sequence[int | None]) -> None:
        """Creates the weights."""
        inputs, circular = input_shape[-1], self.padding == "circular"
        if len(input_shape) != 4 or not inputs or inputs % self.groups or (circular and None in input_shape[1:3]):
            raise ValueError(
                f"ganlab_builtin.layers.{type(self).__name__}(groups={self.groups}, padding={self.padding!r}) got the "
                f"shape {tuple(input_shape)}; it must be (n, height, width, channels), groups must divide the "
                "channels, and height and width must be known unless the padding is 'same'."
            )
        self._make(inputs // self.groups, self.filters // self.groups)
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(shape=(self.filters,), initializer=self.bias_initializer, name="bias")

    def _make(self, inputs: int, outputs: int) -> None:
        """The weights of a kernel from inputs to outputs, of one group."""
        self._sizes, step, start = (inputs, outputs), math.prod(self.strides), self.kernel_initializer
        channels = max(inputs, outputs // step)
        self._taps = [k - s + 1 for k, s in zip(self.kernel_size, self.strides, strict=True)]
        columns = channels + (sum(self._taps) - 2) * (channels // 2)
        shape: tuple[int, ...] = (self.groups, channels, columns)
        self.kernel = self.add_weight(shape=shape, initializer=start, name="kernel", autocast=False)
        if step > 1:
            start = type(start).from_config(start.get_config())  # an initializer gives the same numbers at every call
            shape = (self.groups, *sorted((step * channels, outputs), reverse=True))
            self.sampling = self.add_weight(shape=shape, initializer=start, name="sampling", autocast=False)

    def effective_kernel(self) -> tf.Tensor:
        """The kernel of the convolution, `(*kernel_size, inputs / groups, filters)`, of the kernel's dtype."""
        columns, (inputs, outputs) = tf.convert_to_tensor(self.kernel), self._sizes
        groups, channels, _ = columns.shape
        kernel = orthonormal(columns[:, :, :channels])[:, None, None, :inputs] / _MARGIN
        steps = sum(self._taps) - 2
        bases = tf.reshape(columns[:, :, channels:], [groups, channels, steps, channels // 2])
        bases = orthonormal(tf.transpose(bases, [2, 0, 1, 3]))
        # Height and width in turn, while both have steps left.
        order = sorted((i, axis) for axis, taps in enumerate(self._taps) for i in range(taps - 1))
        for basis, (_, axis) in zip(tf.unstack(bases, steps), order, strict=True):
            part = _times(_times(kernel, basis), tf.linalg.matrix_transpose(basis))
            kernel = _moved(part, {axis: (0, 1)}) + _moved(kernel - part, {axis: (1, 0)})
        if math.prod(self.strides) == 1:
            kernel = kernel[..., :outputs]
        else:
            sampling = orthonormal(tf.convert_to_tensor(self.sampling))
            if sampling.shape[2] != outputs:
                sampling = tf.linalg.matrix_transpose(sampling)
            (height, width), parts = self.strides, []
            sampling = tf.reshape(sampling, [groups, height, width, channels, outputs])
            for i in range(height):
                for j in range(width):
                    borders = {0: (i, height - 1 - i), 1: (j, width - 1 - j)}
                    parts.append(_moved(_times(kernel, sampling[:, i, j]), borders))
            kernel = sum(parts)
        return tf.reshape(tf.transpose(kernel, [1, 2, 3, 0, 4]), [*self.kernel_size, inputs, -1])

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The feature maps, `(n, height / strides, width / strides, filters)`."""
        return self._with_bias(self._convolved(inputs))

    def _convolved(self, x: tf.Tensor) -> tf.Tensor:
        kernel, circular = tf.cast(self.effective_kernel(), x.dtype), self.padding == "circular"
        for axis, (taps, stride) in enumerate(zip(self.kernel_size, self.strides, strict=True), 1):
            if circular:  # as many pixels of the opposite side as the kernel sees
                side, reach = x.shape[axis], x.shape[axis] + taps - stride
                tiles = [-(-reach // side) if i == axis else 1 for i in range(4)]
                x = tf.tile(tf.roll(x, (taps - stride) // 2, axis), tiles)
                x = x[(slice(None),) * axis + (slice(reach),)]
        # One by one: TensorFlow's own groups lack gradients on a CPU, unless they are in float32 and in a graph.
        parts = zip(tf.split(x, self.groups, -1), tf.split(kernel, self.groups, -1), strict=True)
        padding = "VALID" if circular else "SAME"
        return tf.concat([tf.nn.conv2d(part, k, self.strides, padding) for part, k in parts], -1)

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """`(n, height, width, filters)`."""
        rest = 0 if self.padding == "circular" else 1  # "same" has a pixel for what is left of a stride
        sides = zip(input_shape[1:3], self.strides, strict=True)
        return (input_shape[0], *(None if n is None else (n + rest * (s - 1)) // s for n, s in sides), self.filters)


@keras.saving.register_keras_serializable(package="ganlab")
class AOCConv2DTranspose(AOCConv2D):
    """The transpose of `AOCConv2D`: `strides` times as many pixels in height and width.

    Boissin et al. (2025), as BcopRkoConvTranspose2d of orthogonium (d54ed63,
    orthogonium/layers/conv/AOC/bcop_x_rko_conv.py:118), which has zeros beyond the border alone; here "circular" is the
    transpose of the circular convolution, whose rows or columns are orthonormal, too.
    """

    def _make(self, inputs: int, outputs: int) -> None:
        super()._make(outputs, inputs)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The feature maps, `(n, height * strides, width * strides, filters)`."""
        known, dynamic = inputs.shape, tf.shape(inputs)
        sides = [(known[i] or dynamic[i]) * stride for i, stride in enumerate(self.strides, 1)]
        x = tf.zeros([dynamic[0], *sides, self.filters], inputs.dtype)
        with tf.GradientTape() as tape:  # the transpose of a linear map is its gradient
            tape.watch(x)
            y = self._convolved(x)
        return self._with_bias(tape.gradient(y, x, output_gradients=inputs))

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[int | None, ...]:
        """`(n, height, width, filters)`."""
        sides = zip(input_shape[1:3], self.strides, strict=True)
        return (input_shape[0], *(None if n is None else n * step for n, step in sides), self.filters)


def _times(kernel: tf.Tensor, matrices: tf.Tensor) -> tf.Tensor:
    """A kernel `(groups, height, width, inputs, channels)` by a matrix for each group."""
    groups, *space, channels = kernel.shape
    product = tf.matmul(tf.reshape(kernel, [groups, -1, channels]), matrices)
    return tf.reshape(product, [groups, *space, matrices.shape[-1]])


def _moved(kernel: tf.Tensor, borders: dict[int, tuple[int, int]]) -> tf.Tensor:
    """Such a kernel with zeros before and after its taps, by axis of space."""
    return tf.pad(kernel, [borders.get(i - 1, (0, 0)) for i in range(5)])
