"""Base class of layers: the shape stays, and the configuration has the arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import keras


class Layer(keras.layers.Layer):
    """A layer of the shape of its input, with a configuration of its arguments.

    Attributes:
        arguments: The constructor's arguments beyond those of the classes above, by the names of their attributes.
    """

    arguments: ClassVar[str] = ""

    def compute_output_shape(self, input_shape: Any) -> Sequence[int | None]:
        """The input's shape."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Keras' configuration."""
        names = [name for kind in reversed(type(self).__mro__) for name in vars(kind).get("arguments", "").split()]
        return {**super().get_config(), **{name: _plain(getattr(self, name)) for name in names}}


def _plain(value: Any) -> Any:
    if isinstance(value, keras.initializers.Initializer):
        return keras.initializers.serialize(value)
    return keras.activations.serialize(value) if callable(value) else value
