"""Networks of foreign files as lists of layers, checked before TensorFlow starts and built as Keras models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ganlab.lazy import keras

Shape = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]

# Numbers of one tensor, its axes, layers of one network, and numbers of all weights of a small file.
LARGEST, _MOST_AXES, _MOST, _ROOM = 2**24, 64, 2000, 2**28


class UnreadableError(Exception):
    """A file cannot be used; the message is the reason."""


@dataclass(frozen=True)
class Layer:
    """A layer of Keras: its class, the layers before it, its settings, its weights, and the shape of its output."""

    kind: str
    inputs: tuple[int, ...]
    settings: dict[str, Any]
    weights: tuple[np.ndarray, ...]
    shape: Shape


@dataclass(frozen=True)
class Value:
    """A tensor of the file.

    Attributes:
        layer: The layer that computes it, channels last.
        first: Whether the file has it with channels first.
        pending: A linear layer between `layer` and it, not added yet: a bias, or a factor that follows, joins it.
    """

    layer: int
    first: bool = False
    pending: Layer | None = None


@dataclass
class Blueprint:
    """The layers of a network that is read from a file of `bytes` bytes, each made by a method."""

    bytes: int
    layers: list[Layer] = field(default_factory=list)
    held: int = 0

    def hold(self, numbers: int) -> None:
        """Counts the numbers of a weight that is made, before that where it may be larger than what it is made from.

        Raises:
            UnreadableError: Those of all weights are too many.
        """
        self.held += numbers
        if self.held > _ROOM + 2 * self.bytes:
            raise UnreadableError(f"its weights become {self.held:,} numbers, too many for its size")

    def add(self, kind: str, inputs: Sequence[int], shape: Shape, *weights: np.ndarray, **settings: Any) -> int:
        """Adds a layer and returns its number.

        Raises:
            UnreadableError: Its output or the network is too large, or a weight is not finite.
        """
        large = len(shape) > _MOST_AXES or min(shape, default=1) < 1 or math.prod(shape) > LARGEST
        if large or len(self.layers) >= _MOST:
            raise UnreadableError(
                f"layer {len(self.layers) + 1} ({kind}) has the shape {shape[:8]}, or there are too many"
            )
        if not all(np.isfinite(each).all() for each in weights):
            raise UnreadableError(f"layer {len(self.layers) + 1} ({kind}) has weights that are not finite")
        self.layers.append(Layer(kind, tuple(inputs), settings, weights, shape))
        return len(self.layers) - 1

    def input(self, shape: Shape) -> Value:
        """An input of this shape, without the batch's axis."""
        return Value(self.add("Input", (), shape))

    def shape(self, value: Value) -> Shape:
        """The shape of a value as the file has it, without the batch's axis."""
        *space, channels = (value.pending or self.layers[value.layer]).shape
        return (channels, *space) if value.first else (*space, channels)

    def settled(self, value: Value, *, first: bool | None = None) -> Value:
        """The value with its pending layer added, and with this order of axes."""
        if value.pending is not None:
            p = value.pending
            value = Value(self.add(p.kind, p.inputs, p.shape, *p.weights, **p.settings), value.first)
        if first is None or first == value.first:
            return value
        rank = len(self.layers[value.layer].shape)
        axes = [*range(2, rank + 1), 1] if first else [rank, *range(1, rank)]
        return replace(self.permuted(value, axes), first=first)

    def permuted(self, value: Value, axes: Sequence[int]) -> Value:
        """The stored tensor with its axes in this order, counted from 1."""
        shape = self.layers[value.layer].shape
        return self._after(value, "Permute", tuple(shape[axis - 1] for axis in axes), dims=list(axes))

    def _after(self, value: Value, kind: str, shape: Shape, **settings: Any) -> Value:
        return Value(self.add(kind, (value.layer,), shape, **settings), value.first)

    def dense(self, value: Value, kernel: np.ndarray, bias: np.ndarray | None = None) -> Value:
        """`x -> x kernel + bias`; the kernel is `(inputs, outputs)`."""
        value = self.settled(value, first=False)
        inputs, outputs = _matrix(kernel).shape
        shape = self.layers[value.layer].shape
        if shape != (inputs,):
            raise UnreadableError(f"a matrix of {kernel.shape} multiplies a tensor of shape {shape}")
        settings = {"units": outputs}
        self.hold(kernel.size)
        pending = Layer("Dense", (value.layer,), settings, (kernel, _bias(bias, outputs)), (outputs,))
        return replace(value, pending=pending)

    def convolution(
        self,
        value: Value,
        kernel: np.ndarray,
        bias: np.ndarray | None = None,
        *,
        strides: Shape,
        pads: Pairs | str,
        dilation: Shape | None = None,
        groups: int = 1,
    ) -> Value:
        """A convolution; the kernel is `(*taps, inputs, outputs)`, and pads are numbers of zeros, or "same"."""
        value = self.settled(value)
        shape, taps, dilation = self.layers[value.layer].shape, kernel.shape[:-2], dilation or (1,) * (kernel.ndim - 2)
        ranks = {len(shape) - 1, len(taps), len(strides), len(dilation)}
        if ranks not in ({1}, {2}) or groups < 1 or shape[-1] != kernel.shape[-2] * groups or kernel.shape[-1] % groups:
            raise UnreadableError(
                f"a kernel of {kernel.shape} with {groups} groups convolves a tensor of shape {shape}"
            )
        reach = [d * (t - 1) + 1 for d, t in zip(dilation, taps, strict=True)]
        value, padding, space = self._padded(value, reach, strides, pads)
        settings = {"filters": kernel.shape[-1], "kernel_size": taps, "strides": strides, "padding": padding}
        if set(dilation) != {1}:
            settings["dilation_rate"] = dilation
        if groups > 1:
            settings["groups"] = groups
        out = (*space, kernel.shape[-1])
        self.hold(kernel.size)
        weights = kernel, _bias(bias, kernel.shape[-1])
        return replace(value, pending=Layer(f"Conv{len(taps)}D", (value.layer,), settings, weights, out))

    def average_pool(self, value: Value, size: Shape, *, strides: Shape, pads: Pairs | str) -> Value:
        """Means over windows; zeros at the border are not counted."""
        value = self.settled(value)
        value, padding, space = self._padded(value, size, strides, pads, zeros=False)
        shape = (*space, self.layers[value.layer].shape[-1])
        kind = f"AveragePooling{len(size)}D"
        return self._after(value, kind, shape, pool_size=size, strides=strides, padding=padding)

    def _padded(
        self, value: Value, reach: Sequence[int], strides: Shape, pads: Pairs | str, *, zeros: bool = True
    ) -> tuple[Value, str, Shape]:
        """The value with zeros around it, what Keras calls the padding, and the sides of the output."""
        *sides, channels = self.layers[value.layer].shape
        if len(sides) != len(reach) or len(strides) != len(reach) or min(*strides, *reach) < 1:
            raise UnreadableError(f"windows {tuple(reach)} with strides {strides} slide over {tuple(sides)}")
        same = []
        for side, window, stride in zip(sides, reach, strides, strict=True):
            total = max((-(-side // stride) - 1) * stride + window - side, 0)
            same.append((total // 2, total - total // 2))
        given = same if isinstance(pads, str) else pads
        pads = tuple((before, after) for before, after in given)
        if len(pads) != len(sides) or not all(0 <= each <= LARGEST for pair in pads for each in pair):
            raise UnreadableError(f"the paddings {pads} do not suit a tensor of shape {(*sides, channels)}")
        wide = tuple(side + sum(pair) for side, pair in zip(sides, pads, strict=True))
        space = tuple((side - window) // stride + 1 for side, window, stride in zip(wide, reach, strides, strict=True))
        if pads == tuple(same) and space == tuple(
            -(-side // stride) for side, stride in zip(sides, strides, strict=True)
        ):
            return value, "valid" if not np.any(pads) else "same", space
        if np.any(pads):
            if not zeros:
                raise UnreadableError(f'means with the paddings {pads} are not known; known are none and "same"')
            value = self._after(value, f"ZeroPadding{len(sides)}D", (*wide, channels), padding=pads)
        return value, "valid", space

    def scaled(self, value: Value, factor: np.ndarray | float, shift: np.ndarray | float = 0.0) -> Value:
        """`factor x + shift` with one number for each channel, joined with a linear layer before it."""
        if value.pending is None or value.pending.kind == "ProjectionHead":
            value = self.settled(value)
            shape = self.layers[value.layer].shape
            if len(shape) == 1:
                self.hold(shape[0] ** 2)
                value = self.dense(value, np.eye(shape[0], dtype=np.float32))
            else:
                taps = (1,) * (len(shape) - 1)
                kernel, settings = np.ones((*taps, shape[-1], 1), np.float32), {"kernel_size": taps, "strides": taps}
                weights = kernel, np.zeros(shape[-1], np.float32)
                pending = Layer(f"DepthwiseConv{len(taps)}D", (value.layer,), settings, weights, shape)
                value = replace(value, pending=pending)
        assert value.pending is not None
        kernel, bias = value.pending.weights
        numbers = [np.broadcast_to(np.asarray(x, np.float64).ravel(), bias.shape) for x in (factor, shift)]
        wide = numbers[0][:, None] if value.pending.kind.startswith("Depthwise") else numbers[0]
        self.hold(kernel.size)
        weights = (kernel * wide).astype(kernel.dtype), (bias * numbers[0] + numbers[1]).astype(bias.dtype)
        return replace(value, pending=replace(value.pending, weights=weights))

    def normalized(self, value: Value, statistics: Sequence[np.ndarray], epsilon: float) -> Value:
        """A batch normalization with its gamma, beta, mean and variance."""
        gamma, beta, mean, variance = (each.astype(np.float64).ravel() for each in statistics)
        factor = gamma / np.sqrt(variance + epsilon)
        return self.scaled(value, factor, beta - factor * mean)

    def projection(self, value: Value, scores: Layer | None, label: Value, table: np.ndarray) -> Value:
        """The scores of features `x psi + b + <x, table[label]>`, with psi and b of a pending dense layer, or none."""
        value, label = self.settled(value), self.settled(label)
        width = self.layers[value.layer].shape[-1]
        psi = scores.weights if scores else (np.zeros((width, 1), np.float32), np.zeros(1, np.float32))
        layer = Layer("ProjectionHead", (value.layer, label.layer), {}, (*psi, table), (1,))
        return replace(value, pending=layer)

    def elementwise(self, value: Value, kind: str, **settings: Any) -> Value:
        """An activation."""
        value = self.settled(value)
        return self._after(value, kind, self.layers[value.layer].shape, **settings)

    def global_average(self, value: Value) -> Value:
        """Means over all pixels, `(channels,)`."""
        value = self.settled(value)
        *space, channels = self.layers[value.layer].shape
        return replace(self._after(value, f"GlobalAveragePooling{len(space)}D", (channels,)), first=False)

    def reshaped(self, value: Value, shape: Shape) -> Value:
        """The same numbers in another shape, -1 for what is left."""
        value = self.settled(value, first=False)
        before = self.layers[value.layer].shape
        if shape.count(-1) == 1:
            known = -math.prod(shape)
            shape = tuple(math.prod(before) // known if side == -1 and known else side for side in shape)
        if math.prod(shape) != math.prod(before):
            raise UnreadableError(f"a tensor of shape {before} cannot take the shape {shape}")
        if shape == before:
            return value
        if len(shape) == 1:
            return self._after(value, "Flatten", shape)
        return self._after(value, "Reshape", shape, target_shape=list(shape))

    def joined(self, values: Sequence[Value], kind: str) -> Value:
        """The sum, the difference or the concatenation along channels of several values."""
        values = [self.settled(value, first=values[0].first) for value in values]
        shapes = [self.layers[value.layer].shape for value in values]
        shape = shapes[0]
        if kind == "Concatenate":
            shape = (*shape[:-1], sum(each[-1] for each in shapes))
        if any(each[:-1] != shape[:-1] for each in shapes) or (kind != "Concatenate" and len(set(shapes)) > 1):
            raise UnreadableError(f"{kind} joins tensors of the shapes {', '.join(map(str, shapes))}")
        return Value(self.add(kind, [value.layer for value in values], shape), values[0].first)

    def built(self, score: Value) -> keras.Model:
        """The Keras model with this score."""
        from ganlab.layers import ProjectionHead  # here, because it imports Keras

        last, tensors, inputs = self.settled(score).layer, list[Any](), list[Any]()
        for layer in self.layers:
            sources = [tensors[i] for i in layer.inputs]
            if layer.kind == "Input":
                tensors.append(keras.Input(layer.shape))
                inputs.append(tensors[-1])
                continue
            kind = ProjectionHead if layer.kind == "ProjectionHead" else getattr(keras.layers, layer.kind)
            made = kind(**layer.settings, dtype="float32")
            tensors.append(made(sources[0] if len(sources) == 1 else sources))
            if layer.weights:
                made.set_weights(layer.weights)
        model = keras.Model(inputs, tensors[last])
        if tuple(model.output_shape[1:]) != (1,):
            raise UnreadableError(f"its output has the shape {model.output_shape[1:]}, not one score")
        return model


def _matrix(kernel: np.ndarray) -> np.ndarray:
    if kernel.ndim != 2:
        raise UnreadableError(f"a dense layer has a kernel of shape {kernel.shape}, not a matrix")
    return kernel


def _bias(bias: np.ndarray | None, units: int) -> np.ndarray:
    if bias is None:
        return np.zeros(units, np.float32)
    if bias.size != units:
        raise UnreadableError(f"a layer of {units} units has a bias of shape {bias.shape}")
    return bias.reshape(units)
