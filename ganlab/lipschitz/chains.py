"""A critic as a chain of matrices and activations, which the tighter certificates take apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ganlab.functional import named_weights
from ganlab.lazy import keras
from ganlab.lipschitz.constants import ACTIVATIONS, Unknown

if TYPE_CHECKING:
    Weights = Mapping[str, Any]

# The least slope of each activation; the largest is that of `ACTIVATIONS`.
_LEAST = {"linear": 1.0, "silu": -0.099841, "gelu": -0.128906, "mish": -0.113165, "hard_silu": -0.5}
_NOT_ELEMENTWISE = ("softmax",)
# Explicit matrices of convolutions and poolings: at most this many numbers.
_LARGEST = 2**24


@dataclass(frozen=True)
class Stage:
    """One step `x -> activation(matrix x + bias)` of a chain, in float64.

    Attributes:
        matrix: `(units, inputs)`.
        bias: `(units,)`.
        lower: The least slope of each unit's activation, `(units,)`.
        upper: The largest, likewise.
        group: Above 1, the activation sorts groups of this many neighbours, and `lower` and `upper` are -1 and 1.
        kink: For a piecewise linear activation with one kink at zero, its slope below; the slope above is 1.
        apply: The activation, on arrays; None where intervals cannot be pushed through it.
    """

    matrix: np.ndarray
    bias: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    group: int = 1
    kink: float | None = None
    apply: Callable[[np.ndarray], np.ndarray] | None = None

    @property
    def centre(self) -> np.ndarray:
        """The middle of each unit's slopes, `(units,)`."""
        return (self.lower + self.upper) / 2

    @property
    def radius(self) -> np.ndarray:
        """Half the width of each unit's slopes, `(units,)`."""
        return (self.upper - self.lower) / 2


@dataclass(frozen=True)
class Chain:
    """A critic `x -> last activation(...) + bias`.

    Attributes:
        stages: The steps before the last matrix.
        last: The weights of the score, `(units,)`.
        bias: Its bias.
    """

    stages: tuple[Stage, ...]
    last: np.ndarray
    bias: float

    @property
    def inputs(self) -> int:
        """The number of input numbers."""
        return int(self.stages[0].matrix.shape[1] if self.stages else self.last.shape[0])


def chain_of(critic: keras.Model, weights: Weights) -> Chain:
    """The chain of a critic without branches, with these weights.

    Args:
        critic: A built model of one input and one score.
        weights: Its effective weights, by the names of `ganlab.functional.named_weights`.

    Returns:
        The chain.

    Raises:
        Unknown: The critic branches, or a layer is neither linear nor an activation that is known; the message names
            it.
    """
    names = {id(variable): name for name, variable in named_weights(critic).items()}

    def value(variable: Any) -> np.ndarray:
        name = names.get(id(variable))
        return np.asarray(variable if name is None else weights[name], np.float64)

    if len(getattr(critic, "inputs", None) or []) != 1 or len(critic.outputs) != 1:
        raise Unknown("it has several inputs or outputs, or cannot be followed")
    size = math.prod(tuple(critic.inputs[0].shape[1:]))
    matrix: np.ndarray | None = None  # the identity
    bias, stages = np.zeros(size), list[Stage]()
    for layer, shape, reached in _in_line(critic):
        try:
            linear = _linear(layer, shape, math.prod(reached), value)
            if linear is not None and linear[0] is not None:
                bias = linear[0] @ bias + linear[1]
                matrix = linear[0] if matrix is None else linear[0] @ matrix
            activation = layer if linear is None else getattr(layer, "activation", keras.activations.linear)
            made = _activation(activation, math.prod(reached), reached[-1])
        except Unknown as reason:
            raise Unknown(f"layer {layer.name!r} ({type(layer).__name__}): {reason}") from None
        if made is not None:
            stages.append(replace(made, matrix=np.eye(len(bias)) if matrix is None else matrix, bias=bias))
            matrix, bias = None, np.zeros(len(bias))
    if matrix is None or matrix.shape[0] != 1:
        raise Unknown("its last layer is not a linear one with one unit")
    return Chain(tuple(stages), matrix[0], float(bias[0]))


def _in_line(model: Any) -> Iterator[tuple[Any, tuple[int, ...], tuple[int, ...]]]:
    """The layers from input to output with the shapes of their inputs and outputs, nested models taken apart."""
    line, tensor = [], model.outputs[0]
    while True:
        operation, number, _ = tensor._keras_history
        node = operation._inbound_nodes[number]
        if not node.input_tensors:
            break
        if len(node.input_tensors) != 1 or len(node.outputs) != 1:
            raise Unknown(f"layer {operation.name!r} ({type(operation).__name__}) joins branches")
        after, tensor = tensor, node.input_tensors[0]
        line.append((operation, tuple(tensor.shape[1:]), tuple(after.shape[1:])))
    for layer, shape, reached in reversed(line):
        if not isinstance(layer, keras.Layer):
            raise Unknown(f"{layer.name!r} is an operation outside a layer")
        if isinstance(layer, keras.Model):
            yield from _in_line(layer)
        else:
            yield layer, shape, reached


def _linear(
    layer: Any, shape: tuple[int, ...], units: int, value: Callable[[Any], np.ndarray]
) -> tuple[np.ndarray | None, np.ndarray] | None:
    """A linear layer as a matrix, None for the identity, and a bias; None for another layer."""
    from ganlab import layers as ours  # here, because it imports Keras

    layers = keras.layers
    if type(layer) is layers.Dense and len(shape) == 1:
        kernel = value(layer.kernel)
        return kernel.T, value(layer.bias) if layer.use_bias else np.zeros(kernel.shape[1])
    reshaping = (layers.Flatten, layers.Reshape, layers.Identity, layers.InputLayer)
    size = math.prod(shape)
    if type(layer) in reshaping:
        return None, np.zeros(size)
    known = (
        *(layers.Dense, layers.Conv1D, layers.Conv2D, layers.DepthwiseConv2D, layers.Permute, layers.Rescaling),
        *(layers.AveragePooling1D, layers.AveragePooling2D, layers.GlobalAveragePooling1D),
        *(layers.GlobalAveragePooling2D, layers.ZeroPadding2D, layers.Cropping2D),
        *(ours.AOLDense, ours.AOLConv2D, ours.SkewConv2D, ours.OrthogonalConv2D),
        *(ours.LayerCentering, ours.InvertibleDownsampling, ours.ScaledAveragePooling2D),
    )
    if type(layer) not in known:
        return None
    if units * size > _LARGEST:
        raise Unknown(f"its matrix, {units} by {size}, is too large to write out")
    return _written_out(layer, shape, value, units)


def _written_out(
    layer: Any, shape: tuple[int, ...], value: Callable[[Any], np.ndarray], units: int
) -> tuple[np.ndarray, np.ndarray]:
    """The matrix and the bias of any linear layer, from its outputs at zero and at each unit vector."""
    copy = type(layer).from_config({**layer.get_config(), "dtype": "float64", "name": None})
    if hasattr(copy, "activation"):
        copy.activation = keras.activations.linear
    copy.build((None, *shape))
    for mine, own in zip(copy.weights, layer.weights, strict=True):
        mine.assign(value(own))
    size = math.prod(shape)
    bias = np.asarray(copy(np.zeros((1, *shape)))).reshape(units)
    rows = [
        np.asarray(copy(np.eye(size)[i : i + 256].reshape(-1, *shape))).reshape(-1, units) for i in range(0, size, 256)
    ]
    return (np.concatenate(rows) - bias).T, bias


def _activation(activation: Any, units: int, width: int) -> Stage | None:
    """A stage with the slopes of an activation, its matrix still to be set; None for one that does nothing."""
    from ganlab import layers as ours  # here, because it imports Keras

    layers = keras.layers
    kind = type(activation)
    if activation is keras.activations.linear or kind is ours.GaussianNoise:
        return None
    if kind in (ours.GroupSort, ours.FullSort):
        group = activation.group_size if kind is ours.GroupSort else width
        return _stage(units, -1.0, 1.0, group=group)
    if kind is ours.Dropout:
        return _stage(units, 0.0, 1 / (1 - activation.rate))
    if kind is layers.LeakyReLU:
        return _rectifier(units, float(activation.negative_slope))
    if kind is layers.ReLU and activation.max_value is None and not activation.threshold:
        return _rectifier(units, float(activation.negative_slope))
    if kind is layers.Activation:
        return _activation(activation.activation, units, width)
    for name, largest in ACTIVATIONS.items():
        function = getattr(keras.activations, name)
        if activation is function and name not in _NOT_ELEMENTWISE:
            if name in ("relu", "leaky_relu"):
                return _rectifier(units, 0.0 if name == "relu" else 0.2)
            increasing = _LEAST.get(name, 0.0) >= 0
            return _stage(units, _LEAST.get(name, 0.0), largest, apply=_on_arrays(function) if increasing else None)
    name = getattr(activation, "__name__", kind.__name__)
    raise Unknown(f"{name!r} is neither linear nor an activation whose slopes are known")


def _stage(units: int, lower: float, upper: float, **more: Any) -> Stage:
    nothing = np.zeros(0)
    return Stage(nothing, nothing, np.full(units, lower), np.full(units, upper), **more)


def _rectifier(units: int, below: float) -> Stage:
    apply = (lambda x: np.where(x > 0, x, below * x)) if below >= 0 else None
    return _stage(units, min(below, 1.0), max(below, 1.0), kink=below, apply=apply)


def _on_arrays(function: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.asarray(function(keras.ops.convert_to_tensor(x, "float64")))
