"""Activations that sort."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from ganlab.layers.base import Layer


@keras.saving.register_keras_serializable(package="ganlab")
class GroupSort(Layer):
    """Sorts the last axis in groups of `group_size` neighbours, each in ascending order.

    Anil, Lucas and Grosse, "Sorting out Lipschitz function approximation" (2019), section 4: an activation that
    preserves the norm of gradients, so that a critic of norm-preserving layers can be steep everywhere. Groups of 2 are
    MaxMin; one group of all units is FullSort.
    """

    arguments = "group_size"
    lipschitz_constant = 1.0  # a permutation, and continuous where it changes

    def __init__(self, group_size: int = 2, **kwargs: Any) -> None:
        """Args: group_size: Units in a group, at least 2; kwargs: Keras' own, for example `name`."""
        super().__init__(**kwargs)
        if not isinstance(group_size, int) or group_size < 2:
            raise ValueError(f"ganlab.layers.GroupSort(group_size={group_size!r}): it must be at least 2.")
        self.group_size = group_size

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        """Checks that the groups divide the last axis."""
        if not input_shape[-1] or input_shape[-1] % self.group_size:
            raise ValueError(
                f"ganlab.layers.GroupSort(group_size={self.group_size}) cannot sort a last axis of {input_shape[-1]}: "
                "it must be a multiple of group_size. Choose another width or another group_size."
            )
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The sorted input."""
        grouped = tf.reshape(inputs, [-1, *inputs.shape[1:-1], inputs.shape[-1] // self.group_size, self.group_size])
        if self.group_size == 2:
            first, second = tf.unstack(grouped, axis=-1)
            swap = first > second  # one choice for both, so that the gradient is that of a permutation even at ties
            ordered = tf.stack([tf.where(swap, second, first), tf.where(swap, first, second)], axis=-1)
        else:
            ordered = tf.sort(grouped, axis=-1)
        return tf.reshape(ordered, tf.shape(inputs))


@keras.saving.register_keras_serializable(package="ganlab")
class FullSort(Layer):
    """Sorts the last axis in ascending order: `GroupSort` with one group (Anil, Lucas and Grosse, 2019)."""

    lipschitz_constant = 1.0

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The sorted input."""
        return tf.sort(inputs, axis=-1)
