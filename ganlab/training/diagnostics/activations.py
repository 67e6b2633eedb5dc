"""The activations between the layers of a critic, for any Keras model: a graph of layers or a class of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from ganlab.interfaces.diagnostic import CriticLayer
from ganlab.training.graph.networks import Tensors

# Layers that are a nonlinearity and have no attribute that names it.
_NONLINEARITIES = {
    keras.layers.ReLU: "relu",
    keras.layers.LeakyReLU: "leaky_relu",
    keras.layers.PReLU: "prelu",
    keras.layers.ELU: "elu",
}


class Intermediates:
    """The layers of one model and a way to see their outputs while it runs."""

    def __init__(self, model: keras.Model, weights: Mapping[str, keras.Variable]) -> None:
        """Takes a built model.

        Args:
            model: The model.
            weights: Its trainable variables by the names that plugins know.
        """
        self._model = model
        self._names = {id(variable): name for name, variable in weights.items()}
        self._layers = _named([layer for layer in _flat(model) if _own(layer) or not _flat(layer)])

    def described(self, called: Mapping[str, Any]) -> tuple[CriticLayer, ...]:
        """The layers in the order in which they were called.

        Args:
            called: The mapping that `recorded` filled during a call of the model.
        """
        return tuple(
            CriticLayer(
                name=name,
                kind=type(layer).__name__,
                activation=_activation(layer),
                weights=tuple(self._names[id(v)] for v in _own(layer) if id(v) in self._names),
            )
            for name, layer in ((name, self._layers[name]) for name in called)
        )

    @contextlib.contextmanager
    def recorded(self) -> Iterator[Tensors]:
        """Context manager: records the first output of each layer in the mapping, in the order of the calls.

        These are the very tensors that the next layers take, so that the model's output can be differentiated by them.
        """
        outputs: Tensors = {}
        try:
            for name, layer in self._layers.items():
                # Bypasses Keras' bookkeeping of a layer's attributes, because this one is removed again.
                object.__setattr__(layer, "call", _noting(layer.call, name, outputs))
            yield outputs
        finally:
            for layer in self._layers.values():
                vars(layer).pop("call", None)


def _noting(call: Callable[..., Any], name: str, outputs: Tensors) -> Callable[..., Any]:
    def noting(*arguments: Any, **keywords: Any) -> Any:
        y = call(*arguments, **keywords)
        if tf.is_tensor(y):
            outputs.setdefault(name, y)
        return y

    return noting


def _flat(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    return list(layer._flatten_layers(include_self=False, recursive=True))


def _own(layer: keras.layers.Layer) -> list[keras.Variable]:
    """A layer's weights without those of the layers that it holds."""
    held = {id(v) for inner in _flat(layer) for v in inner.trainable_variables}
    return [v for v in layer.trainable_variables if id(v) not in held]


def _named(layers: list[keras.layers.Layer]) -> dict[str, keras.layers.Layer]:
    named: dict[str, keras.layers.Layer] = {}
    for layer in layers:
        if any(layer is known for known in named.values()):
            continue
        name, count = layer.name, 1
        while name in named:
            count += 1
            name = f"{layer.name}#{count}"
        named[name] = layer
    return named


def _activation(layer: keras.layers.Layer) -> str:
    """`relu` for a Dense layer with that activation, for `Activation("relu")` and for `ReLU()` alike."""
    function = getattr(layer, "activation", None)
    if function is not None:
        name = str(getattr(function, "__name__", type(function).__name__))
        return "" if name == "linear" else name
    return next((name for kind, name in _NONLINEARITIES.items() if isinstance(layer, kind)), "")
