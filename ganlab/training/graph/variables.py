"""Reading and assigning variables, Keras' and TensorFlow's, in a strategy's scope."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from ganlab.training.graph.values import Tensors


@dataclass
class _Room:
    left: int
    error: Exception


_room: ContextVar[_Room | None] = ContextVar("room", default=None)


@contextlib.contextmanager
def at_most(size: int, error: Exception) -> Iterator[None]:
    """Context manager: raises the error before the variables that `counted` creates take more than `size` bytes."""
    token = _room.set(_Room(size, error))
    try:
        yield
    finally:
        _room.reset(token)


def counted(create: Any, **arguments: Any) -> Any:
    """A creator of variables, for `tf.variable_creator_scope`, whose bytes `at_most` limits."""
    if (room := _room.get()) and callable(initial := arguments.get("initial_value")):
        with contextlib.suppress(Exception), tf.Graph().as_default():  # traced for the shape, not computed
            value = initial()
            room.left -= value.shape.num_elements() * value.dtype.size
        if room.left < 0:
            raise room.error
    return create(**arguments)


def read(variables: Mapping[str, Any]) -> Tensors:
    """The values of variables (Keras' or TensorFlow's) on this replica."""
    return {name: value_of(v) for name, v in variables.items()}


def assign(variables: Iterable[Any], values: Iterable[tf.Tensor]) -> None:
    """Assigns values that are the same on every replica; each replica assigns its own copy, without communication.

    Called in a replica's context.
    """
    targets = [raw(v) for v in variables]
    if not targets:
        return

    def update(strategy: tf.distribute.Strategy, *given: tf.Tensor) -> None:
        for variable, value in zip(targets, given, strict=True):
            strategy.extended.update(variable, lambda v, x: v.assign(x), args=(value,), group=False)

    tf.distribute.get_replica_context().merge_call(update, args=tuple(values))


def assign_changed(variables: Mapping[str, Any], values: Tensors, before: Tensors) -> None:
    """Assigns the values that are other tensors than before; a name without a value is left as it is."""
    changed = [name for name in variables if values.get(name, before[name]) is not before[name]]
    assign([variables[name] for name in changed], [values[name] for name in changed])


def assign_groups(variables: Iterable[Mapping[str, Any]], values: Iterable[Tensors]) -> None:
    """Assigns the states of several components, a mapping each."""
    for group, after in zip(variables, values, strict=True):
        assign(group.values(), [after[key] for key in group])


def value_of(variable: Any) -> tf.Tensor:
    """The value of a variable on this replica."""
    return tf.convert_to_tensor(raw(variable))


def values_of(nest: Any) -> Any:
    """The values of a nest of variables, in the same nest."""
    return tf.nest.map_structure(value_of, nest)


def raw(variable: Any) -> tf.Variable:
    """TensorFlow's variable, also of one of Keras'."""
    return variable.value if isinstance(variable, keras.Variable) else variable


def untrained(value: tf.Tensor) -> tf.Variable:
    """A new variable that no optimizer trains."""
    return tf.Variable(value, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
