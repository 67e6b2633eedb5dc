"""The variables that a checkpoint of TensorFlow holds, and whether others can be restored from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

# How TensorFlow ends the names of variables' values.
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def kept(reader: Any) -> dict[str, tuple[str, tf.DType, list[int]]]:
    """TensorFlow's key, the type and the shape of each variable of a checkpoint, by the name it was saved under."""
    dtypes, shapes = reader.get_variable_to_dtype_map(), reader.get_variable_to_shape_map()
    keys = {key.removeprefix("variables/").removesuffix(_VALUE): key for key in dtypes if key.endswith(_VALUE)}
    return {name.replace(".S", "/").replace("..", "."): (key, dtypes[key], shapes[key]) for name, key in keys.items()}


def misfit(held: Mapping[str, tuple[str, tf.DType, list[int]]], variables: Mapping[str, Any], partial: bool) -> str:
    """Why variables cannot be restored from what a checkpoint holds; '' if they can."""
    for name, variable in variables.items():
        if name not in held:
            return f"it has no {name}"
        _, dtype, shape = held[name]
        if (dtype, shape) != (variable.dtype, variable.shape):
            return (
                f"its {name} is {dtype.name} of shape {tuple(shape)}, where {variable.dtype.name} of shape "
                f"{tuple(variable.shape)} is needed"
            )
    further = [] if partial else sorted(held.keys() - variables.keys())
    return f"it has {further[0]}, which the experiment does not have" if further else ""
