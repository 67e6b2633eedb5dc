"""Networks whose activations are computed again in the backward pass, instead of being kept for it.

Chen et al., "Training deep nets with sublinear memory cost" (2016): a network is cut into segments, only what passes
between them is kept, and each segment runs again when its gradient is due. A penalty on slopes differentiates that
gradient, so the backward pass of a segment is such a function itself, and runs again when its own gradient is due.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from ganlab.errors import IncompatibleError
from ganlab.layers import NoiseSource, noise_from

# How often a segment is differentiated: for a gradient, and for the gradient of a penalty on it.
_ORDERS = 2
# Segments end where little passes on: at most this times the largest tensor that does.
_NARROW = 1.5

Function = Callable[..., list[tf.Tensor]]


class Segments:
    """A model of Keras' layers, cut into segments."""

    def __init__(self, model: keras.Model, role: str) -> None:
        """Cuts a functional model, or a `keras.Sequential`; refuses one whose layers cannot be followed."""
        graph = getattr(model, "_functional", None) or model
        nodes = getattr(graph, "_nodes_by_depth", None)
        if not nodes or not type(model).__module__.startswith("keras."):
            raise IncompatibleError(
                f"The {role} {model.name!r} is a model of a class of its own ({type(model).__name__}), whose layers "
                "cannot be followed. Make it by keras.Model(inputs, outputs) or keras.Sequential, or set "
                "experiment.rematerialize = False."
            )
        self._inputs, self._outputs, self._structure = graph.inputs, graph.outputs, graph.output
        self._segments = _cut(graph)

    def __call__(
        self, inputs: Any, mapping: Sequence[tuple[Any, tf.Tensor]], noise: NoiseSource | None
    ) -> tuple[Any, dict[int, tf.Tensor], bool]:
        """Runs the model as in training, with these values of its variables.

        Returns:
            Its output, the values of variables that layers would have assigned, by the variable's `id`, and whether a
            layer added a loss.
        """
        if isinstance(inputs, dict) and set(inputs) == {end.name for end in self._inputs}:
            inputs = [inputs[end.name] for end in self._inputs]
        reached = {id(end): tensor for end, tensor in zip(self._inputs, keras.tree.flatten(inputs), strict=True)}
        values, losses = {id(variable): value for variable, value in mapping}, False
        after = dict[int, tf.Tensor]()
        for segment in self._segments:
            call = _Call(segment, [reached[id(end)] for end in segment.inputs], {**values, **after}, noise)
            reached |= {id(end): tensor for end, tensor in zip(segment.outputs, call.outputs, strict=True)}
            after |= call.after
            losses |= call.losses
        flat = [reached[id(end)] for end in self._outputs]
        return keras.tree.pack_sequence_as(self._structure, flat), after, losses


class _Segment:
    """Layers between tensors that are kept.

    Attributes:
        inputs: The symbolic tensors that it begins with.
        outputs: Those that it ends with.
        trained: The trainable variables of its layers.
        fixed: Their other variables.
    """

    def __init__(self, inputs: Sequence[Any], nodes: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Takes the symbolic tensors, and the calls of layers between them in their order."""
        self.inputs, self._nodes, self.outputs = list(inputs), list(nodes), list(outputs)
        layers = list(dict.fromkeys(node.operation for node in nodes if hasattr(node.operation, "variables")))
        self.trained = [variable for layer in layers for variable in layer.trainable_variables]
        self.fixed = [variable for layer in layers for variable in layer.non_trainable_variables]

    def __call__(self, given: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Calls its layers as in training."""
        reached = {id(end): tensor for end, tensor in zip(self.inputs, given, strict=True)}
        for node in self._nodes:
            arguments, options = node.arguments.fill_in(reached)
            if "training" in inspect.signature(node.operation.call).parameters:
                options["training"] = True
            tensors = keras.tree.flatten(node.operation(*arguments, **options))
            reached |= {id(end): tensor for end, tensor in zip(node.outputs, tensors, strict=True)}
        return [reached[id(end)] for end in self.outputs]


class _Call:
    """One call of a segment, which may run several times, and draws the same numbers each time.

    Attributes:
        outputs: Its outputs.
        after: The values of variables that its layers would have assigned, by the variable's `id`.
        losses: Whether a layer added a loss.
    """

    def __init__(
        self, segment: _Segment, given: list[tf.Tensor], values: dict[int, tf.Tensor], noise: NoiseSource | None
    ) -> None:
        self._segment, self._given, self._noise = segment, given, noise
        self._buffers = [(v, values[id(v)]) for v in segment.fixed if id(v) in values]
        self._moving = [i for i, tensor in enumerate(given) if tensor.dtype.is_floating]
        self._drawn: list[tf.Tensor] = []
        self.after, self.losses, self._first = dict[int, tf.Tensor](), False, True
        arguments = [*(given[i] for i in self._moving), *(values[id(v)] for v in segment.trained)]
        self.outputs = recomputed(self._run, len(self._moving))(*arguments)

    def _run(self, *arguments: tf.Tensor) -> list[tf.Tensor]:
        given, count = list(self._given), len(self._moving)
        for i, tensor in zip(self._moving, arguments[:count], strict=True):
            given[i] = tensor
        mapping = [*zip(self._segment.trained, arguments[count:], strict=True), *self._buffers]
        source = noise_from(_Again(self._noise, self._drawn)) if self._noise else contextlib.nullcontext()
        with keras.StatelessScope(state_mapping=mapping, collect_losses=True) as scope, source:
            outputs = self._segment(given)
            if self._first:
                self.after = {id(v): scope.get_current_value(v) for v, _ in self._buffers}
                self.losses, self._first = bool(scope.losses), False
        return outputs


class _Again:
    """A source of random numbers that remembers them the first time, and gives the same ones afterwards."""

    def __init__(self, source: NoiseSource, drawn: list[tf.Tensor]) -> None:
        self._source, self._drawn, self._next = source, drawn, 0

    def uniform(self, shape: Sequence[int]) -> tf.Tensor:
        """Uniform numbers."""
        return self._taken(self._source.uniform, shape)

    def normal(self, shape: Sequence[int]) -> tf.Tensor:
        """Standard normal numbers."""
        return self._taken(self._source.normal, shape)

    def _taken(self, draw: Callable[[Sequence[int]], tf.Tensor], shape: Sequence[int]) -> tf.Tensor:
        if self._next == len(self._drawn):
            self._drawn.append(draw(shape))
        self._next += 1
        return self._drawn[self._next - 1]


def recomputed(function: Function, activations: int, orders: int = _ORDERS) -> Function:
    """A function that is computed again when its gradient is due.

    Args:
        function: Takes and returns tensors of floats; their gradients are those of what it is computed from.
        activations: How many of its first arguments it must not share with its first computation, or the two would be
            joined.
        orders: How often it may be differentiated so.
    """
    if not orders:
        return function

    @tf.custom_gradient
    def computed(*x: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., list[tf.Tensor | None]]]:
        def backward(*upstream: tf.Tensor) -> list[tf.Tensor | None]:
            linked: list[int] = []

            def pulled_back(*given: tf.Tensor) -> list[tf.Tensor]:
                again = given[: len(x)]
                with tf.GradientTape(watch_accessed_variables=False) as tape:
                    tape.watch(again)
                    y = function(*again)
                gradients = tape.gradient(y, again, output_gradients=list(given[len(x) :]))
                linked[:] = [i for i, gradient in enumerate(gradients) if gradient is not None]
                return [gradients[i] for i in linked]

            later = [*_after(x[:activations], upstream), *x[activations:]]
            gradients = recomputed(pulled_back, activations, orders - 1)(*later, *upstream)
            by_place = dict(zip(linked, gradients, strict=True))
            return [by_place.get(i) for i in range(len(x))]

        return function(*x), backward

    return lambda *x: list(computed(*x))


def _after(tensors: Sequence[tf.Tensor], upstream: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Tensors that are there once a gradient is.

    XLA keeps no control dependency, and would join two computations of the same tensors: a zero made of the gradient
    is added, as TensorFlow's own `recompute_grad` does.
    """
    with tf.control_dependencies(upstream):
        one = tf.reshape(upstream[0], [-1])[0]
        zero = tf.where(tf.equal(one, one), tf.zeros_like(one), one)
        return [tensor + tf.cast(tf.stop_gradient(zero), tensor.dtype) for tensor in tensors]


def _cut(graph: Any) -> list[_Segment]:
    """The segments of a model, in order: about as many as the square root of its places to cut."""
    by_depth = graph._nodes_by_depth
    nodes = [node for depth in sorted(by_depth, reverse=True) for node in by_depth[depth] if not node.is_input]
    last: dict[int, int] = {}
    for i, node in enumerate(nodes):
        last |= {id(tensor): i for tensor in node.input_tensors}
    last |= {id(tensor): len(nodes) for tensor in graph.outputs}
    alive = {id(tensor): tensor for tensor in graph.inputs}
    places: list[tuple[int, list[Any]]] = []
    for i, node in enumerate(nodes[:-1]):
        alive |= {id(tensor): tensor for tensor in node.outputs}
        alive = {key: tensor for key, tensor in alive.items() if last.get(key, -1) > i}
        sizes = [_size(tensor) for tensor in alive.values()]
        if sum(sizes) <= _NARROW * max(sizes):
            places.append((i, list(alive.values())))
    wanted = round(math.sqrt(len(places)))
    work = [sum(_size(tensor) for tensor in node.outputs) for node in nodes]
    segments, start, begun = [], list(graph.inputs), 0
    for end, kept in places:
        if sum(work[begun : end + 1]) >= sum(work) / (wanted + 1):
            segments.append(_Segment(start, nodes[begun : end + 1], kept))
            start, begun = kept, end + 1
    return [*segments, _Segment(start, nodes[begun:], graph.outputs)]


def _size(tensor: Any) -> int:
    return math.prod(side or 1 for side in tensor.shape[1:])
