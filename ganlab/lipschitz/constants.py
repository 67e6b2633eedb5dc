"""Lipschitz constants of single layers, in the Euclidean norm on flattened examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ganlab.lazy import keras
from ganlab.lipschitz.bounds import norm_bound
from ganlab.lipschitz.operators import operator_of

if TYPE_CHECKING:
    Value = Callable[[Any], np.ndarray]  # the value that a variable has in the weights at hand
    Constant = Callable[[Value], float]

# The least and the largest slope of each activation that acts on every number alone, with the defaults of
# keras.activations and TensorFlow's derivative, rounded outward. None falls more steeply than it rises.
ACTIVATION_SLOPES = {
    "linear": (1.0, 1.0),
    "relu": (0.0, 1.0),
    "relu6": (0.0, 1.0),
    "leaky_relu": (0.2, 1.0),
    "elu": (0.0, 1.0),
    "celu": (0.0, 2.0),  # the function's is 1, but at zero TensorFlow adds up the slopes of its two halves
    "selu": (0.0, 1.758100),  # scale * alpha, towards zero from below
    "softplus": (0.0, 1.0),
    "softsign": (0.0, 1.0),
    "sigmoid": (0.0, 0.25),
    "log_sigmoid": (0.0, 1.0),
    "tanh": (0.0, 1.0),
    "hard_sigmoid": (0.0, 1 / 6),
    "hard_tanh": (0.0, 1.0),
    "silu": (-0.099841, 1.099840),
    "hard_silu": (-0.5, 1.5),  # the largest at 3 from below
    "gelu": (-0.128906, 1.128905),  # the largest at the square root of 2
    "mish": (-0.113165, 1.088499),
}
_SOFTMAX = 0.5  # its Jacobian diag(p) - p p' has row sums of absolute values 2 p (1 - p)


class Unknown(Exception):  # noqa: N818
    """A layer has no known constant; the message is the reason."""


def constant_of(layer: Any, input_shape: tuple[int | None, ...]) -> Constant:
    """The Lipschitz constant of a built layer with one input, as a function of the weights.

    A layer's own attribute `lipschitz_constant`, a number that holds for all weights, takes precedence. Otherwise only
    Keras' own classes are known, because a subclass may compute anything.

    Raises:
        Unknown: There is no constant, or it is unknown.
    """
    own = getattr(layer, "lipschitz_constant", None)
    if own is not None:
        return _fixed(float(own))
    operator = operator_of(layer, input_shape)
    if operator is not None:
        after = _activation(getattr(layer, "activation", keras.activations.linear), input_shape)
        return lambda value: norm_bound(operator, value(layer.kernel)) * after(value)
    rule = _rules().get(type(layer))
    if rule is None:
        raise Unknown("its Lipschitz constant is unknown; set the layer's attribute lipschitz_constant if you know it")
    constant = rule(layer, input_shape)
    return constant if callable(constant) else _fixed(constant)


def takes_labels(layer: Any) -> bool:
    """Whether a layer takes `[x, labels]`, and `constant_of` gives its constant for labels that are fixed."""
    from ganlab import layers as ours  # here, because it imports Keras

    kinds = (ours.ProjectionHead, ours.ConditionalLayerNormalization, ours.ConditionalBatchNormalization)
    return type(layer) in kinds


def _activation(activation: Any, shape: tuple[int | None, ...]) -> Constant:
    """The constant of an activation: a function of Keras, a layer, or any object with `lipschitz_constant`."""
    if isinstance(activation, keras.layers.Layer):
        return constant_of(activation, shape)
    own = getattr(activation, "lipschitz_constant", None)
    if own is not None:
        return _fixed(float(own))
    if activation is keras.activations.softmax:
        return _fixed(_SOFTMAX)
    for name, (_, steepest) in ACTIVATION_SLOPES.items():
        if activation is getattr(keras.activations, name):
            return _fixed(steepest)
    name = getattr(activation, "__name__", type(activation).__name__)
    raise Unknown(f"the Lipschitz constant of its activation {name!r} is unknown")


def _fixed(constant: float) -> Constant:
    return lambda value: constant


def _rules() -> Mapping[type, Callable[[Any, Any], float | Constant]]:
    from ganlab import layers as ours  # here, because it imports Keras

    layers = keras.layers
    isometric = (
        *(layers.InputLayer, layers.Identity, layers.Flatten, layers.Reshape, layers.Permute),
        *(layers.ZeroPadding1D, layers.ZeroPadding2D, layers.ZeroPadding3D),
        *(layers.Cropping1D, layers.Cropping2D, layers.Cropping3D),
        *(layers.GlobalMaxPooling1D, layers.GlobalMaxPooling2D, layers.GlobalMaxPooling3D),
    )
    averages = (layers.AveragePooling1D, layers.AveragePooling2D, layers.AveragePooling3D)
    maxima = (layers.MaxPooling1D, layers.MaxPooling2D, layers.MaxPooling3D)
    means = (layers.GlobalAveragePooling1D, layers.GlobalAveragePooling2D, layers.GlobalAveragePooling3D)
    repeats = (layers.UpSampling1D, layers.UpSampling2D, layers.UpSampling3D)
    return {
        **dict.fromkeys(isometric, lambda layer, shape: 1.0),
        **dict.fromkeys(averages, _average_pooling),
        **dict.fromkeys(maxima, _max_pooling),
        **dict.fromkeys(means, lambda layer, shape: 1 / math.sqrt(math.prod(_space(layer, shape)))),
        **dict.fromkeys(repeats, _up_sampling),
        layers.RepeatVector: lambda layer, shape: math.sqrt(layer.n),
        layers.Rescaling: _rescaling,
        layers.Activation: lambda layer, shape: _activation(layer.activation, shape),
        layers.ReLU: _relu,
        layers.LeakyReLU: lambda layer, shape: max(1.0, abs(float(layer.negative_slope))),
        layers.ELU: lambda layer, shape: max(1.0, abs(float(layer.alpha))),
        layers.PReLU: lambda layer, shape: lambda value: max(1.0, float(np.abs(value(layer.alpha)).max())),
        layers.Softmax: lambda layer, shape: _SOFTMAX,
        layers.LayerNormalization: _normalization,
        layers.GroupNormalization: _normalization,
        **dict.fromkeys((ours.LayerNormalization, ours.GroupNormalization, ours.InstanceNormalization), _normalization),
        layers.RMSNormalization: _normalization,
        layers.BatchNormalization: _batch_normalization,
        ours.ConditionalBatchNormalization: _batch_normalization,
        ours.ConditionalLayerNormalization: _normalization,
        ours.ProjectionHead: _projection_head,
        ours.SelfAttention: _self_attention,
    }


def _relu(layer: Any, shape: Any) -> float:
    if layer.threshold != 0:
        raise Unknown("a rectifier with a threshold jumps at the threshold")
    return max(1.0, abs(float(layer.negative_slope)))


def _rescaling(layer: Any, shape: Any) -> float:
    return float(np.abs(np.asarray(layer.scale)).max())


def _up_sampling(layer: Any, shape: Any) -> float:
    if getattr(layer, "interpolation", "nearest") != "nearest":
        raise Unknown(f"the Lipschitz constant of {layer.interpolation!r} interpolation is unknown")
    size = layer.size
    return math.sqrt(math.prod(size) if isinstance(size, tuple | list) else size)


def _max_pooling(layer: Any, shape: Any) -> float:
    """A maximum moves by at most as much as an input of its window, and an input lies in this many windows."""
    return math.sqrt(math.prod(-(-pool // stride) for pool, stride in zip(layer.pool_size, layer.strides, strict=True)))


def _average_pooling(layer: Any, shape: Any) -> float:
    """The exact norm: averages over a rectangle, also cut off at the border, are averages along each axis in turn."""
    axes = zip(_space(layer, shape), layer.pool_size, layer.strides, strict=True)
    return math.prod(_average_norm(length, pool, stride, layer.padding) for length, pool, stride in axes)


def _average_norm(length: int, pool: int, stride: int, padding: str) -> float:
    if padding == "same":
        outputs = -(-length // stride)
        before = max((outputs - 1) * stride + pool - length, 0) // 2
    else:
        outputs, before = (length - pool) // stride + 1, 0
    distance = np.arange(length)[None] + before - stride * np.arange(outputs)[:, None]
    windows = ((distance >= 0) & (distance < pool)).astype(np.float64)
    return float(np.linalg.norm(windows / windows.sum(axis=1, keepdims=True), 2))


def _space(layer: Any, shape: tuple[int | None, ...]) -> tuple[int, ...]:
    space = shape[2:] if layer.data_format == "channels_first" else shape[1:-1]
    if None in space:
        raise Unknown(f"its input's size is unknown, {tuple(shape)}")
    return tuple(int(length) for length in space if length)


def _normalization(layer: Any, shape: Any) -> Constant:
    """`max |gamma| / sqrt(epsilon)`, reached where an example does not vary.

    For n numbers with s^2 = variance + epsilon and y = (x - mean) / s, the Jacobian of y is (P - y y' / n) / s, where P
    subtracts means: a projection less a part of it, because |y|^2 < n.
    """
    if getattr(layer, "rms_scaling", False):
        raise Unknown("it divides by a deviation without subtracting the mean, which no constant bounds")
    steepest = 1 / math.sqrt(layer.epsilon)
    gamma = getattr(layer, "gamma", getattr(layer, "scale", None))
    if gamma is None or not hasattr(gamma, "path"):
        return _fixed(steepest)
    return lambda value: steepest * float(np.abs(value(gamma)).max())


def _batch_normalization(layer: Any, shape: Any) -> float:
    raise Unknown("it mixes the examples of a batch, so no example has its own score")


def _projection_head(layer: Any, shape: Any) -> Constant:
    """The score is linear in the features, with the weights `psi + embed(y)`: the longest of these over the classes."""

    def constant(value: Value) -> float:
        weights = value(layer.score.kernel)[:, 0] + value(layer.label_embedding.kernel)
        return float(np.linalg.norm(weights, axis=1).max())

    return constant


def _self_attention(layer: Any, shape: Any) -> float:
    raise Unknown("products of its queries and keys grow quadratically, so that it has no Lipschitz constant")
