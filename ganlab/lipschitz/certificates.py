"""Certificates: an upper bound of a whole critic's Lipschitz constant, multiplied up layer by layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ganlab.functional import named_weights
from ganlab.lazy import keras
from ganlab.lipschitz.constants import Unknown, constant_of, takes_labels

if TYPE_CHECKING:
    import tensorflow as tf

    from ganlab.lipschitz.constants import Constant, Value

    # Maps the Lipschitz constants from the critic's input to the inputs of a step, to those of the step's outputs.
    Step = Callable[[Value, list[float]], list[float]]


def certificate(critic: keras.Model) -> Certificate:
    """A certified upper bound of a critic's Lipschitz constant, as a function of its weights.

    Walks a Sequential or functional model, including nested ones: constants multiply along a chain and add up where
    branches are added. See `Certificate` for the meaning of the bound. Call it once, for example in
    `Constraint.prepare`.

    Args:
        critic: A built model.

    Returns:
        The certificate. If a layer's constant is unknown, or the model cannot be walked because it is a class of its
        own, `missing` gives the reason, and the bounds are None.
    """
    return Certificate(critic)


class Certificate:
    """An upper bound of a critic's Lipschitz constant from the weights that it computes with.

    The norm is the Euclidean one on flattened examples, and the critic is in training mode (each example with its own
    dropout mask). The bound is a product of bounds of norms and of the constants of activations and other layers:
    never too small, often far too large. It applies to the map with float32 weights. Rounding to bfloat16 on the way,
    as under mixed precision, is not a Lipschitz map at all, and is not included. For a conditional critic it is that of
    the score as a function of the example, whichever label is fixed.

    Attributes:
        missing: The reason why there is no bound, or None if there is one.
    """

    def __init__(self, critic: keras.Model) -> None:
        self.missing: str | None = None
        self._names = {id(variable): name for name, variable in named_weights(critic).items()}
        self._step: Step
        try:
            self._step = _model(critic)
            self._inputs, self._score = len(critic.inputs), _score_of(critic)
        except Unknown as reason:
            self.missing = f"The critic has no certified Lipschitz bound: {reason}."

    def __call__(self, weights: Mapping[str, tf.Tensor]) -> float | None:
        """Computes the bound with these weights, on the host.

        Args:
            weights: The effective weights by the names of `ganlab.functional.named_weights`, eager tensors or arrays.
                Layers that are not trained keep their own.

        Returns:
            The bound; infinity if a weight is not finite; None if there is no certificate.
        """
        if self.missing is not None:
            return None

        def value(variable: Any) -> np.ndarray:
            name = self._names.get(id(variable))
            return np.asarray(variable if name is None else weights[name], np.float64)

        labels = [0.0] * (self._inputs - 1)
        bound = self._step(value, [1.0, *labels])[self._score]
        return math.inf if math.isnan(bound) else bound


def _model(model: Any) -> Step:
    """A walked model as one step."""
    if not _is_graph(model):
        raise Unknown(
            f"{model.name!r} is a model of a class of its own ({type(model).__name__}), whose layers cannot be "
            "followed; use keras.Model(inputs, outputs) or keras.Sequential instead"
        )
    steps: list[tuple[Step, list[Any], list[Any]]] = []
    known = {_origin(tensor) for tensor in model.inputs}

    def follow(tensor: Any) -> None:
        if _origin(tensor) in known:
            return
        operation, number, _ = tensor._keras_history
        node = operation._inbound_nodes[number]
        for source in node.input_tensors:
            follow(source)
        known.update(map(_origin, node.outputs))
        steps.append((_step(operation, node), list(map(_origin, node.input_tensors)), list(map(_origin, node.outputs))))

    for output in model.outputs:
        follow(output)
    starts, ends = list(map(_origin, model.inputs)), list(map(_origin, model.outputs))

    def run(value: Value, constants: list[float]) -> list[float]:
        reached = dict(zip(starts, constants, strict=True))
        for step, sources, targets in steps:
            reached |= zip(targets, step(value, [reached[source] for source in sources]), strict=True)
        return [reached[end] for end in ends]

    return run


def _score_of(model: Any) -> int:
    """The place of the score among a critic's outputs."""
    named = getattr(model, "_outputs_struct", None)  # a Sequential has none
    if not isinstance(named, dict):
        return 0
    if "score" not in named:
        raise Unknown(f"its outputs are {', '.join(map(repr, named))}, without a 'score'")
    return next(i for i, tensor in enumerate(model.outputs) if tensor is named["score"])


def _is_graph(model: Any) -> bool:
    graph = isinstance(model, keras.Model) and type(model).__module__.startswith("keras.")
    return graph and bool(getattr(model, "outputs", None))


def _origin(tensor: Any) -> tuple[int, int, int]:
    operation, node, index = tensor._keras_history
    return id(operation), node, index


def _step(operation: Any, node: Any) -> Step:
    """The effect of one call of a layer on Lipschitz constants.

    Raises:
        Unknown: The effect is unknown; the message names the layer.
    """
    try:
        if isinstance(operation, keras.Model):
            return _model(operation)
        if len(node.outputs) != 1:
            raise Unknown("it returns several tensors")
        from ganlab import layers as ours  # here, because it imports Keras

        layers = keras.layers
        if type(operation) in (layers.Add, layers.Subtract) or _is_operator(operation, "Add", "Subtract"):
            return _elementwise(math.fsum, node)
        if type(operation) is layers.Average:
            return _elementwise(lambda constants: math.fsum(constants) / len(constants), node)
        if type(operation) in (layers.Maximum, layers.Minimum):
            return _elementwise(_together, node)
        if type(operation) is ours.LipschitzResidual:
            return _residual(operation)
        if type(operation) is layers.Concatenate:
            return lambda value, constants: [_together(constants)]
        if not isinstance(operation, keras.Layer):
            raise Unknown("it is an operation outside a layer; use a layer of keras.layers instead")
        if takes_labels(operation) and len(node.input_tensors) == 2:
            return _labelled(constant_of(operation, node.input_tensors[0].shape))
        if len(node.input_tensors) != 1 and getattr(operation, "lipschitz_constant", None) is None:
            raise Unknown("it takes several tensors; set the layer's attribute lipschitz_constant if you know it")
        constant = constant_of(operation, node.input_tensors[0].shape)
    except Unknown as reason:
        raise Unknown(f"layer {operation.name!r} ({type(operation).__name__}): {reason}") from None
    return lambda value, constants: [_together(constants) * constant(value)]


def _labelled(constant: Constant) -> Step:
    """The effect of a layer on `[x, labels]`: its constant with labels that are fixed; none if they vary with `x`."""

    def step(value: Value, constants: list[float]) -> list[float]:
        x, labels = constants
        return [math.inf if labels else x * constant(value)]

    return step


def _residual(layer: Any) -> Step:
    """The effect of `[x, g]` to `a x + (1 - a) g`."""

    def step(value: Value, constants: list[float]) -> list[float]:
        share = float(1 / (1 + np.exp(-value(layer.balance))))
        return [share * constants[0] + (1 - share) * constants[1]]

    return step


def _together(constants: Sequence[float]) -> float:
    """The constant of several tensors taken as one: distances are square roots of sums of squares."""
    return math.sqrt(math.fsum(constant * constant for constant in constants))


def _is_operator(operation: Any, *names: str) -> bool:
    """Whether this is the operation that `x + y` creates from two symbolic tensors of Keras."""
    kind = type(operation)
    return kind.__name__ in names and kind.__module__.startswith("keras.") and not isinstance(operation, keras.Layer)


def _elementwise(merge: Callable[[Sequence[float]], float], node: Any) -> Step:
    repeats = [_repeats(tensor.shape, node.outputs[0].shape) for tensor in node.input_tensors]
    return lambda value, constants: [merge([c * r for c, r in zip(constants, repeats, strict=True)])]


def _repeats(source: tuple[int | None, ...], target: tuple[int | None, ...]) -> float:
    """The factor by which broadcasting an axis of length one stretches a branch."""
    axes = zip(source[::-1], target[::-1], strict=False)
    longer = [(there or 0) for here, there in axes if here == 1 and there != 1]
    missing = [(there or 0) for there in target[1 : len(target) - len(source) + 1]]
    if 0 in longer + missing:
        raise Unknown("it broadcasts along an axis of unknown length")
    return math.sqrt(math.prod(longer + missing))
