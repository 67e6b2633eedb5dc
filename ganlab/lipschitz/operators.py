"""The linear maps that kernels perform: dense layers, convolutions, and kernels as matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ganlab.errors import IncompatibleError
from ganlab.functional import as_matrix, named_weights
from ganlab.lazy import keras
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    Shape = tuple[int, ...]


@dataclass(frozen=True)
class Operator:
    """The linear map of one kernel, on one example; a bias and an activation are not part of it.

    It holds no weights: the kernel is an argument, a variable's value or a tensor. It works inside a replica's traced
    function, eagerly and under XLA.

    Attributes:
        input_shape: The shape of its argument.
        output_shape: The shape of the result.
    """

    input_shape: Shape
    output_shape: Shape

    def apply(self, kernel: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """The image of `x`, `input_shape -> output_shape`, float32."""
        raise NotImplementedError

    def adjoint(self, kernel: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """The adjoint's image of `y`, `output_shape -> input_shape`: `<y, apply(x)> = <adjoint(y), x>`."""
        origin = tf.zeros(self.input_shape, y.dtype)
        with tf.GradientTape() as tape:
            tape.watch(origin)
            image = self.apply(kernel, origin)
        return tape.gradient(image, origin, output_gradients=y)  # the same at every point, because the map is linear

    @property
    def overlap(self) -> int:
        """The largest number of patches that an input lies in, 1 for a matrix and more for a convolution.

        The operator's norm is at most `sqrt(overlap)` times the largest singular value of
        `ganlab.functional.as_matrix(kernel)`: cutting an input into patches repeats each of its numbers that often
        (Tsuzuku, Sato and Sugiyama, "Lipschitz-margin training", 2018, on convolutional layers).
        """
        return 1

    def matrix(self, kernel: tf.Tensor) -> np.ndarray | None:
        """The matrix `(outputs, inputs)` of an eager kernel, where the kernel is one; None for a convolution."""
        return None

    def blocks(self, kernel: np.ndarray) -> np.ndarray:
        """The map's independent parts as strided convolutions: `(groups, *taps, inputs, outputs)`.

        A transposed convolution returns those of its adjoint, which has the same norm.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Dense(Operator):
    """`x -> x @ kernel` on the last axis of a dense layer's input; the other axes only repeat it and are ignored."""

    def apply(self, kernel: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """The image of `x`, `(inputs,) -> (outputs,)`."""
        return tf.linalg.matvec(kernel, x, transpose_a=True)

    def adjoint(self, kernel: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """The adjoint's image of `y`, `(outputs,) -> (inputs,)`."""
        return tf.linalg.matvec(kernel, y)

    def matrix(self, kernel: tf.Tensor) -> np.ndarray:
        """The kernel's transpose."""
        return kernel.numpy().T

    def blocks(self, kernel: np.ndarray) -> np.ndarray:
        """One group without taps."""
        return kernel[None]


@dataclass(frozen=True)
class ReshapedMatrix(Operator):
    """A kernel of any layer as the matrix (everything else, outputs), on vectors of the length of its outputs.

    For a dense layer it is the adjoint. For a convolution it is the matrix that Miyato et al. (2018) normalize: the map
    from the outputs at one place back to the patch that they saw.
    """

    @classmethod
    def of(cls, kernel: tf.Tensor) -> ReshapedMatrix:
        """The matrix of a kernel of this shape."""
        *others, outputs = kernel.shape
        return cls((outputs,), (math.prod(others),))

    def apply(self, kernel: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """The image of `x`, `(outputs,) -> (everything else,)`."""
        return tf.linalg.matvec(as_matrix(kernel), x)

    def adjoint(self, kernel: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        """The adjoint's image of `y`, `(everything else,) -> (outputs,)`."""
        return tf.linalg.matvec(as_matrix(kernel), y, transpose_a=True)

    def matrix(self, kernel: tf.Tensor) -> np.ndarray:
        """The matrix (everything else, outputs)."""
        return kernel.numpy().reshape(-1, kernel.shape[-1])

    def blocks(self, kernel: np.ndarray) -> np.ndarray:
        """One group without taps."""
        return kernel.reshape(1, -1, kernel.shape[-1])


@dataclass(frozen=True)
class Convolution(Operator):
    """A convolution as Keras performs it, zero padding, strides, dilation and groups included; channels last."""

    strides: Shape
    dilation: Shape
    padding: str
    taps: Shape
    groups: int = 1

    def apply(self, kernel: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """The image of `x`, `(*space, channels) -> (*space, channels)`."""
        x, padding = x[None], self.padding
        if padding == "causal":
            x, padding = tf.pad(x, [[0, 0], [self.dilation[0] * (self.taps[0] - 1), 0], [0, 0]]), "valid"
        # Group by group, because on CPUs Keras recompiles a grouped convolution at every eager call.
        pairs = zip(tf.split(x, self.groups, axis=-1), tf.split(kernel, self.groups, axis=-1), strict=True)
        images = [keras.ops.conv(x, k, self.strides, padding, "channels_last", self.dilation)[0] for x, k in pairs]
        return images[0] if self.groups == 1 else tf.concat(images, axis=-1)

    @property
    def overlap(self) -> int:
        """The product over axes of taps over stride, rounded up, unless dilation and stride share factors."""
        steps = (s // math.gcd(s, d) for s, d in zip(self.strides, self.dilation, strict=True))
        return math.prod(-(-t // step) for t, step in zip(self.taps, steps, strict=True))

    def blocks(self, kernel: np.ndarray) -> np.ndarray:
        """One block for each group."""
        *taps, inputs, outputs = kernel.shape
        return np.moveaxis(kernel.reshape(*taps, inputs, self.groups, outputs // self.groups), -2, 0)


@dataclass(frozen=True)
class DepthwiseConvolution(Convolution):
    """A convolution of each channel alone."""

    def apply(self, kernel: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """The image of `x`, `(*space, channels) -> (*space, channels)`."""
        y = keras.ops.depthwise_conv(x[None], kernel, self.strides, self.padding, "channels_last", self.dilation)
        return y[0]

    def blocks(self, kernel: np.ndarray) -> np.ndarray:
        """One block for each channel."""
        return np.moveaxis(kernel, -2, 0)[..., None, :]


@dataclass(frozen=True)
class TransposedConvolution(Convolution):
    """A transposed convolution, the adjoint of a strided one."""

    output_padding: Any = None

    def apply(self, kernel: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """The image of `x`, `(*space, channels) -> (*space, channels)`."""
        return keras.ops.conv_transpose(
            x[None], kernel, self.strides, self.padding, self.output_padding, "channels_last", self.dilation
        )[0]

    def blocks(self, kernel: np.ndarray) -> np.ndarray:
        """The adjoint's one block: the kernel's axes are (taps, its outputs, its inputs) already."""
        return kernel[None]


def operators(critic: keras.Model, *, reshaped: bool = False) -> dict[str, Operator]:
    """The linear map of every kernel of a built critic.

    Models of any kind work, including subclasses, if their convolutions know the size of their input.

    Args:
        critic: A built model.
        reshaped: Whether to take kernels as matrices (`ReshapedMatrix`) instead of the maps that the layers perform.
            Then every trained weight with two axes or more is a kernel, whatever its layer.

    Returns:
        Operators by the names of `ganlab.functional.named_weights`.

    Raises:
        IncompatibleError: A kernel's map is unknown; the message names the kernel and its layer.
    """
    weights = named_weights(critic)
    if reshaped:
        return {name: ReshapedMatrix.of(weight) for name, weight in weights.items() if len(weight.shape) >= 2}
    names = {id(weight): name for name, weight in weights.items()}
    by_name: dict[str, Operator] = {}
    for layer in critic._flatten_layers(include_self=True, recursive=True):
        owned = [weight for weight in layer._trainable_variables if len(weight.shape) >= 2 and id(weight) in names]
        if not owned or isinstance(layer, _elementwise()):
            continue
        operator = operator_of(layer, (layer.get_build_config() or {}).get("input_shape"))
        if operator is None or owned != [layer.kernel]:
            raise IncompatibleError(
                f"The linear map of {names[id(owned[0])]!r}, a weight of the critic's layer {layer.name!r} "
                f"({type(layer).__name__}), is unknown: known are Keras' own Dense, Conv, DepthwiseConv and "
                "ConvTranspose layers on inputs of known size. Build the critic from those, or take kernels as "
                'matrices (operator = "matrix" where a constraint has that).'
            )
        by_name[names[id(owned[0])]] = operator
    return by_name


def operator_of(layer: Any, input_shape: Any) -> Operator | None:
    """The linear map of a layer's kernel, or None if it is unknown.

    Args:
        layer: A built layer.
        input_shape: The shape of its input, the batch's axis first.
    """
    make = _makers().get(type(layer))
    if make is None or input_shape is None or not hasattr(layer.kernel, "path"):  # no path: a kernel with an adapter
        return None
    first = getattr(layer, "data_format", None) == "channels_first"
    x, y = ((*s[2:], s[1]) if first else tuple(s[1:]) for s in (input_shape, layer.compute_output_shape(input_shape)))
    if type(layer) is keras.layers.Dense:
        x, y = x[-1:], y[-1:]
    return None if None in x + y else make(layer, x, y)


def _makers() -> Mapping[type, Any]:
    from ganlab.layers import LabelEmbedding  # here, because it imports Keras

    layers = keras.layers
    return {
        layers.Dense: lambda layer, x, y: Dense(x, y),
        LabelEmbedding: lambda layer, x, y: Dense(tuple(layer.kernel.shape[:1]), y),  # whatever labels it takes
        layers.Conv1D: _convolution,
        layers.Conv2D: _convolution,
        layers.Conv3D: _convolution,
        layers.DepthwiseConv1D: _depthwise,
        layers.DepthwiseConv2D: _depthwise,
        layers.Conv1DTranspose: _transposed,
        layers.Conv2DTranspose: _transposed,
        layers.Conv3DTranspose: _transposed,
    }


def _convolution(layer: Any, x: Shape, y: Shape) -> Operator:
    taps = tuple(layer.kernel_size)
    return Convolution(x, y, tuple(layer.strides), tuple(layer.dilation_rate), layer.padding, taps, layer.groups)


def _depthwise(layer: Any, x: Shape, y: Shape) -> Operator:
    taps = tuple(layer.kernel_size)
    return DepthwiseConvolution(x, y, tuple(layer.strides), tuple(layer.dilation_rate), layer.padding, taps, x[-1])


def _transposed(layer: Any, x: Shape, y: Shape) -> Operator:
    taps, strides, dilation = tuple(layer.kernel_size), tuple(layer.strides), tuple(layer.dilation_rate)
    return TransposedConvolution(x, y, strides, dilation, layer.padding, taps, output_padding=layer.output_padding)


def _elementwise() -> tuple[type, ...]:
    layers = keras.layers
    return (layers.PReLU, layers.LayerNormalization, layers.GroupNormalization, layers.BatchNormalization)
