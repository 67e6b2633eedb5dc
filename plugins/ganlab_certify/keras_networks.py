"""Keras models as networks of linear maps and activations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ganlab.functional import named_weights
from ganlab.lazy import keras
from ganlab.lipschitz import ACTIVATION_SLOPES
from ganlab_certify.chains import Stage, UnsuitableError
from ganlab_certify.networks import Affine, Network, Node

# Numbers of the matrix of a layer, other than zeros; and of that of one which is written out column by column.
_MOST, _LARGEST = 2**25, 2**24


def network_of(critic: keras.Model, weights: Mapping[str, Any]) -> Network:
    """A critic with these weights, of which each label is as good as any other.

    Args:
        critic: A built model of an example, and of a label as ones and zeros if it has a second input, and of one
            score, which is called "score" if there are other outputs.
        weights: Its effective weights, by the names of `ganlab.functional.named_weights`.

    Returns:
        The network.

    Raises:
        UnsuitableError: A layer is neither linear nor an activation that is known; the message names it.
    """
    names = {id(variable): name for name, variable in named_weights(critic).items()}

    def value(variable: Any) -> np.ndarray:
        name = names.get(id(variable))
        return np.asarray(variable if name is None else weights[name], np.float64)

    inputs = list(getattr(critic, "inputs", None) or [])
    if len(inputs) not in (1, 2) or (len(inputs) == 2 and len(inputs[1].shape) != 2):
        raise UnsuitableError("it has other inputs than an example and a label, or cannot be followed")
    size, classes = math.prod(tuple(inputs[0].shape[1:])), 1 if len(inputs) == 1 else int(inputs[1].shape[1])
    walk = _Walk(value, size)
    given = [Affine({0: sparse.identity(size, format="csr")}, np.zeros((1, size)))]
    outputs = walk.model(critic, [*given, *([Affine({}, np.eye(classes))] if classes > 1 or len(inputs) == 2 else [])])
    named = getattr(critic, "_outputs_struct", None)
    at = 0 if not isinstance(named, dict) else list(named).index("score") if "score" in named else -1
    score = outputs[at]
    if at < 0 or score.bias.shape[1] != 1:
        raise UnsuitableError("its output is not one score")
    return Network(tuple(inputs[0].shape[1:]), tuple(walk.nodes), score, classes)


class _Walk:
    """Follows a model's tensors from its inputs, and keeps the nodes that it meets."""

    def __init__(self, value: Callable[[Any], np.ndarray], size: int) -> None:
        self._value, self.nodes, self._sizes = value, list[Node](), [size]

    def model(self, model: Any, given: Sequence[Affine]) -> list[Affine]:
        """The outputs of a model at these inputs."""
        reached = {_origin(tensor): affine for tensor, affine in zip(model.inputs, given, strict=True)}

        def follow(tensor: Any) -> Affine:
            if _origin(tensor) not in reached:
                operation, number, _ = tensor._keras_history
                node = operation._inbound_nodes[number]
                if not node.input_tensors:
                    raise UnsuitableError("it has an input beside those of the model")
                sources = [follow(source) for source in node.input_tensors]
                for output, affine in zip(node.outputs, self._called(operation, node, sources), strict=True):
                    reached[_origin(output)] = affine
            return reached[_origin(tensor)]

        return [follow(output) for output in model.outputs]

    def _called(self, layer: Any, node: Any, sources: list[Affine]) -> list[Affine]:
        if isinstance(layer, keras.Model):
            return self.model(layer, sources)
        shapes = [tuple(tensor.shape[1:]) for tensor in node.input_tensors]
        reached = tuple(node.outputs[0].shape[1:])
        try:
            if not isinstance(layer, keras.Layer) and type(layer).__name__ not in ("Add", "Subtract"):
                raise UnsuitableError("it is an operation outside a layer")
            if len(sources) > 1:
                return [self._joined(layer, sources, shapes, reached)]
            linear = _linear(layer, shapes[0], reached, self._value)
            affine = sources[0] if linear is None or linear[0] is None else sources[0].times(*linear)
            activation = layer if linear is None else getattr(layer, "activation", keras.activations.linear)
            stage = _activation(activation, math.prod(reached), reached[-1])
            return [affine if stage is None else self._node(affine, stage, reached)]
        except UnsuitableError as reason:
            raise UnsuitableError(f"layer {layer.name!r} ({type(layer).__name__}): {reason}") from None

    def _node(self, affine: Affine, stage: Stage | None, shape: tuple[int, ...]) -> Affine:
        if not affine.of and stage is not None:
            raise UnsuitableError("it is an activation of labels alone")
        self.nodes.append(Node(affine, stage, shape))
        size = affine.bias.shape[1]
        self._sizes.append(size)
        return Affine({len(self.nodes): sparse.identity(size, format="csr")}, np.zeros((1, size)))

    def _joined(
        self, layer: Any, sources: list[Affine], shapes: list[tuple[int, ...]], reached: tuple[int, ...]
    ) -> Affine:
        """What a layer makes of several tensors."""
        from ganlab import layers as ours  # here, because it imports Keras

        kind = type(layer).__name__
        if type(layer) is ours.ProjectionHead and not sources[1].of:
            rows = self._value(layer.score.kernel)[:, 0] + sources[1].bias @ self._value(layer.label_embedding.kernel)
            bias = (rows * sources[0].bias).sum(axis=1, keepdims=True) + self._value(layer.score.bias)
            table = sparse.csr_matrix(rows)
            return Affine({at: table @ matrix for at, matrix in sources[0].of.items()}, bias)
        if kind in ("Add", "Subtract", "Average") and len(set(shapes)) == 1:
            # Vectors of their own, because what a sum is made of need not be kept until a later block.
            total, *others = [self._short(affine, shape) for affine, shape in zip(sources, shapes, strict=True)]
            for other in others:
                total = total.plus(other, -1.0 if kind == "Subtract" else 1.0)
            if kind == "Average":
                total = total.times(sparse.identity(total.bias.shape[1], format="csr") / len(sources))
            return self._node(total, None, reached)
        if kind == "Concatenate" and layer.axis in (-1, len(reached)):
            starts = np.cumsum([0, *(shape[-1] for shape in shapes)])
            total = Affine({}, np.zeros((1, math.prod(reached))))
            for affine, shape, start in zip(sources, shapes, starts, strict=False):
                size = math.prod(shape)
                rows = np.arange(size) // shape[-1] * reached[-1] + start + np.arange(size) % shape[-1]
                spread = (np.ones(size), (rows, np.arange(size)))
                total = total.plus(affine.times(sparse.csr_matrix(spread, (math.prod(reached), size))))
            return total
        raise UnsuitableError("it joins branches otherwise than by sums and concatenations")

    def _short(self, affine: Affine, shape: tuple[int, ...]) -> Affine:
        """The affine function as a vector of its own where that is shorter than what it is made of."""
        size = affine.bias.shape[1]
        return self._node(affine, None, shape) if any(size < self._sizes[at] for at in affine.of) else affine


def _origin(tensor: Any) -> tuple[int, int, int]:
    operation, node, index = tensor._keras_history
    return id(operation), node, index


def _linear(
    layer: Any, shape: tuple[int, ...], reached: tuple[int, ...], value: Callable[[Any], np.ndarray]
) -> tuple[Any, np.ndarray | None] | None:
    """A linear layer as a sparse matrix, None for the identity, and a bias; None for another layer."""
    from ganlab import layers as ours  # here, because it imports Keras

    layers = keras.layers
    if type(layer) is layers.Dense and len(shape) == 1:
        return sparse.csr_matrix(value(layer.kernel).T), value(layer.bias) if layer.use_bias else None
    if type(layer) in (layers.Flatten, layers.Reshape, layers.Identity, layers.InputLayer):
        return None, None
    first = getattr(layer, "data_format", None) == "channels_first"
    if type(layer) in (layers.Conv1D, layers.Conv2D) and layer.padding != "causal" and not first:
        kernel, groups = value(layer.kernel), np.arange(reached[-1]) // (reached[-1] // layer.groups)
        matrix = _convolution(kernel, groups * kernel.shape[-2], layer, layer.dilation_rate, shape, reached)
        return matrix, np.tile(value(layer.bias), math.prod(reached[:-1])) if layer.use_bias else None
    if type(layer) in (layers.AveragePooling1D, layers.AveragePooling2D) and not first:
        kernel = np.ones((*layer.pool_size, 1, shape[-1]))
        matrix = _convolution(kernel, np.arange(shape[-1]), layer, (1,) * len(layer.pool_size), shape, reached)
        return sparse.diags_array(1 / np.asarray(matrix.sum(axis=1)).ravel()) @ matrix, None
    if type(layer) in (layers.GlobalAveragePooling1D, layers.GlobalAveragePooling2D) and not first:
        pixels = math.prod(shape[:-1])
        means = sparse.hstack([sparse.identity(shape[-1], format="csr")] * pixels, format="csr")
        return means / pixels, None
    known = (
        *(layers.Dense, layers.Conv1D, layers.Conv2D, layers.DepthwiseConv2D, layers.Permute, layers.Rescaling),
        *(layers.AveragePooling1D, layers.AveragePooling2D, layers.GlobalAveragePooling1D, layers.UpSampling2D),
        *(layers.GlobalAveragePooling2D, layers.ZeroPadding1D, layers.ZeroPadding2D, layers.Cropping2D),
        *(ours.LayerCentering, ours.BatchLipNorm, ours.InvertibleDownsampling, ours.ScaledAveragePooling2D),
    )
    if type(layer) not in known and not hasattr(layer, "effective_kernel"):
        return None
    units, size = math.prod(reached), math.prod(shape)
    if units * size > _LARGEST:
        raise UnsuitableError(f"its matrix, {units} by {size}, is too large to write out")
    matrix, bias = _written_out(layer, shape, value, units)
    return sparse.csr_matrix(matrix), bias


def _convolution(
    kernel: np.ndarray,
    seen: np.ndarray,
    layer: Any,
    dilation: Sequence[int],
    shape: tuple[int, ...],
    reached: tuple[int, ...],
) -> Any:
    """The sparse matrix of a convolution with zeros at the border; its channel c sees those from `seen[c]` on."""
    *taps, inputs, outputs = kernel.shape
    if kernel.size * math.prod(reached[:-1]) > _MOST:
        raise UnsuitableError(f"its matrix, {math.prod(reached)} by {math.prod(shape)}, is too large to write out")
    places = np.arange(math.prod(shape[:-1])).reshape(shape[:-1])
    for axis, (length, count, stride, gap, width) in enumerate(
        zip(shape, reached, layer.strides, dilation, taps, strict=False)
    ):
        reach = gap * (width - 1) + 1
        before = max((count - 1) * stride + reach - length, 0) // 2 if layer.padding == "same" else 0
        at = np.arange(count)[:, None] * stride - before + gap * np.arange(width)
        taken = np.take(places, at.clip(0, length - 1), axis=axis)
        outside = ((at < 0) | (at >= length)).reshape(at.shape + (1,) * (taken.ndim - axis - 2))
        places = np.moveaxis(np.where(outside, -1, taken), axis + 1, -1)  # -1 is outside
    at = places.reshape(-1, math.prod(taps))[:, :, None, None]
    entries = np.broadcast_arrays(
        kernel.reshape(1, -1, inputs, outputs),
        np.arange(math.prod(reached)).reshape(-1, 1, 1, outputs),
        at * shape[-1] + np.arange(inputs)[:, None] + seen,
        at >= 0,
    )
    numbers, rows, columns = (each[entries[3]] for each in entries[:3])
    return sparse.csr_matrix((numbers, (rows, columns)), (math.prod(reached), math.prod(shape)))


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
    return _stage(units, min(below, 1.0), max(below, 1.0), kink=np.full(units, below), apply=apply)


def _on_arrays(function: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.asarray(function(keras.ops.convert_to_tensor(x, "float64")))
