"""Compares the first and second derivatives of each layer, by itself, with differences."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab.layers import NoiseSource, noise_from
from ganlab_verify.differences import Slope, Values, slopes
from ganlab_verify.doubling import Double


@dataclass(frozen=True)
class Call:
    """A layer and the argument of its call.

    Attributes:
        layer: The layer.
        arguments: Its first argument, a tensor or a nest of tensors.
    """

    layer: keras.layers.Layer
    arguments: Any


@dataclass(frozen=True)
class Wrong:
    """A layer with a wrong derivative.

    Attributes:
        layer: The layer.
        times: 1 if its first derivative is wrong; 2 if that is right and its second derivative is wrong.
        slope: The slope that departs most.
        refused: Whether TensorFlow raises an error because it has no second derivative.
    """

    layer: keras.layers.Layer
    times: int
    slope: Slope
    refused: bool = False


@contextlib.contextmanager
def called(model: keras.Model) -> Iterator[dict[str, Call]]:
    """Context manager: records the first call of each layer that computes something, in order, by the layer's path."""
    calls: dict[str, Call] = {}
    layers = [layer for layer in model._flatten_layers(include_self=False, recursive=True) if _computes(layer)]
    try:
        for layer in layers:
            # Bypasses Keras' tracking of a layer's attributes: this one is removed again.
            object.__setattr__(layer, "call", _recording(layer, layer.call, calls))
        yield calls
    finally:
        for layer in layers:
            vars(layer).pop("call", None)


def _computes(layer: keras.layers.Layer) -> bool:
    inner = list(layer._flatten_layers(include_self=False, recursive=True))
    held = {id(v) for one in inner for v in one.trainable_variables}
    return not isinstance(layer, keras.layers.InputLayer) and (
        not inner or any(id(v) not in held for v in layer.trainable_variables)
    )


def _recording(layer: keras.layers.Layer, call: Callable[..., Any], calls: dict[str, Call]) -> Callable[..., Any]:
    def recording(*arguments: Any, **keywords: Any) -> Any:
        given = tf.nest.flatten(arguments[:1])
        if given and all(tf.is_tensor(x) for x in given):
            calls.setdefault(layer.path or layer.name, Call(layer, arguments[0]))
        return call(*arguments, **keywords)

    return recording


def wrong(call: Call, inputs: Any, weights: Mapping[str, np.ndarray], noise: NoiseSource) -> Wrong | None:
    """Compares the derivatives of one layer with differences.

    Args:
        call: The layer, and the nest of its first argument.
        inputs: Values of the tensors in that nest, in order.
        weights: Values of its variables by path, as many as are known.
        noise: The source of its random numbers.

    Returns:
        The mistake, or None. If a layer cannot be differentiated twice, its second derivative counts as wrong.
    """
    layer, flat = call.layer, [np.asarray(x) for x in inputs]
    trained = {v.path: weights.get(v.path, v.numpy()) for v in layer.trainable_variables}
    moving = [f"input {i}" for i, x in enumerate(flat) if x.dtype.kind == "f"]
    values = {f"input {i}": x.astype(np.float32) if x.dtype.kind == "f" else x for i, x in enumerate(flat)} | trained
    random = np.random.default_rng(0)
    fixed = [(v, tf.constant(v.numpy())) for v in layer.non_trainable_variables]

    def computed(given: Mapping[str, tf.Tensor]) -> dict[str, Any]:
        """A weighted sum of the outputs, and one of the squares of its derivatives, each with its gradient."""
        mapping = fixed + [(v, given[v.path]) for v in layer.trainable_variables]
        arguments = tf.nest.pack_sequence_as(call.arguments, [given[f"input {i}"] for i in range(len(flat))])
        with keras.StatelessScope(state_mapping=mapping), noise_from(noise):
            outputs = [tf.cast(y, tf.float32) for y in tf.nest.flatten(layer(arguments)) if y.dtype.is_floating]
        # The gradient from above is also a variable: the second derivative of a linear layer depends on it alone.
        factors = [given.get(f"output {i}", tf.ones_like(y)) for i, y in enumerate(outputs)]
        weighted = [y * factor for y, factor in zip(outputs, factors, strict=True)]
        once = sum(tf.reduce_sum(y) for y in weighted)
        inner = tf.gradients(once, [given[name] for name in moving], unconnected_gradients="zero")
        # Weighted again: for a normalization, the plain squares have no slope where the derivative is wrong.
        squares = [tf.square(g) * drawn(g.shape) for g in inner]
        twice = sum(tf.reduce_sum(g) for g in squares)
        return {
            "once": once,
            "once by": _gradients(once, given),
            "once terms": sum(tf.reduce_sum(tf.abs(y)) for y in weighted),
            "twice": twice,
            "twice by": _gradients(twice, given),
            "twice terms": sum(tf.reduce_sum(tf.abs(g)) for g in squares),
            "outputs": outputs,
        }

    def drawn(shape: Any) -> np.ndarray:
        return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)

    try:
        outputs = Double(computed, values)(values)["outputs"]
        values |= {f"output {i}": random.standard_normal(y.shape).astype(np.float32) for i, y in enumerate(outputs)}
        traced = Double(computed, values)
        results = traced(values)
    except LookupError:
        return Wrong(layer, 2, Slope("", 0.0, 0.0, 1.0, 1.0, 0.0, vague=False), refused=True)
    precision = float(np.finfo(np.float32 if traced.kept else np.float64).eps)
    start = {name: np.asarray(x, np.float64) for name, x in values.items() if np.asarray(x).dtype.kind == "f"}
    for times, what in ((1, "once"), (2, "twice")):

        def loss(moved: Values, what: str = what) -> float:
            return float(traced({**values, **moved}, fetches=traced.outputs[what]))

        gradient = results[f"{what} by"]
        held = slopes(loss, start, gradient, terms=float(results[f"{what} terms"]), precision=precision)
        departing = [slope for slope in held if slope.departs]
        if departing:
            return Wrong(layer, times, max(departing, key=lambda slope: slope.error))
    return None


def _gradients(total: tf.Tensor, given: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    moving = {name: x for name, x in given.items() if x.dtype.is_floating}
    return dict(zip(moving, tf.gradients(total, list(moving.values()), unconnected_gradients="zero"), strict=True))
