"""Weight normalization."""

from __future__ import annotations

from collections.abc import Mapping

from ganlab.functional import as_matrix
from ganlab.lazy import tensorflow as tf
from ganlab_builtin.constraints.certified import Certified


class WeightNormalization(Certified):
    """Gives the weights of every output unit their own length, trained separately from their direction.

    Salimans and Kingma, "Weight normalization: a simple reparameterization to accelerate training of deep neural
    networks" (2016), equation 2: `w = g * v / ||v||`, for each column of a kernel taken as the matrix (everything else,
    outputs). The gains g start as the lengths that the columns have, so that the critic starts as it was built; the
    paper's initialization from a batch of data is left out.

    With trained gains this bounds nothing: the critic may become as steep as it likes. `trained_gains = False` keeps
    every column at length one, which bounds a dense layer of n units by the square root of n.
    """

    def __init__(self, *, trained_gains: bool = True) -> None:
        """Chooses whether lengths are trained.

        Args:
            trained_gains: Whether the gains are weights of their own, as in the paper, or all one.
        """
        self.trained_gains = trained_gains

    def parameters(self, weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """The gains of every kernel, `(outputs,)`."""
        return {name: _lengths(kernel) for name, kernel in _kernels(weights).items()} if self.trained_gains else {}

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every kernel with the gains as the lengths of its columns."""
        normalized = dict(weights)
        for name, kernel in _kernels(weights).items():
            normalized[name] = kernel * (state.get(name, 1.0) / _lengths(kernel))
        return normalized


def _kernels(weights: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    return {name: weight for name, weight in weights.items() if len(weight.shape) >= 2}


def _lengths(kernel: tf.Tensor) -> tf.Tensor:
    # The small number keeps the gradient finite where a column is zero.
    return tf.sqrt(tf.reduce_sum(tf.square(as_matrix(kernel)), axis=0) + 1e-12)
