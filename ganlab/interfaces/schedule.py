"""The schedule role: a setting's value as a function of the step."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tensorflow as tf


class Schedule:
    """Gives a float parameter of a component, or a learning rate, a value for every step of training.

    Attributes:
        start: The value in step 0, a plain number: what the component is made with.
    """

    start: float

    def value(self, step: tf.Tensor, steps: int) -> tf.Tensor:
        """The value in a step: a pure function.

        Args:
            step: Generator updates done, a float32 scalar.
            steps: The generator updates of the whole run.

        Returns:
            A float32 scalar.
        """
        raise NotImplementedError
