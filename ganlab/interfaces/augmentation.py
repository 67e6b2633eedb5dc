"""The augmentation role: changes of examples that the critic sees in place of the examples themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import tensorflow as tf

    from ganlab.interfaces.constraint import Replica, Tensors


class Augmentation:
    """Changes examples at random before the critic sees them: real and generated ones, in every update.

    All methods are pure functions, as a constraint's. Randomness comes from `replica`.

    Attributes:
        metric_help: Explanations of its metrics by name, for `ganlab config explain`.
    """

    metric_help: ClassVar[Mapping[str, str]] = {}

    def initial_state(self) -> Tensors:
        """Values kept between updates, for example the probability of an adaptive augmentation."""
        return {}

    def apply(
        self, x: tf.Tensor, state: Tensors, replica: Replica
    ) -> tf.Tensor | tuple[tf.Tensor, Mapping[str, tf.Tensor]]:
        """The changed examples: differentiable, row i from example i alone.

        Args:
            x: `(local_batch, *sample_shape)` float32; images in [-1, 1].
            state: The state.
            replica: The source of random numbers.

        Returns:
            The same shape and dtype; or that and side outputs by name, for example a level of noise, `(local_batch,
            ...)`, drawn and not taken from `x`. They reach `batch.side` and a critic whose model has an input of such a
            name after its others. Real examples and samples then have the same random numbers, row by row.
        """
        raise NotImplementedError

    def advance(self, state: Tensors, scores: tf.Tensor, replica: Replica) -> Tensors:
        """The next state: called after each critic update, outside its gradient.

        The result must be the same on every replica: reduce what depends on data with `replica.sum/mean/max`.

        Args:
            state: The state.
            scores: The critic's scores of the augmented real examples, `(local_batch,)`.
            replica: Reduces over replicas, and logs.
        """
        return state
