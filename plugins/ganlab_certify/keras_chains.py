"""Keras models as chains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ganlab.functional import named_weights
from ganlab.lazy import keras
from ganlab.lipschitz import ACTIVATION_SLOPES
from ganlab_certify.chains import Chain, Stage, UnsuitableError

# Explicit matrices of convolutions and poolings: at most this many numbers.
_LARGEST = 2**24


def chain_of(critic: keras.Model, weights: Mapping[str, Any]) -> Chain:
    """The chain of a critic without branches, with these weights.

    Args:
        critic: A built model of one input and one score.
        weights: Its effective weights, by the names of `ganlab.functional.named_weights`.

    Returns:
        The chain.

    Raises:
        UnsuitableError: The critic branches, or a layer is neither linear nor an activation that is known; the message
            names it.
    """
    names = {id(variable): name for name, variable in named_weights(critic).items()}

    def value(variable: Any) -> np.ndarray:
        name = names.get(id(variable))
        return np.asarray(variable if name is None else weights[name], np.float64)

    if len(getattr(critic, "inputs", None) or []) != 1 or len(critic.outputs) != 1:
        raise UnsuitableError("it has several inputs or outputs, or cannot be followed")
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
        except UnsuitableError as reason:
            raise UnsuitableError(f"layer {layer.name!r} ({type(layer).__name__}): {reason}") from None
        if made is not None:
            stages.append(replace(made, matrix=np.eye(len(bias)) if matrix is None else matrix, bias=bias))
            matrix, bias = None, np.zeros(len(bias))
    if matrix is None or matrix.shape[0] != 1:
        raise UnsuitableError("its last layer is not a linear one with one unit")
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
            raise UnsuitableError(f"layer {operation.name!r} ({type(operation).__name__}) joins branches")
        after, tensor = tensor, node.input_tensors[0]
        line.append((operation, tuple(tensor.shape[1:]), tuple(after.shape[1:])))
    for layer, shape, reached in reversed(line):
        if not isinstance(layer, keras.Layer):
            raise UnsuitableError(f"{layer.name!r} is an operation outside a layer")
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
    size = math.prod(shape)
    if type(layer) in (layers.Flatten, layers.Reshape, layers.Identity, layers.InputLayer):
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
        raise UnsuitableError(f"its matrix, {units} by {size}, is too large to write out")
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
    plain = kind is layers.ReLU and activation.max_value is None and not activation.threshold
    if plain or kind is layers.LeakyReLU:
        return _rectifier(units, float(activation.negative_slope))
    if kind is layers.Activation:
        return _activation(activation.activation, units, width)
    for name, (least, largest) in ACTIVATION_SLOPES.items():
        function = getattr(keras.activations, name)
        if activation is function:
            if name in ("relu", "leaky_relu"):
                return _rectifier(units, least)
            return _stage(units, least, largest, apply=_on_arrays(function) if least >= 0 else None)
    name = getattr(activation, "__name__", kind.__name__)
    raise UnsuitableError(f"{name!r} is neither linear nor an activation whose slopes are known")


def _stage(units: int, lower: float, upper: float, **more: Any) -> Stage:
    return Stage(np.zeros(0), np.zeros(0), np.full(units, lower), np.full(units, upper), **more)


def _rectifier(units: int, below: float) -> Stage:
    apply = (lambda x: np.where(x > 0, x, below * x)) if below >= 0 else None
    return _stage(units, min(below, 1.0), max(below, 1.0), kink=below, apply=apply)


def _on_arrays(function: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.asarray(function(keras.ops.convert_to_tensor(x, "float64")))
