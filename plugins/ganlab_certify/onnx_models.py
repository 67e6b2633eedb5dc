"""Networks of ONNX files as blueprints."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ganlab.lazy import require
from ganlab_certify.blueprints import Blueprint, Shape, UnreadableError, Value

_PLAIN = {"Relu": "ReLU", "Tanh": "Activation", "Sigmoid": "Activation", "Softplus": "Activation"}
_FOLDED = 2**22  # numbers of a constant that is computed here
# What may be done to what depends on labels alone, row by row, and how it may join what depends on examples.
_ROWS = ("Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze", "Tile", "MatMul", "Add", "Concat")
_JOINING = ("Add", "Concat", "Mul", "Sub")
_Settings = Callable[[str, Any], Any]
_TYPES = {1: np.float32, 6: np.int32, 7: np.int64, 11: np.float64}


def read(data: bytes) -> tuple[Blueprint, Value]:
    """The network of an ONNX file, and its first output.

    Raises:
        UnreadableError: It is damaged, too large, or has an operation that is not known here; the message names it.
        MissingDependencyError: `onnx` is not installed.
    """
    onnx = require("onnx")
    graph = onnx.ModelProto.FromString(data).graph
    reader = _Reader(onnx, Blueprint(len(data)))
    for tensor in graph.initializer:
        reader.constants[tensor.name] = reader.array(tensor)
    for given in graph.input:
        if given.name not in reader.constants:
            kind = given.type.tensor_type
            shape = tuple(axis.dim_value for axis in kind.shape.dim)
            if kind.elem_type != onnx.TensorProto.FLOAT or len(shape) < 2 or 0 in shape[1:]:
                raise UnreadableError(f"input {given.name!r} is not of float32 (n, ...) with known sides, but {shape}")
            reader.enter(given.name, shape[1:])
    for node in graph.node:
        reader.follow(node)
    if not graph.output or graph.output[0].name not in reader.values:
        raise UnreadableError("its first output does not depend on an input")
    return reader.drawn, reader.values[graph.output[0].name]


class _Reader:
    """Follows the nodes of a graph.

    What depends on labels alone is a constant with a row for each class; `by_label` has the names of those. `products`
    are features times such a row.
    """

    def __init__(self, onnx: Any, drawn: Blueprint) -> None:
        self._onnx, self.drawn = onnx, drawn
        self.constants: dict[str, np.ndarray] = {}
        self.values: dict[str, Value] = {}
        self.products: dict[str, tuple[Value, np.ndarray]] = {}
        self.by_label, self._label = set[str](), Value(-1)
        self._room = 4 * _FOLDED + drawn.bytes  # numbers of all constants that are computed here

    def enter(self, name: str, shape: Shape) -> None:
        """Adds an input: of examples, or of labels as ones and zeros."""
        value = self.drawn.input(shape)
        if value.layer == 0:
            self.values[name] = value
        elif value.layer > 1 or len(shape) != 1 or shape[0] ** 2 > _FOLDED:
            raise UnreadableError(f"input {name!r} of shape {shape} is neither the first one nor one of labels")
        else:
            self._label, self.constants[name] = value, np.eye(shape[0], dtype=np.float32)
            self.by_label.add(name)

    def array(self, tensor: Any) -> np.ndarray:
        """A tensor of the file, whose size is checked before it is made."""
        dims = list(tensor.dims[:65])  # no array has more than 64
        if tensor.data_location or len(dims) > 64 or math.prod(dims) > 8 * tensor.ByteSize():
            raise UnreadableError(f"tensor {tensor.name!r} of {dims} is not in the file, or not all of it")
        return np.asarray(self._onnx.numpy_helper.to_array(tensor))

    def follow(self, node: Any) -> None:
        """Adds what a node computes."""
        try:
            self._follow(node)
        except UnreadableError as reason:
            raise UnreadableError(f"node {node.name!r} ({node.op_type}): {reason}") from None

    def _follow(self, node: Any) -> None:
        kind, names = node.op_type, [name for name in node.input if name]
        settings = {each.name: each for each in node.attribute}
        if node.domain not in ("", "ai.onnx"):
            raise UnreadableError(f"it is of the domain {node.domain!r}")
        labelled = kind != "Shape" and bool(self.by_label.intersection(names))
        if all(name in self.constants for name in names) or kind == "Shape":
            self.constants[node.output[0]] = folded = self._folded(kind, names, settings)
            if labelled:
                classes = self.drawn.layers[self._label.layer].shape[0]
                if kind not in _ROWS or names[0] not in self.by_label or folded.shape[:1] != (classes,):
                    raise UnreadableError("it mixes the labels of examples")
                self.by_label.add(node.output[0])
            return
        if labelled and kind not in _JOINING:
            raise UnreadableError("it depends on labels and on examples in a way that is not known")
        method = self._METHODS.get(kind)
        if kind in _PLAIN:
            name = {} if kind == "Relu" else {"activation": kind.lower()}
            self.values[node.output[0]] = self.drawn.elementwise(self.values[names[0]], _PLAIN[kind], **name)
        elif method is None:
            raise UnreadableError("the operation is not known")
        else:
            made = method(self, names, _settings(self._onnx, settings), node.output[0])
            if made is not None:
                self.values[node.output[0]] = made

    def _folded(self, kind: str, names: Sequence[str], attributes: dict[str, Any]) -> np.ndarray:
        """A constant of constants: what exporters compute shapes by, and transposed weights."""
        if kind == "Shape":
            known = self.constants.get(names[0])
            return np.array([1, *self.drawn.shape(self.values[names[0]])] if known is None else known.shape)
        given, settings = [self.constants[name] for name in names], _settings(self._onnx, attributes)
        if kind == "Constant":
            tensor = attributes.get("value")
            return self.array(tensor.t) if tensor is not None else np.asarray(settings(next(iter(attributes)), 0))
        axis, axes = settings("axis", 0), self._axes(names, settings, [0])
        made: dict[str, Callable[[], Any]] = {
            "Concat": lambda: np.concatenate(given, axis=axis),
            "Gather": lambda: np.take(given[0], given[1].astype(int), axis=axis),
            "Slice": lambda: given[0][int(given[1][0]) : int(given[2][0]) : int(given[4][0]) if given[4:] else 1],
            "Identity": lambda: given[0],
            "Cast": lambda: given[0].astype(_TYPES[settings("to", 1)]),
            "Squeeze": lambda: np.squeeze(given[0], tuple(axes)),
            "Unsqueeze": lambda: np.expand_dims(given[0], tuple(axes)),
            "Transpose": lambda: np.transpose(given[0], settings("perm", None)),
            "Reshape": lambda: given[0].reshape(axes),
            "Tile": lambda: np.tile(given[0], axes),
            "MatMul": lambda: given[0] @ given[1],
            "Add": lambda: given[0] + given[1],
        }
        sizes: dict[str, Callable[[], int]] = {
            "Concat": lambda: sum(each.size for each in given),
            "Gather": lambda: given[0].size // max(given[0].shape[axis], 1) * given[1].size,
            "Slice": lambda: 0,  # a view
            "Tile": lambda: given[0].size * math.prod(axes),
            "MatMul": lambda: math.prod(
                np.broadcast_shapes(*(each.shape[:-2] for each in given))
                + given[0].shape[-2:-1]
                + given[1].shape[1:][-1:]
            ),
            "Add": lambda: math.prod(np.broadcast_shapes(*(each.shape for each in given))),
        }
        if kind not in made or (kind == "Slice" and given[0].ndim != 1):
            raise UnreadableError("the operation is not known for constants")
        size = sizes.get(kind, lambda: given[0].size)()  # before it is made
        self._room -= size
        if size > _FOLDED or self._room < 0:
            raise UnreadableError(f"it makes a constant of {size:,} numbers, or all constants are too large")
        return np.asarray(made[kind]())

    def _axes(self, names: Sequence[str], settings: _Settings, default: Sequence[int] = ()) -> Any:
        """The axes, the shape or the factors of a node; of too many just enough to be refused."""
        return self.constants[names[1]].ravel()[:66].tolist() if len(names) > 1 else settings("axes", default)

    def _pair(self, names: Sequence[str]) -> tuple[Value, np.ndarray]:
        """The value and the constant of an operation that takes one of each."""
        constant = next((self.constants[name] for name in names if name in self.constants.keys() - self.by_label), None)
        value = next((self.values[name] for name in names if name in self.values), None)
        if constant is None or value is None:
            raise UnreadableError("it multiplies or divides what both depends on inputs")
        return value, constant

    def _by_channel(self, value: Value, constant: np.ndarray) -> np.ndarray:
        """A constant as one number, or one for each channel."""
        shape = self.drawn.shape(value)
        axis = -len(shape) if value.first else -1
        if constant.size > 1:
            wide = (1,) * (len(shape) - constant.ndim) + constant.shape
            if len(wide) < len(shape) or wide[axis] != constant.size:
                raise UnreadableError(f"a constant of shape {constant.shape} is not one number for each channel")
        return constant.ravel()

    def _matmul(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        if names[1] not in self.constants:
            raise UnreadableError("it multiplies or divides what both depends on inputs")
        return self.drawn.dense(self.values[names[0]], self.constants[names[1]])

    def _gemm(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        value, kernel = self.values[names[0]], self.constants[names[1]]
        bias = self.constants[names[2]] * settings("beta", 1.0) if len(names) > 2 else None
        if settings("transA", 0):
            raise UnreadableError("Gemm with transA mixes examples")
        kernel = kernel.T if settings("transB", 0) else kernel
        return self.drawn.dense(value, kernel * np.float32(settings("alpha", 1.0)), bias)

    def _conv(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        kernel = self.constants[names[1]]
        kernel = np.moveaxis(kernel, (0, 1), (-1, -2))
        bias = self.constants[names[2]] if len(names) > 2 else None
        sides = kernel.ndim - 2
        return self.drawn.convolution(
            self._images(names[0]),
            kernel,
            bias,
            strides=tuple(settings("strides", [1] * sides)),
            pads=_pads(settings, sides),
            dilation=tuple(settings("dilations", [1] * sides)),
            groups=settings("group", 1),
        )

    def _images(self, name: str) -> Value:
        """A value with channels first, as ONNX takes feature maps, stored with channels last."""
        return self.drawn.settled(self.values[name], first=True)

    def _averagepool(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        size = tuple(settings("kernel_shape", []))
        pads = _pads(settings, len(size))
        if settings("ceil_mode", 0) or (settings("count_include_pad", 0) and np.any(pads != "same" and pads)):
            raise UnreadableError("AveragePool with ceil_mode or count_include_pad is not known")
        strides = tuple(settings("strides", [1] * len(size)))
        return self.drawn.average_pool(self._images(names[0]), size, strides=strides, pads=pads)

    def _globalaveragepool(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        value = self._images(names[0])
        *space, channels = self.drawn.layers[value.layer].shape
        shape = (*[1] * len(space), channels)
        return replace(self.drawn.reshaped(self.drawn.global_average(value), shape), first=True)

    def _reducemean(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        value = self.values[names[0]]
        shape = self.drawn.shape(value)
        axes = self._axes(names, settings)
        wanted = range(2, len(shape) + 1) if value.first else range(1, len(shape))
        if sorted(axis % (len(shape) + 1) for axis in axes) != list(wanted):
            raise UnreadableError(f"a mean over the axes {axes} of {shape} is not one over all pixels")
        means = self.drawn.global_average(value)
        if not settings("keepdims", 1):
            return means
        return replace(self.drawn.reshaped(means, (*[1] * (len(shape) - 1), -1)), first=value.first)

    def _batchnormalization(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        if settings("training_mode", 0):
            raise UnreadableError("in training mode it mixes examples")
        statistics = [self.constants[name] for name in names[1:5]]
        return self.drawn.normalized(self.values[names[0]], statistics, settings("epsilon", 1e-5))

    def _leakyrelu(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        return self.drawn.elementwise(self.values[names[0]], "LeakyReLU", negative_slope=settings("alpha", 0.01))

    def _identity(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        return self.values[names[0]]

    def _cast(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        if settings("to", 1) not in (1, 11):
            raise UnreadableError("a cast to another type than float32 or float64 rounds")
        return self.values[names[0]]

    def _flatten(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        if settings("axis", 1) != 1:
            raise UnreadableError("Flatten mixes examples")
        return self.drawn.reshaped(self.values[names[0]], (-1,))

    def _reshape(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        value, shape = self.values[names[0]], [int(side) for side in self._axes(names, settings)]
        before = self.drawn.shape(value)
        # The first axis is the examples', and of no known length: 0 keeps it, -1 or 1 names it.
        shape = [(1, *before)[i] if side == 0 else side for i, side in enumerate(shape)]
        if shape[0] == -1 and -1 not in shape[1:]:
            shape[0] = 1
        if shape[0] != 1:
            raise UnreadableError(f"Reshape to {shape} mixes examples")
        return self.drawn.reshaped(value, tuple(shape[1:]))

    def _squeeze(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        value = self.values[names[0]]
        axes = self._axes(names, settings)
        shape = (1, *self.drawn.shape(value))
        axes = {axis % len(shape) for axis in axes}
        if not axes or 0 in axes or any(shape[axis] != 1 for axis in axes):
            raise UnreadableError(f"Squeeze along {sorted(axes)} does not suit a tensor of shape {shape[1:]}")
        return self.drawn.reshaped(value, tuple(s for axis, s in enumerate(shape) if axis and axis not in axes))

    def _transpose(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        value, perm = self.drawn.settled(self.values[names[0]]), list(settings("perm", []))
        rank = len(self.drawn.shape(value))
        if perm == [0, *range(2, rank + 1), 1] and value.first:
            return replace(value, first=False)
        if perm == [0, rank, *range(1, rank)] and not value.first and rank > 1:
            return replace(value, first=True)
        if not perm or perm[0] != 0:
            raise UnreadableError(f"Transpose by {perm} mixes examples")
        return self.drawn.permuted(self.drawn.settled(value, first=False), perm[1:])

    def _concat(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        value = next(self.values[name] for name in names if name in self.values)
        rank = len(self.drawn.shape(value))
        if settings("axis", 1) % (rank + 1) != (1 if value.first else rank):
            raise UnreadableError("Concat along another axis than that of channels is not known")
        return self.drawn.joined([self._value(name, first=value.first) for name in names], "Concatenate")

    def _resize(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        value = self.drawn.settled(self.values[names[0]])
        shape = self.drawn.shape(value)
        wide = self.constants[names[-1]].ravel()[1:]
        factors = wide / np.asarray(shape) if self.constants[names[-1]].dtype.kind == "i" else wide
        space = factors[1:] if value.first else factors[:-1]
        if settings("mode", b"nearest") != b"nearest" or len(shape) != 3 or np.any(space != np.round(space)):
            raise UnreadableError("Resize other than by repeating pixels is not known")
        size = tuple(int(each) for each in space)
        *before, channels = self.drawn.layers[value.layer].shape
        after = (*(side * each for side, each in zip(before, size, strict=True)), channels)
        return self.drawn._after(value, "UpSampling2D", after, size=size)

    def _add(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        if any(name in self.constants.keys() - self.by_label for name in names):
            value, constant = self._pair(names)
            return self.drawn.scaled(value, 1.0, self._by_channel(value, constant))
        for name, other in (names, names[::-1]):
            if name in self.products and other in self.values:
                features, table = self.products[name]
                pending = self.values[other].pending
                if pending is not None and pending.kind == "Dense" and pending.inputs == (features.layer,):
                    return self.drawn.projection(features, pending, self._label, table)
        first = next((self.values[name].first for name in names if name in self.values), False)
        return self.drawn.joined([self._value(name, first=first) for name in names], "Add")

    def _value(self, name: str, *, first: bool) -> Value:
        """A value, also of a product, or of what labels choose."""
        if name in self.products:
            features, table = self.products[name]
            return self.drawn.projection(features, None, self._label, table)
        if name in self.by_label:
            rows = self.constants[name]
            value = self.drawn.dense(self._label, rows.reshape(len(rows), -1))
            return self.drawn.settled(self.drawn.reshaped(value, rows.shape[1:]), first=first)
        if name in self.constants:
            raise UnreadableError("a constant joins feature maps")
        return self.drawn.settled(self.values[name], first=first)

    def _sub(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        if names[1] in self.constants:
            value, constant = self._pair(names)
            return self.drawn.scaled(value, 1.0, -self._by_channel(value, constant))
        if names[0] in self.constants:
            value, constant = self._pair(names)
            return self.drawn.scaled(value, -1.0, self._by_channel(value, constant))
        return self.drawn.joined([self._value(name, first=self.values[names[0]].first) for name in names], "Subtract")

    def _mul(self, names: Sequence[str], settings: _Settings, output: str) -> Value | None:
        for name, other in (names, names[::-1]):
            if name in self.by_label and other in self.values and self.constants[name].ndim == 2:
                self.products[output] = self.drawn.settled(self.values[other], first=False), self.constants[name]
                return None
        value, constant = self._pair(names)
        return self.drawn.scaled(value, self._by_channel(value, constant))

    def _div(self, names: Sequence[str], settings: _Settings, output: str) -> Value:
        value, constant = self._pair(names)
        if names[0] in self.constants:
            raise UnreadableError("it divides by what depends on inputs")
        return self.drawn.scaled(value, 1.0 / self._by_channel(value, constant))

    def _reducesum(self, names: Sequence[str], settings: _Settings, output: str) -> None:
        axes = self._axes(names, settings)
        if names[0] not in self.products or axes not in ([1], [-1]) or not settings("keepdims", 1):
            raise UnreadableError("ReduceSum other than of features times an embedding is not known")
        self.products[output] = self.products[names[0]]

    _METHODS: ClassVar[dict[str, Callable[..., Value | None]]] = {
        **{"MatMul": _matmul, "Gemm": _gemm, "Conv": _conv, "AveragePool": _averagepool, "ReduceMean": _reducemean},
        **{"GlobalAveragePool": _globalaveragepool, "BatchNormalization": _batchnormalization, "Cast": _cast},
        **{"LeakyRelu": _leakyrelu, "Identity": _identity, "Flatten": _flatten, "Reshape": _reshape, "Div": _div},
        **{"Squeeze": _squeeze, "Transpose": _transpose, "Concat": _concat, "Resize": _resize, "Add": _add},
        **{"Sub": _sub, "Mul": _mul, "ReduceSum": _reducesum},
    }


def _settings(onnx: Any, attributes: dict[str, Any]) -> _Settings:
    """The attributes of a node, by name, or a default."""
    read = onnx.helper.get_attribute_value
    return lambda name, default: read(attributes[name]) if name in attributes else default


def _pads(settings: _Settings, sides: int) -> Any:
    """The paddings of a window's node, or "same"."""
    automatic = settings("auto_pad", b"NOTSET")
    if automatic == b"SAME_UPPER":
        return "same"
    if automatic not in (b"NOTSET", b"VALID", b""):
        raise UnreadableError(f"the padding {automatic!r} is not known")
    pads: Shape = tuple(settings("pads", [0] * 2 * sides))
    return tuple(zip(pads[:sides], pads[sides:], strict=False))
