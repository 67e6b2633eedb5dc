"""The base class of reparameterizations by orthonormal kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import ganlab
from ganlab import lipschitz
from ganlab.functional import as_matrix
from ganlab.lazy import tensorflow as tf

if TYPE_CHECKING:
    import keras


class OrthonormalKernels(ganlab.Constraint):
    """Computes with orthonormal kernels; a subclass says which.

    A convolution's kernel is taken as the matrix (everything else, outputs) and then divided by the square root of how
    many patches an input lies in, which bounds the convolution by one.
    """

    def prepare(self, critic: keras.Model) -> None:
        """Counts the patches that the inputs of each kernel lie in.

        Raises:
            IncompatibleError: The linear map of a kernel is unknown.
        """
        self._overlaps = {name: operator.overlap for name, operator in lipschitz.operators(critic).items()}
        self._bound = lipschitz.certificate(critic)

    def reparameterize(self, weights: Mapping[str, tf.Tensor], state: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Every kernel orthonormal."""
        orthonormal = dict(weights)
        for name, overlap in self._overlaps.items():
            matrix = as_matrix(weights[name])
            wide = matrix.shape[0] < matrix.shape[1]
            matrix = self.orthonormal(tf.transpose(matrix) if wide else matrix)
            matrix = (tf.transpose(matrix) if wide else matrix) / math.sqrt(overlap)
            orthonormal[name] = tf.reshape(matrix, weights[name].shape)
        return orthonormal

    def lipschitz_bound(self, weights: Mapping[str, tf.Tensor]) -> float | None:
        """The certificate of the critic with orthonormal kernels."""
        return self._bound(weights)

    def orthonormal(self, matrix: tf.Tensor) -> tf.Tensor:
        """A matrix with orthonormal columns, of the shape of this one, whose columns are not longer than its rows."""
        raise NotImplementedError
