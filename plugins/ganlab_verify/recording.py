"""Observes the unmodified step: optimizers that record gradients, a constraint that logs its batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from ganlab import Batch, Constraint, Replica


class Notes:
    """The gradients of the last iteration on each replica, in variables that no other part of training reads."""

    def __init__(self, strategy: tf.distribute.Strategy, variables: Sequence[keras.Variable], updates: int) -> None:
        self._strategy, self._updates = strategy, updates
        with strategy.scope():
            self._count = _own(tf.zeros([], tf.int32))
            self.given = [_own(tf.zeros([updates, *v.shape])) for v in variables]
            self.applied = [_own(tf.zeros([updates, *v.shape])) for v in variables]

    def note(self, where: tf.Variable, gradient: tf.Tensor) -> None:
        """Records a gradient of the current update, on the current device."""
        rows = tf.expand_dims(tf.cast(gradient, tf.float32), 0)
        if self._updates > 1:
            update = tf.reshape(tf.convert_to_tensor(self._count) % self._updates, [1, 1])
            rows = tf.tensor_scatter_nd_update(tf.convert_to_tensor(where), update, rows)
        where.assign(rows)

    def next(self) -> None:
        """Advances to the next update."""
        self._count.assign_add(1)

    def read(self, notes: Sequence[tf.Variable]) -> list[list[np.ndarray]]:
        """Reads the recorded values: for every variable the replicas' gradients, `(updates, *shape)`."""
        return [[copy.numpy() for copy in self._strategy.experimental_local_results(v)] for v in notes]


def _own(value: tf.Tensor) -> tf.Variable:
    return tf.Variable(
        value,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.NONE,
    )


def recording(
    template: keras.optimizers.Optimizer, strategy: tf.distribute.Strategy, updates: int
) -> keras.optimizers.Optimizer:
    """Makes an optimizer record each gradient twice: as a replica hands it over, and as it is applied.

    Args:
        template: An optimizer, as an experiment takes it.
        strategy: The strategy of that experiment.
        updates: How many updates this optimizer makes in an iteration.

    Returns:
        A template of a subclass, whose copies have the attribute `notes` after they are built.
    """
    base: type[Any] = type(template)

    class Recording(base):
        notes: Notes

        def build(self, variables: Sequence[keras.Variable]) -> None:
            super().build(variables)
            # Bypasses Keras' tracking: these are not part of the optimizer's state.
            object.__setattr__(self, "notes", Notes(strategy, variables, updates))

        def apply(self, grads: Sequence[tf.Tensor], trainable_variables: Any = None) -> None:
            for where, gradient in zip(self.notes.given, grads, strict=True):
                self.notes.note(where, gradient)
            super().apply(grads, trainable_variables)
            self.notes.next()

        def update_step(self, gradient: tf.Tensor, variable: Any, learning_rate: Any) -> None:
            self.notes.note(self.notes.applied[self._get_variable_index(variable)], gradient)
            super().update_step(gradient, variable, learning_rate)

    return Recording.from_config(template.get_config())


class Witness(Constraint):
    """Constrains nothing: logs figures of each replica's inputs, as any plugin could."""

    def advance(self, weights: Any, state: Any, batch: Batch, replica: Replica) -> Any:
        """Logs the mean of some noise, and projections of the examples and of the generator's samples."""
        _log(batch, replica)
        return state


class GeneratorWitness(Constraint):
    """The same where the generator trains alone."""

    def generator_penalty(self, generator: Any, critic: Any, batch: Batch, state: Any, replica: Replica) -> None:
        """As `Witness.advance`."""
        _log(batch, replica)


def _log(batch: Batch, replica: Replica) -> None:
    replica.log("noise", replica.normal([batch.fake.shape[0]]))
    if batch.real is not None:
        replica.log("examples", _projected(batch.real))
    replica.log("samples", _projected(batch.fake))


def _projected(x: tf.Tensor) -> tf.Tensor:
    """Numbers weighted by a fixed random direction: different one-hot rows, for example, have equal means."""
    return x * np.random.default_rng(0).uniform(0.5, 1.5, x.shape[1:]).astype(np.float32)
