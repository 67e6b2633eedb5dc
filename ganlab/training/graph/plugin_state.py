"""The state of a plugin between updates: the rules for its first value and for the next."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import tensorflow as tf

from ganlab.errors import ContractError
from ganlab.training.graph.networks import static_shape
from ganlab.training.graph.values import Tensors


def tensors(called: str, method: str, values: Any) -> Tensors:
    """The dict of tensors that a method of a component, as messages name it, returned; anything else is refused."""
    if not isinstance(values, Mapping):
        raise ContractError(
            f"{called}'s {method} gave {type(values).__name__}; it must return a dict of names to tensors."
        )
    return {key: tf.convert_to_tensor(value) for key, value in values.items()}


def next_state(called: str, given: Any, state: Tensors, others: Collection[str] = ()) -> Tensors:
    """The next state that `advance` returned, a constant in every gradient; names, shapes and dtypes are as before.

    The names in `others` may be in it too, and are left out.
    """
    given = tensors(called, "advance", given)
    missing, unknown = set(state) - set(given), set(given) - set(state) - set(others)
    if missing or unknown:
        raise ContractError(
            f"{called} returned a state with {sorted(given)} from advance; it must have the keys of initial_state, "
            f"{sorted(state)}."
        )
    for key, before in state.items():
        after = given[key]
        if static_shape(after) != static_shape(before) or after.dtype != before.dtype:
            raise ContractError(
                f"{called} advanced {key!r} to shape {static_shape(after)}, {after.dtype.name}; it was "
                f"{static_shape(before)}, {before.dtype.name}, and a state must keep both."
            )
    # A graph's gradient reaches everything computed from the weights, even before the loss; a tape's does not.
    return {key: tf.stop_gradient(given[key]) for key in state}


def no_variables(create: Any, **arguments: Any) -> Any:
    """A creator of TensorFlow's variables, for plugins' code, that refuses to create any; `plugin_code` adds whose."""
    raise ValueError(
        "a variable is created, which nobody would save, or keep equal on every replica. Values kept between updates "
        "belong in initial_state and advance, trained ones in parameters: the core makes the variables"
    )
